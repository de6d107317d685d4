import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { EffectAbort } from '../../../src/timeLimit.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { toolSignal } from '../../../src/tools/toolSignal.ts';
import { bench as agentBench, only, resultText } from '../../support/agentBench.ts';
import { call as asks } from '../../support/scriptedReplies.ts';
import { type Bench, call, makeBench } from './codingBench.ts';

let on: Bench;
beforeAll(async () => {
  on = await makeBench();
});
afterAll(() => on.remove());

const bash = (command: string, more: object = {}) => call(on.root, 'Bash', { command, ...more });

describe('the result of a command', () => {
  it('it is the output of the command', async () => {
    expect(await bash('echo hi')).toEqual({ status: 'success', code: undefined, text: 'hi' });
    expect(await bash('true')).toEqual({ status: 'success', code: undefined, text: '(no output)' });
    expect(await bash("printf '  a\\n\\nb\\n'")).toMatchObject({ text: '  a\n\nb' });
  });

  it('an exit code other than 0 is an error with the output, and the code is in both', async () => {
    expect(await bash('echo out; echo err >&2; exit 3')).toEqual({
      status: 'error',
      code: 'exit_3',
      text: 'out\nerr\n[exit code 3]',
    });
    expect(await bash('false')).toMatchObject({ code: 'exit_1', text: '[exit code 1]' });
    expect(await bash('no-such-program')).toMatchObject({
      code: 'exit_127',
      text: expect.stringMatching(/^bash: line 1: no-such-program: command not found\n/),
    });
    expect(await bash('if')).toMatchObject({ code: 'exit_2', text: expect.stringContaining('syntax error') });
  });

  it('the result names the signal that killed a shell', async () => {
    expect(await bash('echo a; kill -9 $$')).toEqual({
      status: 'error',
      code: 'killed',
      text: 'a\n[killed by SIGKILL]',
    });
  });

  it('both outputs keep the order of the writes', async () => {
    const lines = Array.from({ length: 50 }, (_, index) => `o${index}\ne${index}`).join('\n');
    expect(await bash('for i in {0..49}; do echo o$i; echo e$i >&2; done')).toMatchObject({ text: lines });
  });

  it('a command is passed unchanged: a leading dash, quotes, several lines, no login shell', async () => {
    expect(await bash('-x')).toMatchObject({ code: 'exit_127' });
    expect(await bash("echo \"it's\"\necho '$HOME'")).toMatchObject({ text: "it's\n$HOME" });
    expect(await bash('cat <<X\none\nX')).toMatchObject({ text: 'one' });
    expect(await bash('shopt -q login_shell && echo login; [[ $- == *i* ]] && echo asks; true')).toMatchObject({
      text: '(no output)',
    });
  });

  it('its standard input is empty and it has no terminal', async () => {
    expect(await bash('cat; read -r line || echo end')).toMatchObject({ text: 'end' });
    expect(await bash('cat < /dev/tty')).toMatchObject({ status: 'error' });
  });

  it('H-232 a NUL, an empty and an endless command are refused', async () => {
    for (const command of ['echo \0', '', 'x'.repeat(32_001)]) expect((await bash(command)).status).toBe('invalid');
    expect(await bash(`: ${'ü'.repeat(31_988)}; echo ran`)).toMatchObject({ text: 'ran' });
    expect((await bash('true', { timeoutMs: 0 })).status).toBe('invalid');
  });

  it('a missing working directory is an error that names it', async () => {
    expect(await call(join(on.root, 'gone'), 'Bash', { command: 'pwd' })).toMatchObject({ code: 'not_found' });
  });
});

describe('S003-28 BED-10 the working directory', () => {
  it('it is that of the conversation in every call, even if the previous call changed it', async () => {
    await mkdir(join(on.root, 'below'));
    const { conversation } = await agentBench({
      tools: codingTools({ sandbox: 'off' }),
      cwd: on.root,
      replies: [
        [asks('c1', 'Bash', { command: 'cd below && pwd' })],
        [asks('c2', 'Bash', { command: 'pwd; echo $OLDPWD' })],
        'done',
      ],
    });
    expect((await conversation.send('go').result).termination).toBe('NaturalEnd');
    expect(resultText(conversation.log(), 'c1')).toBe(join(on.root, 'below'));
    expect(resultText(conversation.log(), 'c2')).toBe(on.root);
    expect(process.cwd()).not.toBe(on.root);
  });
});

describe('the time limit of a command', () => {
  const overdue = { status: 'error', code: 'timeout', text: 'before\n[timed out after 300 ms and was ended]' };

  it('it is timeoutMs, and the result contains the output until then', async () => {
    const since = performance.now();
    expect(await bash('echo before; sleep 1000; echo after', { timeoutMs: 300 })).toEqual(overdue);
    expect(performance.now() - since).toBeGreaterThanOrEqual(299);
  });

  it('H-229 it ends a command that ignores TERM', async () => {
    expect(await bash("trap '' TERM; echo before; sleep 1000", { timeoutMs: 300 })).toEqual(overdue);
  });

  it.each([
    [undefined, undefined, 119_000],
    [undefined, 5_000, 5_000],
    [Number.POSITIVE_INFINITY, undefined, undefined],
    [10_000, undefined, 9_000],
    [10_000, 8_999, 8_999],
    [10_000, 9_500, 9_000],
    [2_000, undefined, 1_000],
    [1_500, undefined, 750],
  ])('of a host that allows %s ms, asked for %s ms, it is %s ms', async (hostMs, timeoutMs, limit) => {
    const source = { abort: new EffectAbort(), timeoutMs: hostMs ?? 0, listenerFailed: () => undefined };
    const signal = hostMs === undefined ? new AbortController().signal : toolSignal(source);
    const timer = vi.spyOn(globalThis, 'setTimeout');
    try {
      await call(on.root, 'Bash', { command: 'true', ...(timeoutMs !== undefined && { timeoutMs }) }, signal);
      // The other timers of a command wait for a second at most.
      const long = timer.mock.calls.map(([, ms]) => ms ?? 0).filter((ms) => ms >= 700);
      expect(long).toEqual(limit === undefined ? [] : [limit]);
    } finally {
      timer.mockRestore();
    }
  });

  it("it is shorter than the host's limit for tools, so the model receives the output, not only a time-out", async () => {
    const { agent, conversation } = await agentBench({
      tools: codingTools({ sandbox: 'off' }),
      cwd: on.root,
      policies: { limits: { toolMs: 1_000 } },
      replies: [[asks('c1', 'Bash', { command: 'echo before; sleep 1000', timeoutMs: 60_000 })], 'done'],
    });
    await conversation.send('go').result;
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed timeout']);
    expect(resultText(conversation.log(), 'c1')).toBe('before\n[timed out after 500 ms and was ended]');
    await agent.close();
  });
});

describe('progress', () => {
  it('it reports the run time, the size of the output and the last line at intervals', async () => {
    const { agent, conversation } = await agentBench({
      tools: codingTools({ sandbox: 'off' }),
      cwd: on.root,
      replies: [
        [asks('c1', 'Bash', { command: 'for i in {1..20000}; do echo line $i; done; sleep 1.2; echo end' })],
        'done',
      ],
    });
    const updates: unknown[] = [];
    conversation.live$.subscribe((signal) => {
      if (signal.type === 'tool-progress' && typeof signal.update === 'object') updates.push(signal.update);
    });
    await conversation.send('go').result;
    expect(updates.length).toBeGreaterThanOrEqual(1);
    expect(updates.length).toBeLessThan(20);
    // At least while the command sleeps; a slow machine may report its end too.
    expect(updates).toContainEqual({
      elapsedMs: expect.any(Number),
      outputBytes: expect.any(Number),
      lastLine: 'line 20000',
    });
    const elapsed = updates.map((update) => (update as { elapsedMs: number }).elapsedMs);
    expect(elapsed[0]).toBeGreaterThan(450);
    expect(elapsed).toEqual([...elapsed].sort((a, b) => a - b));
    await agent.close();
  });
});
