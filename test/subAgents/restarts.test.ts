/** Sub-agents whose process ends: a waiting call waits again, and no finished work is repeated. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAgent, type PendingCall, SessionBusyError, subAgents } from '../../src/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { bench, entry, only, restart, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, type Reply, scripted } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, storeOf, submit, watched } from '../support/subAgentBench.ts';
import { flush } from '../support/virtualClock.ts';

const asking = (id: string): Reply => [call(id, 'ask', { m: id })];
const paths = (pending: readonly PendingCall[]): string[] => pending.map(({ path }) => path.join('/'));

describe('a restart, with a store of files', () => {
  let place = '';
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'runchart-sub-agents-'));
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  it("B14: the inner call is pending again with its path, resumes in place, and finished sub-agents' work is not repeated", async () => {
    const ask = echoTool('ask');
    const echo = echoTool();
    const scripts = (x: Reply[], y: Reply[]) =>
      byTask({ alpha: x, beta: [[call('e', 'echo', { m: 'once' })], [submit('s', 'B')]], gamma: y });
    const before = await bench({
      store: jsonlStore(place),
      replies: [[spawn('p', 'alpha', 'beta', 'gamma')]],
      tools: [ask.tool, echo.tool, subAgents({ model: scripts([asking('x')], [asking('y')]) })],
      plugins: [asks().plugin],
    });
    await before.conversation.send('hi').result;
    expect(paths(before.conversation.pending).sort()).toEqual(['p/x', 'p/y']);

    const model = scripts([[submit('s', 'A')]], [[submit('s', 'C')]]);
    const options = { tools: [ask.tool, echo.tool, subAgents({ model })], plugins: [asks().plugin] };
    const second = await restart(before, options);
    expect(second.conversation.status).toBe('waiting');
    expect(paths(second.conversation.pending).sort()).toEqual(['p/x', 'p/y']);
    expect(await second.conversation.decide({ callId: 'x', suspension: 1, action: 'approve' })).toBe('applied');
    expect(ask.ran).toEqual([]);
    const again = await second.conversation.resume().result;
    expect([again.termination, paths(again.pending)]).toEqual(['Suspended', ['p/y']]);
    expect(ask.ran).toEqual(['x']);

    // Decided, and another process continues it.
    await second.conversation.decide({ callId: 'y', action: 'approve' });
    const third = await restart(second, { ...options, replies: ['done'] });
    expect([third.conversation.status, third.conversation.pending]).toEqual(['waiting', []]);
    expect(only(third.conversation.log(), 'decision')).toEqual(['decision p 1', 'decision p 2']);
    expect((await third.conversation.resume().result).text).toBe('done');
    expect([ask.ran, echo.ran]).toEqual([['x', 'y'], ['e']]);
    expect(model.of('beta').calls).toHaveLength(0);
    expect(reported(third.conversation.log(), 'p').map(({ id, text }) => `${id} ${text}`)).toEqual([
      'b B',
      'a A',
      'g C',
    ]);
    expect(only(third.conversation.log(), 'sub-agent')).toHaveLength(6);
    expect((await third.agent.list()).map(({ id }) => id)).toEqual(['c']);
    await third.agent.close();
  });

  it('B14: resume() applies a decision that was durable in the sub-agent when the process died', async () => {
    const ask = echoTool('ask');
    const store = jsonlStore(join(place, 'died'));
    const before = await bench({
      store,
      replies: [[spawn('p', 'alpha')]],
      tools: [ask.tool, subAgents({ model: byTask({ alpha: [asking('x')] }) })],
      plugins: [asks().plugin],
    });
    await before.conversation.send('hi').result;
    const { runId } = await entry(before.conversation, 'run-suspended');
    await before.agent.close();
    const handle = await store.open(childOf('p', 'a'));
    const log = [];
    for await (const each of handle.read()) log.push(each);
    const decision = { callId: 'x', action: 'approve' } as const;
    const at = log.length;
    await handle.append(
      [
        {
          seq: at,
          at: 1,
          conversationId: childOf('p', 'a'),
          runId: log.at(-1)?.runId ?? null,
          type: 'decision',
          callId: 'x',
          suspension: 1,
          decision,
        },
      ],
      at,
    );
    await handle.close();
    // The id is that of a call of the parent, made by another process.
    const model = byTask({ alpha: [[submit('p', 'A')]] });
    const after = await restart(before, {
      replies: ['done'],
      tools: [ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    expect(story(after.conversation.log()).at(-1)).toBe('decision p 1');
    expect(after.conversation.log().at(-1)?.runId).toBe(runId);
    expect([after.conversation.status, after.conversation.pending]).toEqual(['waiting', []]);
    expect((await after.conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
    await after.agent.close();
    expect(only(await logOf(store, childOf('p', 'a')), 'tool-result').at(-1)).toBe('tool-result p_2 succeeded');
  });
});

describe('the death of a process while sub-agents work', () => {
  async function died() {
    const { store, copy } = watched();
    const [gate, echo] = [gateTool(), echoTool()];
    const model = byTask({
      alpha: [[call('e', 'echo', { m: 'once' })], [submit('s', 'A')]],
      beta: [[call('g', 'gate')]],
      gamma: [[call('h', 'gate')]],
    });
    const before = await bench({
      store,
      replies: [[spawn('p', 'alpha', 'beta', 'gamma')]],
      tools: [gate.tool, echo.tool, subAgents({ model, maxSubAgents: 2 })],
    });
    before.conversation.send('hi');
    await gate.begun('g');
    await gate.begun('h');
    return { logs: copy(), echo };
  }

  it('resume() runs the spawn call again: ended work is read, interrupted work continues, and no inner call runs twice', async () => {
    const { logs, echo } = await died();
    const gate = gateTool();
    const model = byTask({ alpha: [], beta: [[submit('s', 'B')]], gamma: [[submit('s', 'C')]] });
    const tools = [gate.tool, echo.tool, subAgents({ model })];
    const { conversation, store } = await bench({ store: await storeOf(logs), replies: ['done'], tools });
    expect(conversation.status).toBe('idle');
    // The spawn call itself can run again; calls within it cannot.
    expect(paths(conversation.unsettled)).toEqual(['p/g', 'p/h']);
    expect((await conversation.resume().result).text).toBe('done');
    expect(reported(conversation.log(), 'p').map(({ id, text }) => `${id} ${text}`)).toEqual(['a A', 'b B', 'g C']);
    expect([gate.started, echo.ran, model.of('alpha').calls]).toEqual([[], ['e'], []]);
    expect(only(conversation.log(), 'sub-agent')).toHaveLength(6);
    const log = await logOf(store, childOf('p', 'b'));
    expect(only(log, 'tool-result', 'run-stop')).toEqual([
      'tool-result g unknown',
      'run-stop interrupted crash',
      'tool-result s succeeded',
      'run-stop completed submit_result',
    ]);
  });

  it('an interrupted sub-agent is read from outside unchanged: nothing is written', async () => {
    const { logs } = await died();
    const store = await storeOf(logs);
    const child = await createAgent({ model: scripted([]), store }).open(childOf('p', 'b'));
    expect(child.log()).toEqual(logs[childOf('p', 'b')]);
    await child.close();
    expect(await logOf(store, childOf('p', 'b'))).toEqual(logs[childOf('p', 'b')]);
  });

  it('a new request ends them: the call is unknown, and each log has its stop', async () => {
    const { logs, echo } = await died();
    const tools = [gateTool().tool, echo.tool, subAgents({ model: byTask({}) })];
    const { conversation, store } = await bench({ store: await storeOf(logs), replies: ['answer'], tools });
    expect((await conversation.send('something else').result).text).toBe('answer');
    await conversation.close();
    const log = await logOf(store, 'c');
    expect(only(log, 'tool-result')).toEqual(['tool-result p unknown']);
    expect(log.filter((each) => each.type === 'sub-agent' && each.phase === 'ended')).toHaveLength(3);
    for (const id of ['b', 'g']) {
      expect(only(await logOf(store, childOf('p', id)), 'run-stop')).toEqual(['run-stop interrupted crash']);
    }
  });

  it('sub-agents of a call with a result are stopped when their parent is opened', async () => {
    const { logs, echo } = await died();
    const log = logs.c ?? [];
    const runId = log.at(-1)?.runId ?? null;
    const base = { at: 1, conversationId: 'c', runId };
    log.push({
      ...base,
      seq: log.length,
      type: 'tool-result',
      callId: 'p',
      outcome: 'cancelled',
      content: [],
      code: 'cancelled',
    });
    log.push({ ...base, seq: log.length, type: 'run-stop', reason: 'interrupted', cause: 'cancelled' });
    const tools = [gateTool().tool, echo.tool, subAgents({ model: byTask({}) })];
    const { conversation, store } = await bench({ store: await storeOf(logs), tools });
    const ended = conversation.log().filter((each) => each.type === 'sub-agent' && each.phase === 'ended');
    expect(ended).toHaveLength(3);
    expect(only(await logOf(store, childOf('p', 'b')), 'run-stop')).toEqual(['run-stop interrupted crash']);
    await conversation.close();
  });

  it('a sub-agent that waited when its siblings were interrupted is pending, and accepts its decision before resume()', async () => {
    const { store, copy } = watched();
    const [gate, ask] = [gateTool(), echoTool('ask')];
    const before = await bench({
      store,
      replies: [[spawn('p', 'alpha', 'beta')]],
      tools: [gate.tool, ask.tool, subAgents({ model: byTask({ alpha: [asking('x')], beta: [[call('g', 'gate')]] }) })],
      plugins: [asks().plugin],
    });
    before.conversation.send('hi');
    await gate.begun('g');
    await expect.poll(() => before.conversation.pending).toHaveLength(1);
    const model = byTask({ alpha: [[submit('s', 'A')]], beta: [[submit('s', 'B')]] });
    const tools = [gate.tool, ask.tool, subAgents({ model })];
    const options = { replies: ['done'], tools, plugins: [asks().plugin] };
    const after = await bench({ ...options, store: await storeOf(copy()) });
    expect([after.conversation.status, paths(after.conversation.pending)]).toEqual(['idle', ['p/x']]);
    expect(await after.conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    // Nothing of it starts automatically while its parent is idle.
    const third = await restart(after, { ...options, policies: { onRestart: 'replayDecided' } });
    await flush();
    expect([third.conversation.status, ask.ran]).toEqual(['idle', []]);
    expect((await third.conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
    const reports = reported(third.conversation.log(), 'p').map(({ id, text }) => `${id} ${text}`);
    expect(reports.sort()).toEqual(['a A', 'b B']);
  });

  it("a parent is busy while another holder has its sub-agent's log, and free again later", async () => {
    const ask = echoTool('ask');
    const tools = [ask.tool, subAgents({ model: byTask({ alpha: [asking('x')] }) })];
    const before = await bench({ replies: [[spawn('p', 'alpha')]], tools, plugins: [asks().plugin] });
    await before.conversation.send('hi').result;
    await before.conversation.close();
    const held = await before.store.open(childOf('p', 'a'));
    await expect(before.agent.open('c')).rejects.toThrow(SessionBusyError);
    await held.close();
    const again = await before.agent.open('c');
    expect(paths(again.pending)).toEqual(['p/x']);
    await again.close();
  });
});
