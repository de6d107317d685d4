/** Commands in the background: real processes, started by calls of a scripted model. */
import { mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Json } from '../../../machines/vocabulary.ts';
import {
  type Conversation,
  createAgent,
  type LogStore,
  type Model,
  type ModelPart,
  memoryStore,
} from '../../../src/index.ts';
import { permissions } from '../../../src/permissions/permissions.ts';
import { backgroundCommandsOf } from '../../../src/tools/coding/commands/backgroundCommands.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { sandboxStatus } from '../../../src/tools/coding/sandbox.ts';
import { only, resultText } from '../../support/agentBench.ts';
import { call, finish } from '../../support/scriptedReplies.ts';
import { alive, gone, hasProc, numberIn } from './liveProcesses.ts';

let cwd = '';
beforeEach(async () => {
  cwd = await realpath(await mkdtemp(join(tmpdir(), 'background-')));
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

/** A conversation in which each line is one request: a call of a tool, and its answer. */
async function opened(
  store: LogStore = memoryStore(),
  plugins: Parameters<typeof createAgent>[0]['plugins'] = [],
  sandbox: 'off' | 'required' = 'off',
) {
  const tools = codingTools({ sandbox, extra: ['Background'] });
  let next: ModelPart[] = [];
  const model: Model = {
    id: 'm',
    async *stream() {
      const parts = next;
      next = [];
      yield* parts;
      yield finish(parts.length > 0 ? 'tool-calls' : 'stop');
    },
  };
  const agent = createAgent({ model, tools, cwd, store, plugins });
  const conversation = await agent.open('c');
  const ask = async (name: string, args: { [key: string]: Json }): Promise<string> => {
    const callId = `c${conversation.log().length}`;
    next = [call(callId, name, args)];
    await conversation.send('go').result;
    return resultText(conversation.log(), callId);
  };
  const start = async (command: string, more: { [key: string]: Json } = {}): Promise<string> => {
    const text = await ask('Bash', { command, run_in_background: true, ...more });
    return /bash_[0-9a-f]{8}/.exec(text)?.[0] ?? text;
  };
  return {
    agent,
    conversation,
    ask,
    start,
    running: () => backgroundCommandsOf(tools)?.running('c') ?? [],
    find: (id: string) => backgroundCommandsOf(tools)?.find('c', id),
  };
}

const outcomes = (conversation: Conversation): unknown[] =>
  only(conversation.log(), 'tool-result').map((line) => String(line).replace(/ c\d+/, ''));

describe.skipIf(!hasProc)('a command in the background', () => {
  it('answers at once with an id, and its output is read later, each part once', async () => {
    const { agent, ask, start, running } = await opened();
    const id = await start('echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3');
    expect(running().map((each) => each.id)).toEqual([id]);
    await expect.poll(() => ask('BashOutput', { bash_id: id })).toMatch(/^one\n\[still running after \d+\.\d s\]$/);
    expect(await ask('BashOutput', { bash_id: id })).toMatch(/^\[still running/);
    await writeFile(join(cwd, 'go'), '');
    expect(await ask('BashOutput', { bash_id: id, waitMs: 30_000 })).toBe('two\n[ended: exit code 3]');
    expect(await ask('BashOutput', { bash_id: id })).toBe('[ended: exit code 3]');
    expect(running()).toEqual([]);
    await agent.close();
  });

  it('is ended by KillBash with all that it started, and the rest of its output is returned', async () => {
    const { agent, ask, start } = await opened();
    const id = await start("echo $$ > g; echo up; trap '' TERM; sleep 1000 & sleep 1000");
    const group = await numberIn(join(cwd, 'g'));
    await alive(3, group);
    expect(await ask('KillBash', { bash_id: id })).toBe('up\n[ended: it was stopped]');
    await gone(group);
    expect(await ask('KillBash', { bash_id: id })).toBe('[ended: it was stopped]');
    await agent.close();
  });

  it('runs on after a cancel and after the request that started it, and ends with the conversation', async () => {
    const { conversation, start, running } = await opened();
    await start('echo $$ > g; sleep 1000');
    const group = await numberIn(join(cwd, 'g'));
    await conversation.cancel();
    expect(running()).toHaveLength(1);
    await conversation.close();
    await gone(group);
  });

  it('ends with the agent', async () => {
    const { agent, start } = await opened();
    await start("echo $$ > g; trap '' TERM; sleep 1000 & while :; do sleep 0.05; done");
    const group = await numberIn(join(cwd, 'g'));
    await agent.close();
    await gone(group);
  });

  it('of an earlier program is reported as gone, and none of it runs', async () => {
    const store = memoryStore();
    const before = await opened(store);
    const id = await before.start('sleep 1000');
    await before.agent.close();
    const { agent, conversation, ask } = await opened(store);
    const text = await ask('BashOutput', { bash_id: id });
    expect(text).toContain(`there is no background command ${id}`);
    expect(text).toContain('it is gone with its output and has to be started again. None runs now.');
    expect(outcomes(conversation)).toEqual(['tool-result succeeded', 'tool-result failed not_found']);
    await agent.close();
  });

  it('is not seen from another conversation', async () => {
    const { agent, start } = await opened();
    const id = await start('sleep 1000');
    const other = await agent.open('other');
    const tools = codingTools({ sandbox: 'off', extra: ['Background'] });
    expect(backgroundCommandsOf(tools)?.find('c', id)).toBeUndefined();
    expect(other.log().length).toBeGreaterThan(0);
    await agent.close();
  });

  it('keeps its output in bounds, and the whole of it in a file that the result names', async () => {
    const { agent, ask, start } = await opened();
    const id = await start('head -c 400000 /dev/zero | tr "\\0" x; echo; echo end');
    const text = await ask('BashOutput', { bash_id: id, waitMs: 30_000 });
    expect(text.length).toBeLessThan(140_000);
    expect(text).toMatch(/\[\d+ bytes left out\]/);
    const [, path = ''] = /all of it can be read in (\S+)\]/.exec(text) ?? [];
    expect((await readFile(path, 'utf8')).length).toBe(400_005);
    await agent.close();
  });

  it('has a time limit only if the call gives one', async () => {
    const { agent, ask, start } = await opened();
    const id = await start('echo a; sleep 1000', { timeoutMs: 200 });
    expect(await ask('BashOutput', { bash_id: id, waitMs: 30_000 })).toBe(
      'a\n[ended: timed out after 200 ms and was ended]',
    );
    await agent.close();
  });

  it('is one of sixteen at most', async () => {
    const { agent, start, running } = await opened();
    for (let count = 0; count < 16; count += 1) await start('sleep 1000');
    expect(await start('sleep 1000')).toBe('16 commands run in the background already: end one with KillBash');
    expect(running()).toHaveLength(16);
    await agent.close();
  });

  it('is kept after its end, until 64 others have ended and another one starts', async () => {
    const { agent, start, find } = await opened();
    const ids: string[] = [];
    for (let count = 0; count < 68; count += 1) {
      const id = await start(`echo ${count}`);
      await find(id)?.ended;
      ids.push(id);
      const remembered = ids.map((each) => find(each) !== undefined);
      // At that time the last started one had not ended yet.
      expect(remembered).toEqual(ids.map((_, index) => index >= ids.length - 65));
    }
    await agent.close();
  });
});

describe.skipIf(sandboxStatus().kind === 'none')('in the sandbox', () => {
  it('a command in the background has the same confinement, and the places of the sandbox are released at its end', async () => {
    const { agent, ask, start } = await opened(memoryStore(), [], 'required');
    const id = await start('touch in; touch /usr/out || echo refused; until [ -e go ]; do sleep 0.02; done; echo end');
    await expect.poll(() => readdir(cwd)).toContain('.envrc');
    await expect.poll(() => ask('BashOutput', { bash_id: id })).toMatch(/refused/);
    await writeFile(join(cwd, 'go'), '');
    expect(await ask('BashOutput', { bash_id: id, waitMs: 30_000 })).toBe('end\n[ended: exit code 0]');
    expect((await readdir(cwd)).sort()).toEqual(['go', 'in']);
    await agent.close();
  });
});

describe('the rules', () => {
  it('judge a command in the background exactly as one in the foreground', async () => {
    const rules = permissions({ allow: ['bash(npm test *)'], ask: ['bash(git push *)'], deny: ['bash(rm *)'] });
    for (const command of ['npm test', 'git push', 'rm -r x', 'ls', 'make', 'ls && rm x', 'cat $X', 'echo > .git/x']) {
      const foreground = await rules.explain('Bash', { command }, cwd);
      expect(await rules.explain('Bash', { command, run_in_background: true }, cwd)).toEqual(foreground);
    }
  });

  it('let output be read and a command be ended unasked, in every mode, unless a rule denies the tool', async () => {
    for (const mode of ['default', 'plan', 'dontAsk'] as const) {
      const { agent, conversation, ask } = await opened(memoryStore(), [permissions({ mode, deny: ['KillBash'] })]);
      await ask('BashOutput', { bash_id: 'bash_00000000' });
      await ask('KillBash', { bash_id: 'bash_00000000' });
      expect(outcomes(conversation)).toEqual(['tool-result failed not_found', 'tool-result failed denied']);
      await agent.close();
    }
  });
});
