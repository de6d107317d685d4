/** A cancel while sub-agents work (docs/internals/contracts.md, REQ-BED-005). */
import { describe, expect, it } from 'vitest';
import { memoryStore, subAgents } from '../../src/index.ts';
import { bench, entry, only, types } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const stop = 'run-stop interrupted cancelled';

describe('cancel', () => {
  it('it reaches the sub-agents in reverse order of their start, before anything else happens', async () => {
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g1', 'gate')]], beta: [[call('g2', 'gate')]], gamma: [deaf()] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha', 'beta', 'gamma')]],
      tools: [gate.tool, subAgents({ model })],
    });
    const run = conversation.send('hi');
    await gate.begun('g1');
    await gate.begun('g2');
    const aborted: string[] = [];
    const note = (id: string, signal: AbortSignal | undefined) => {
      expect(signal?.aborted).toBe(false);
      signal?.addEventListener('abort', () => aborted.push(id));
    };
    for (const id of ['g1', 'g2']) note(id, gate.context(id).signal);
    note('gamma', model.of('gamma').signals[0]);
    const cancelled = conversation.cancel();
    expect(aborted).toEqual(['gamma', 'g2', 'g1']);
    await cancelled;
    expect(await run.result).toMatchObject({
      termination: 'Cancelled',
      calls: [{ callId: 'p', outcome: 'cancelled' }],
    });
    await conversation.close();
    expect(only(await logOf(store, 'c'), 'tool-result', 'run-stop')).toEqual([
      'tool-result p cancelled cancelled',
      stop,
    ]);
    for (const id of ['a', 'b', 'g']) {
      expect(only(await logOf(store, childOf('p', id)), 'run-stop')).toEqual([stop]);
    }
    expect(
      (await logOf(store, 'c')).filter((each) => each.type === 'sub-agent' && each.phase === 'ended'),
    ).toHaveLength(3);
  });

  it('it ends within 100 ms of virtual time with tools and models that ignore it, and leaves neither timer nor actor', async () => {
    const clock = new VirtualClock();
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g', 'gate')]], beta: [deaf()] });
    const store = troubledStore({ clock });
    const { conversation, alive } = await bench({
      clock,
      store,
      replies: [[spawn('p', 'alpha', 'beta')]],
      tools: [gate.tool, subAgents({ model })],
    });
    store.trouble(() => ({ afterMs: 5 }));
    conversation.send('hi');
    await clock.until(gate.begun('g'));
    await clock.advance(50);
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect(conversation.status).toBe('idle');
    await clock.until(conversation.close());
    expect([clock.waiting, alive()]).toEqual([0, []]);
  });

  it('it skips tasks that wait for a slot: none of them starts', async () => {
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g', 'gate')]], beta: [] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')]],
      tools: [gate.tool, subAgents({ model, maxSubAgents: 1 })],
    });
    conversation.send('hi');
    await gate.begun('g');
    await conversation.cancel();
    await conversation.close();
    expect(model.of('beta').calls).toHaveLength(0);
    expect(await logOf(store, childOf('p', 'b'))).toEqual([]);
    expect(only(await logOf(store, 'c'), 'sub-agent')).toHaveLength(2);
  });

  it('a late result of a tool of a cancelled sub-agent is only a diagnostic in its own log', async () => {
    const gate = gateTool();
    const store = memoryStore();
    const model = byTask({ alpha: [[call('g', 'gate')]] });
    const { conversation } = await bench({
      store,
      replies: [[spawn('p', 'alpha')]],
      tools: [gate.tool, subAgents({ model })],
    });
    conversation.send('hi');
    await gate.begun('g');
    await conversation.cancel();
    await entry(conversation, 'sub-agent', ({ phase }) => phase === 'ended');
    const before = conversation.log();
    gate.release('g');
    await conversation.close();
    expect(conversation.log()).toEqual(before);
    expect(types(await logOf(store, childOf('p', 'a')))).not.toContain('run-resumed');
  });

  it('the deadline of the parent ends its sub-agents too', async () => {
    const clock = new VirtualClock();
    const model = byTask({ alpha: [deaf()] });
    const { conversation, store } = await bench({
      clock,
      replies: [[spawn('p', 'alpha')]],
      tools: [subAgents({ model, limits: { runMs: 9000 } })],
      policies: { limits: { runMs: 1000 } },
    });
    const run = conversation.send('hi');
    await clock.advance(1000);
    expect(await run.result).toMatchObject({ termination: 'Cancelled', cause: 'timeout' });
    await conversation.close();
    expect(only(await logOf(store, childOf('p', 'a')), 'run-stop')).toEqual([stop]);
  });

  it('a resume of a cancelled run does not continue its sub-agents: their call has its result', async () => {
    const gate = gateTool();
    const model = byTask({ alpha: [[call('g', 'gate')]] });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'went on'],
      tools: [gate.tool, subAgents({ model })],
    });
    conversation.send('hi');
    await gate.begun('g');
    await conversation.cancel();
    expect((await conversation.resume().result).text).toBe('went on');
    expect(model.of('alpha').calls).toHaveLength(1);
  });

  it('a denial of the spawn call itself, and a message in place of decisions, end the calls that wait within it', async () => {
    for (const way of ['deny', 'supersede'] as const) {
      const ask = echoTool('ask');
      const model = byTask({ alpha: [[call('x', 'ask', { m: 'x' })]] });
      const { conversation, store } = await bench({
        replies: [[spawn('p', 'alpha')], 'done'],
        tools: [ask.tool, subAgents({ model })],
        plugins: [asks().plugin],
        policies: { whileSuspended: 'denyAndRun' },
      });
      await conversation.send('hi').result;
      if (way === 'deny') await conversation.decide({ callId: 'p', action: 'deny' });
      const run = way === 'deny' ? conversation.resume() : conversation.send('something else');
      expect((await run.result).text).toBe('done');
      expect(conversation.pending).toEqual([]);
      await conversation.close();
      expect(only(await logOf(store, 'c'), 'tool-result')).toEqual(['tool-result p failed denied']);
      expect(only(await logOf(store, childOf('p', 'a')), 'run-stop')).toEqual([stop]);
    }
  });
});

describe('a failing store', () => {
  it('below a sub-agent it fails that one, and its parent receives this result and continues', async () => {
    const store = troubledStore({ synchronous: true });
    store.trouble((entries) =>
      entries.some(({ conversationId, type }) => conversationId === childOf('p', 'a') && type === 'model-reply')
        ? 'failed'
        : 'stored',
    );
    const model = byTask({ alpha: [[submit('s', 'A')]], beta: [[submit('s', 'B')]] });
    const { conversation } = await bench({
      store,
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [subAgents({ model })],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    const outcomes = new Map(reported(conversation.log(), 'p').map(({ id, outcome }) => [id, outcome]));
    expect([outcomes.get('a'), outcomes.get('b')]).toEqual(['failed', 'succeeded']);
  });

  it('below the parent it ends the run with the error, and the sub-agents with it', async () => {
    const store = troubledStore({ synchronous: true });
    const gate = gateTool();
    const model = byTask({ alpha: [[submit('s', 'A')]], beta: [[call('g', 'gate')]] });
    const { conversation } = await bench({
      store,
      replies: [[spawn('p', 'alpha', 'beta')]],
      tools: [gate.tool, subAgents({ model })],
    });
    store.trouble((entries) =>
      entries.some((each) => each.type === 'sub-agent' && each.phase === 'ended') ? 'failed' : 'stored',
    );
    expect(await conversation.send('hi').result).toMatchObject({ termination: 'Error', cause: 'store' });
    await conversation.close();
    expect(only(await logOf(store, childOf('p', 'a')), 'run-stop')).toEqual(['run-stop completed submit_result']);
    expect(only(await logOf(store, childOf('p', 'b')), 'run-stop')).toEqual([stop]);
  });
});

describe('waiting sub-agents whose ends the log of the parent cannot hold', () => {
  it('are all stopped and released, and their parent can be opened again', async () => {
    const store = troubledStore();
    const ask = asks();
    const model = byTask({ alpha: [[call('x', 'ask', { m: 'x' })]], beta: [[call('y', 'ask', { m: 'y' })]] });
    const options = { store, tools: [echoTool('ask').tool, subAgents({ model })], plugins: [ask.plugin] };
    const before = await bench({ ...options, replies: [[spawn('p', 'alpha', 'beta')]] });
    expect((await before.conversation.send('hi').result).pending).toHaveLength(2);
    store.trouble((entries) => (entries.some(({ type }) => type === 'sub-agent') ? 'failed' : 'stored'));
    await before.conversation.cancel();
    await before.agent.close();
    store.trouble(() => 'stored');
    for (const task of ['a', 'b']) expect(only(await logOf(store, childOf('p', task)), 'run-stop')).toEqual([stop]);
    const { conversation } = await bench({ ...options, replies: ['done'] });
    expect((await conversation.send('again').result).text).toBe('done');
    await conversation.close();
  });
});

describe('the slots of sub-agents', () => {
  const limits = { subAgents: 2 };
  const eventually = (name: string) => [during(() => undefined, [submit('s', name)])];

  it('all are free after a cancel while others waited for one: the same number works at once again', async () => {
    const gate = gateTool();
    const [w, x] = ['w', 'x'].map((id) => [call(id, 'gate')]);
    const model = byTask({
      alpha: [[call('g1', 'gate')]],
      beta: [[call('g2', 'gate')]],
      gamma: eventually('C'),
      delta: eventually('D'),
      omega: [w ?? [], [submit('s1', 'O')]],
      sigma: [x ?? [], [submit('s2', 'S')]],
    });
    const { conversation } = await bench({
      policies: { limits },
      replies: [[spawn('p', 'alpha', 'beta'), spawn('q', 'gamma', 'delta')], [spawn('r', 'omega', 'sigma')], 'done'],
      tools: [gate.tool, subAgents({ model })],
    });
    conversation.send('hi');
    await Promise.all([gate.begun('g1'), gate.begun('g2')]);
    await conversation.cancel();
    expect([model.of('gamma').calls, model.of('delta').calls]).toEqual([[], []]);
    const run = conversation.send('again');
    // Both at once: neither ends before the test permits it.
    await Promise.all([gate.begun('w'), gate.begun('x')]);
    for (const id of ['w', 'x']) gate.release(id);
    expect((await run.result).text).toBe('done');
    await conversation.close();
  });

  it('they are released even if the log of the parent cannot be written', async () => {
    const store = troubledStore();
    const model = byTask({ alpha: eventually('A'), beta: eventually('B') });
    const { conversation } = await bench({
      store,
      policies: { limits: { subAgents: 1 } },
      replies: [[spawn('p', 'alpha')], [spawn('q', 'beta')], 'done'],
      tools: [subAgents({ model })],
    });
    store.trouble((entries) => (entries.some(({ type }) => type === 'sub-agent') ? 'failed' : 'stored'));
    expect((await conversation.send('hi').result).termination).not.toBe('Completed');
    store.trouble(() => 'stored');
    expect((await conversation.send('again').result).text).toBe('done');
    expect(reported(conversation.log(), 'q').map(({ text }) => text)).toEqual(['B']);
    await conversation.close();
  });
});
