/**
 * A fork of a conversation with sub-agents: finished work is kept, and waiting calls can be decided separately in each
 * of the two.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { forkConversation } from '../../src/conversation/copies/fork.ts';
import {
  type Conversation,
  createAgent,
  type LogEntry,
  type LogStore,
  type ModelPart,
  type ModelRequest,
  memoryStore,
  subAgents,
} from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, finish, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';

const paths = ({ pending }: Conversation): string[] => pending.map(({ path }) => path.join('/'));
const reportLines = (log: readonly LogEntry[]): string[] =>
  log.flatMap((each) => (each.type === 'sub-agent' ? [`${each.phase} ${each.child}`] : []));
const kinOf = (log: readonly LogEntry[]): string[] => [
  ...new Set(log.flatMap((each) => (each.type === 'sub-agent' ? [each.child] : []))),
];

/** A model that continues the conversation in its messages, in any process. */
const inTurn = (...turns: (readonly ModelPart[])[]): Reply[] =>
  Array(9).fill(async function* ({ messages }: ModelRequest) {
    const parts = turns[messages.filter(({ role }) => role === 'assistant').length] ?? [t('done')];
    yield* [...parts, finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop', 5)];
  });

/** Two sub-agents: alpha works and asks, beta works and ends. The tools record the work of this process. */
async function family(store: LogStore = memoryStore()) {
  const [ask, echo] = [echoTool('ask'), echoTool()];
  const model = byTask({
    alpha: inTurn([call('w', 'echo', { m: 'once' })], [call('x', 'ask', { m: 'x' })], [submit('s', 'A')]),
    beta: inTurn([call('e', 'echo', { m: 'once' })], [submit('t', 'B')]),
  });
  const tools = [ask.tool, echo.tool, subAgents({ model })];
  const replies = inTurn([spawn('p', 'alpha', 'beta')]);
  const agent = createAgent({ model: scripted(replies), tools, plugins: [asks().plugin], store });
  return { agent, store, ask, echo };
}

/** It has two sub-agents, and alpha waits. With a decision, alpha has continued to its end. */
async function waiting({ decided = false, store = memoryStore() } = {}) {
  const { agent } = await family(store);
  const conversation = await agent.open('c');
  await conversation.send('hi').result;
  const place = conversation.log().length;
  if (decided) {
    await conversation.decide({ callId: 'x', action: 'approve' });
    expect((await conversation.resume().result).text).toBe('done');
  }
  const log = conversation.log();
  await agent.close();
  return { store, log, place };
}

describe('a fork of a conversation whose sub-agents wait for a person', () => {
  it('it waits like the original, accepts a separate decision, and continues in place', async () => {
    const { store } = await waiting();
    await forkConversation(store, 'c', 'fork');
    const { agent, ask, echo } = await family(store);
    const fork = await agent.open('fork');
    expect([fork.status, paths(fork)]).toEqual(['waiting', ['p/x']]);
    expect(await fork.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    expect((await fork.resume().result).text).toBe('done');
    expect([ask.ran, echo.ran]).toEqual([['x'], []]);
    expect(reported(fork.log(), 'p').map(({ id, text }) => `${id} ${text}`)).toEqual(['b B', 'a A']);
    await agent.close();
  });

  it('the original is unchanged: each is decided separately', async () => {
    const { store, log } = await waiting();
    const child = await logOf(store, childOf('p', 'a'));
    await forkConversation(store, 'c', 'fork');
    const { agent, ask } = await family(store);
    const fork = await agent.open('fork');
    await fork.decide({ callId: 'x', action: 'deny' });
    await fork.resume().result;
    expect(ask.ran).toEqual([]);
    expect([await logOf(store, 'c'), await logOf(store, childOf('p', 'a'))]).toEqual([log, child]);
    expect(paths(await agent.open('c'))).toEqual(['p/x']);
    await agent.close();
  });

  it('it may start at an earlier entry of the original, and waits as at that entry', async () => {
    const { store, log, place } = await waiting({ decided: true });
    const behind = log.findIndex(({ type }) => type === 'decision') + 1;
    await forkConversation(store, 'c', 'asked', place);
    await forkConversation(store, 'c', 'decided', behind);
    const { agent, ask } = await family(store);
    const asked = await agent.open('asked');
    expect([asked.status, paths(asked)]).toEqual(['waiting', ['p/x']]);
    const decided = await agent.open('decided');
    expect([decided.status, paths(decided)]).toEqual(['waiting', []]);
    expect((await decided.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
    await agent.close();
  });

  it('it may be forked again', async () => {
    const { store } = await waiting();
    await forkConversation(store, 'c', 'fork');
    await forkConversation(store, 'fork', 'fork of it');
    const { agent, ask, echo } = await family(store);
    const fork = await agent.open('fork of it');
    expect(paths(fork)).toEqual(['p/x']);
    await fork.decide({ callId: 'x', action: 'approve' });
    expect((await fork.resume().result).text).toBe('done');
    expect([ask.ran, echo.ran]).toEqual([['x'], []]);
    await agent.close();
  });
});

describe("a fork of a sub-agent's own log", () => {
  it('it is independent: it can be used alone, and is listed', async () => {
    const { store } = await waiting();
    const child = childOf('p', 'a');
    await forkConversation(store, child, 'own');
    const { agent, ask } = await family(store);
    const [own, kept] = [await agent.open('own'), await agent.open(child)];
    expect(() => kept.send('hi')).toThrow('is a sub-agent of c');
    expect((await kept.resume().result).error).toEqual({
      code: 'configuration',
      message: 'a sub-agent is resumed by its parent',
    });
    expect(own.log()[0]).not.toHaveProperty('parent');
    expect([own.status, own.pending.map(({ callId }) => callId)]).toEqual(['waiting', ['x']]);
    expect(await own.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    await own.resume().result;
    expect(ask.ran).toEqual(['x']);
    expect((await agent.list()).map(({ id }) => id).sort()).toEqual(['c', 'own']);
    await agent.close();
  });
});

describe('a fork of a conversation whose sub-agents have started', () => {
  it('at no entry does it repeat recorded work of a sub-agent, and it continues to its end', async () => {
    const { store, log } = await waiting({ decided: true });
    const knows = (until: number, task: string, phase: string): boolean =>
      reportLines(log.slice(0, until)).includes(`${phase} ${childOf('p', task)}`);
    for (let until = 2; until <= log.length; until++) {
      await forkConversation(store, 'c', `fork ${until}`, until);
      const { agent, ask, echo } = await family(store);
      const fork = await agent.open(`fork ${until}`);
      await fork.resume().result;
      for (const { callId } of fork.pending) await fork.decide({ callId, action: 'approve' });
      const { text } = await fork.resume().result;
      const did = [...ask.ran, ...echo.ran];
      expect([until, fork.status, fork.pending]).toEqual([until, 'idle', []]);
      expect(['', 'done']).toContain(text);
      if (knows(until, 'a', 'started')) expect(did).not.toContain('w');
      if (knows(until, 'b', 'started')) expect(did).not.toContain('e');
      if (knows(until, 'a', 'ended')) expect(did).toEqual([]);
      expect(new Set(did).size).toBe(did.length);
      await agent.close();
    }
  });

  it('it names its own copies of their logs, each with the fork as its parent, and counts their usage once', async () => {
    const { store, log } = await waiting({ decided: true });
    await forkConversation(store, 'c', 'fork');
    const forked = await logOf(store, 'fork');
    expect(reportLines(forked)).toHaveLength(reportLines(log).length);
    expect(kinOf(forked).filter((id) => kinOf(log).includes(id))).toEqual([]);
    for (const [index, id] of kinOf(forked).entries()) {
      const [own, other] = [await logOf(store, id), await logOf(store, kinOf(log)[index] ?? '')];
      expect(own[0]).toMatchObject({ type: 'conversation', parent: { conversationId: 'fork', callId: 'p' } });
      expect(own.map(({ type }) => type)).toEqual(other.map(({ type }) => type));
      expect(new Set(own.map(({ conversationId }) => conversationId))).toEqual(new Set([id]));
      const usage = forked.flatMap((each) => (each.type === 'extension' ? [each.value] : []));
      expect(usage).toContainEqual(expect.objectContaining({ conversationId: id }));
    }
    const { agent } = await family(store);
    const fork = await agent.open('fork');
    expect(fork.log()).toEqual(forked);
    expect((await agent.list()).map(({ id }) => id).sort()).toEqual(['c', 'fork']);
    await agent.close();
  });

  it('an incomplete fork leaves nothing, and succeeds later', async () => {
    const place = await mkdtemp(join(tmpdir(), 'runchart-forks-'));
    const files = async () => (await readdir(place)).filter((name) => name.endsWith('.jsonl')).sort();
    try {
      const { store } = await waiting({ store: jsonlStore(place) });
      const before = await files();
      const held = await store.open(childOf('p', 'b'));
      await expect(forkConversation(store, 'c', 'fork')).rejects.toMatchObject({ code: 'session_busy' });
      await held.close();
      expect(await files()).toEqual(before);
      await forkConversation(store, 'c', 'fork');
      // The remaining logs of a deleted conversation's sub-agents block nothing.
      await store.delete('fork');
      await forkConversation(store, 'c', 'fork');
      expect(await files()).toHaveLength(2 * before.length);
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  });
});
