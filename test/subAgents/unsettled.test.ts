/**
 * Calls of sub-agents that a crash interrupted: the host settles them at the root (docs/internals/model.md, Effect
 * Records).
 */
import { describe, expect, it } from 'vitest';
import { subAgents } from '../../src/index.ts';
import { bench, only } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, lines, type Reply } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, storeOf, submit, watched } from '../support/subAgentBench.ts';

/** The process dies while a sub-agent's tool runs. Another one opens the logs, and its tool returns. */
async function died(replies: readonly Reply[] = [[submit('s', 'A')]]) {
  const { store, copy } = watched();
  const gate = gateTool('work');
  const before = await bench({
    store,
    replies: [[spawn('p', 'alpha')]],
    tools: [gate.tool, subAgents({ model: byTask({ alpha: [[call('g', 'work', { m: 'x' })]] }) })],
  });
  before.conversation.send('hi');
  await gate.begun('g');
  const [work, ask] = [echoTool('work'), echoTool('ask')];
  const model = byTask({ alpha: replies });
  const tools = [work.tool, ask.tool, subAgents({ model })];
  const after = await bench({ store: await storeOf(copy()), replies: ['done'], tools, plugins: [asks().plugin] });
  return { ...after, work, ask, child: model.of('alpha') };
}

describe("a sub-agent's call whose outcome is unknown", () => {
  it('it is unsettled at the root, with its path, until the root settles it', async () => {
    const { conversation, work, child } = await died();
    const [{ callId = '', path = [], reason = '' } = {}, ...others] = conversation.unsettled;
    expect([callId, path, reason, others]).toEqual(['g', ['p', 'g'], 'unknown', []]);
    expect(await conversation.settle('nobody', { didNotRun: true })).toBe('unknown');
    expect(await conversation.settle('g', { ran: { receipt: 7 } })).toBe('applied');
    expect(await conversation.settle('g', { didNotRun: true })).toBe('unknown');
    expect(conversation.unsettled).toEqual([]);
    expect((await conversation.resume().result).text).toBe('done');
    expect(work.ran).toEqual([]);
    expect(lines(child.calls[0]?.messages ?? []).at(-1)).toBe('g {"receipt":7}');
  });

  it('after a retry at the root it runs again when the root is resumed, with the key of its first start', async () => {
    const { conversation, work, store } = await died();
    expect(await conversation.settle('g', { retry: true })).toBe('applied');
    expect([work.ran, conversation.status]).toEqual([[], 'idle']);
    expect((await conversation.resume().result).text).toBe('done');
    expect(work.contexts.map(({ idempotencyKey }) => idempotencyKey)).toEqual([`${childOf('p', 'a')}/g/0`]);
    expect(reported(conversation.log(), 'p').map(({ text }) => text)).toEqual(['A']);
    await conversation.close();
    expect(only(await logOf(store, childOf('p', 'a')), 'tool-result')).toEqual([
      'tool-result g unknown',
      'tool-result g succeeded',
      'tool-result s succeeded',
    ]);
  });

  it('it runs again while the sub-agent waits for a person, and waiting calls keep waiting', async () => {
    const { conversation, work, ask } = await died([[call('x', 'ask', { m: 'x' })], 'goes on', [submit('s', 'A')]]);
    const first = await conversation.resume().result;
    expect([first.termination, conversation.unsettled.map(({ path }) => path.join('/'))]).toEqual([
      'Suspended',
      ['p/g'],
    ]);
    expect(await conversation.settle('g', { retry: true })).toBe('applied');
    expect(work.ran).toEqual([]);
    await conversation.resume().result;
    expect([work.ran, ask.ran, conversation.unsettled]).toEqual([['g'], [], []]);
    expect(conversation.pending.map(({ path }) => path.join('/'))).toEqual(['p/x']);
    await conversation.decide({ callId: 'x', action: 'approve' });
    expect((await conversation.resume().result).text).toBe('done');
    expect([work.ran, ask.ran]).toEqual([['g'], ['x']]);
  });

  it('it is final after the end of the sub-agent: it is no longer listed, and no receipt is settled', async () => {
    const { conversation, work } = await died();
    expect((await conversation.resume().result).text).toBe('done');
    expect(conversation.unsettled).toEqual([]);
    expect(await conversation.settle('g', { retry: true })).toBe('unknown');
    expect((await conversation.resume().result).text).toBe('');
    expect(work.ran).toEqual([]);
  });
});

describe("a sub-agent's call that may run again", () => {
  it('it has a result in its own log, without another execution, if its parent continues with a new message', async () => {
    const { store, copy } = watched();
    const gate = gateTool('work', { idempotent: true });
    const spawning = (model: ReturnType<typeof byTask>) => subAgents({ model });
    const before = await bench({
      store,
      replies: [[spawn('p', 'alpha')]],
      tools: [gate.tool, spawning(byTask({ alpha: [[call('g', 'work'), call('h', 'work')]] }))],
    });
    before.conversation.send('hi');
    await gate.begun('h');
    const again = gateTool('work', { idempotent: true });
    const model = byTask({ alpha: [] });
    const tools = [again.tool, spawning(model)];
    const { conversation, store: after } = await bench({ store: await storeOf(copy()), replies: ['done'], tools });
    expect((await conversation.send('something else').result).text).toBe('done');
    await conversation.close();
    const log = await logOf(after, childOf('p', 'a'));
    expect(only(log, 'tool-result')).toEqual([
      'tool-result g cancelled cancelled',
      'tool-result h cancelled cancelled',
    ]);
    expect(only(log, 'run-stop').at(-1)).toBe('run-stop interrupted cancelled');
    expect([again.started, model.of('alpha').calls.length]).toEqual([[], 0]);
  });
});
