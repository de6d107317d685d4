/** Hooks that are commands: JSON in, JSON out, exit code 2 blocks, and none outlives its time limit. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { type Hook, type HookOptions, hooks } from '../../src/node.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { proves } from '../support/tier.ts';
import { VirtualClock } from '../support/virtualClock.ts';

let cwd = '';
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'runchart-hooks-'));
});
afterAll(() => rm(cwd, { recursive: true, force: true }));

async function run(
  options: HookOptions,
  replies: readonly Reply[] = [[call('c1', 'echo', { text: "it's" })], 'done'],
  clock = new VirtualClock(),
) {
  const ran: string[] = [];
  const tool = defineTool({
    name: 'echo',
    description: 'Echoes',
    parameters: z.object({ text: z.string() }),
    execute: ({ text }) => void ran.push(text),
  });
  const made = await bench({ tools: [tool], cwd, replies, clock, plugins: [hooks(options)] });
  const result = await made.conversation.send('go').result;
  return { ...made, ran, result, log: made.conversation.log() };
}

describe('command hooks', () => {
  it('they receive the event as JSON on stdin, in the working directory', async () => {
    await run({ PreToolUse: [{ command: 'cat > input.json' }] });
    expect(JSON.parse(await readFile(join(cwd, 'input.json'), 'utf8'))).toEqual({
      event: 'PreToolUse',
      conversationId: 'c',
      runId: expect.any(String),
      cwd,
      toolName: 'echo',
      callId: 'c1',
      args: { text: "it's" },
    });
  });

  it('they answer with JSON on stdout, and other text is for a person', async () => {
    const { ran } = await run({
      PreToolUse: [{ command: `echo '{"updatedInput":{"text":"b"}}'` }, { command: 'echo fine' }],
    });
    expect(ran).toEqual(['b']);
  });

  it.each([0, 1, 2, 3])(
    'they answer with characters of several bytes, wherever the pipe divides them: %i bytes after its pieces begin',
    async (shift) => {
      const text = `${'x'.repeat(shift)}${'ü€😀'.repeat(20_000)}`;
      await writeFile(join(cwd, 'answer.json'), JSON.stringify({ updatedInput: { text } }));
      const { ran } = await run({ PreToolUse: [{ command: 'cat answer.json' }] });
      expect(ran.map((each) => each === text)).toEqual([true]);
    },
  );

  it('they block with exit code 2, and stderr is the reason', async () => {
    const { ran, log } = await run({ PreToolUse: [{ command: 'echo "not on a Friday" >&2; exit 2' }] });
    expect(ran).toEqual([]);
    expect(resultText(log, 'c1')).toContain('not on a Friday');
  });

  it.each(['exit 1', 'kill -9 $$', "echo '{broken'", `echo '{"decision":"yes"}'`, 'no-such-command-here'])(
    'they fail by %s: the call is blocked if the hook is required, otherwise it runs',
    async (command) => {
      expect((await run({ PreToolUse: [{ command }] })).ran).toEqual([]);
      const lenient = await run({ PreToolUse: [{ command, required: false }] });
      expect(lenient.ran).toEqual(["it's"]);
      expect(only(lenient.log, 'diagnostic')).toEqual(['diagnostic hook_error']);
    },
  );

  it('a Stop hook that ends with 2 continues the run with its reason', async () => {
    const command = '[ -e stopped ] || { touch stopped; echo "run the tests" >&2; exit 2; }';
    const { model } = await run({ Stop: [{ command }] }, [[call('c1', 'echo', { text: 'a' })], 'done', 'done']);
    expect(model.calls).toHaveLength(3);
    expect(JSON.stringify(model.calls.at(-1)?.messages.at(-1))).toContain('run the tests');
  });

  it('if they leave a process that holds their output, they answer after their own end, and that process is ended', async () => {
    const command = `sleep 987 & echo $! > left; echo '{"updatedInput":{"text":"b"}}'`;
    // The virtual clock does not advance, so no time limit ends the hook. Only the exit of its shell can.
    const { ran } = await run({ PreToolUse: [{ command }] });
    expect(ran).toEqual(['b']);
    const remainingPid = Number(await readFile(join(cwd, 'left'), 'utf8'));
    await expect.poll(() => isAlive(remainingPid), { timeout: 2_000 }).toBe(false);
  });

  it.skipIf(!proves)('H-238 if they take too long, they are ended with all their children, and block', async () => {
    const slow: Hook = { command: 'echo $$ > pid; sleep 60 & sleep 60', timeoutMs: 60_000 };
    const clock = new VirtualClock();
    const running = run({ PreToolUse: [slow] }, undefined, clock);
    const pid = await vi.waitFor(async () => {
      const text = await readFile(join(cwd, 'pid'), 'utf8');
      expect(text).toMatch(/\n/);
      return Number(text);
    });
    await clock.advance(60_000);
    const { ran, log } = await running;
    expect(ran).toEqual([]);
    expect(resultText(log, 'c1')).toContain('took longer than 60000 ms');
    await expect.poll(() => isAlive(-pid), { timeout: 2_000 }).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
