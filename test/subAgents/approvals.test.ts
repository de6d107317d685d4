/** Suspended calls of sub-agents: the root lists and decides them (docs/internals/lifecycle.md, Decision Replay). */
import { describe, expect, it } from 'vitest';
import { DecisionRefusedError, type LogStore, memoryStore, type PendingCall, subAgents } from '../../src/index.ts';
import { bench, entry, only, restart } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { byTask, childOf, logOf, reported, spawn, submit } from '../support/subAgentBench.ts';
import { troubledStore } from '../support/troubledStore.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

const asking = (id: string): Reply => [call(id, 'ask', { m: id })];
const paths = (pending: readonly PendingCall[]): string[] => pending.map(({ path }) => path.join('/'));
const reading = (store: LogStore) => (taskId: string) => logOf(store, childOf('p', taskId));

describe('while the spawn call runs', () => {
  it("B14: a sub-agent's call is pending at the root at once, with its path, and continues while siblings work", async () => {
    const [gate, ask] = [gateTool(), echoTool('ask')];
    const model = byTask({
      alpha: [asking('x'), [submit('s', 'A')]],
      beta: [[call('g', 'gate')], [submit('s', 'B')]],
    });
    const { conversation, model: parent } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [gate.tool, ask.tool, subAgents({ model })],
      plugins: [asks('ask', { reason: 'risky', payload: 1 }).plugin],
    });
    const progressUpdates: unknown[] = [];
    conversation.live$.subscribe((signal) => {
      if (signal.type === 'tool-progress' && signal.callId === 'p') progressUpdates.push(signal.update);
    });
    const run = conversation.send('hi');
    await gate.begun('g');
    await expect.poll(() => conversation.pending).toHaveLength(1);
    expect(progressUpdates).toEqual(['started', { waiting: ['x'] }]);
    expect(conversation.pending).toEqual([
      {
        callId: 'x',
        name: 'ask',
        args: { m: 'x' },
        reason: 'risky',
        payload: 1,
        suspension: 1,
        path: ['p', 'x'],
      },
    ]);
    expect(conversation.status).toBe('active');
    expect(await conversation.decide({ callId: 'x', suspension: 1, action: 'approve' })).toBe('applied');
    await entry(conversation, 'sub-agent', ({ phase }) => phase === 'ended');
    expect(ask.ran).toEqual(['x']);
    expect(conversation.pending).toEqual([]);
    gate.release('g');
    expect((await run.result).text).toBe('done');
    expect(reported(conversation.log(), 'p').map(({ id }) => id)).toEqual(['a', 'b']);
    expect(only(conversation.log(), 'tool-suspended', 'decision')).toEqual([]);
    expect(parent.calls).toHaveLength(2);
  });

  it('a decision at the very end of a run of the sub-agent continues it, like a later one', async () => {
    const ask = echoTool('ask');
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [ask.tool, subAgents({ model: byTask({ alpha: [asking('x'), [submit('s', 'A')]] }) })],
      plugins: [
        asks().plugin,
        {
          name: 'late',
          async runEnd({ conversationId, termination }) {
            if (conversationId === 'c' || termination !== 'Suspended') return;
            expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
          },
        },
      ],
    });
    expect((await conversation.send('hi').result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
    expect(reported(conversation.log(), 'p')[0]).toMatchObject({ outcome: 'succeeded', text: 'A' });
  });

  it('a decision while the parent records the usage of the sub-agent continues it', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const ask = echoTool('ask');
    const { conversation } = await bench({
      clock,
      store,
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [ask.tool, subAgents({ model: byTask({ alpha: [asking('x'), [submit('s', 'A')]] }) })],
      plugins: [asks().plugin],
    });
    store.trouble((entries) => (entries.some(({ type }) => type === 'extension') ? { afterMs: 50 } : 'stored'));
    const run = conversation.send('hi');
    await expect.poll(() => store.tried.at(-1)?.at(-1)?.type).toBe('extension');
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    await clock.until(run.result);
    expect(await run.result).toMatchObject({ termination: 'NaturalEnd', text: 'done' });
    expect(ask.ran).toEqual(['x']);
  });

  it('receipts are the usual ones: duplicate, conflict and stale also after the result, unknown for no call', async () => {
    const [gate, ask] = [gateTool(), echoTool('ask')];
    const model = byTask({ alpha: [asking('x'), [call('g', 'gate')], [submit('s', 'A')]] });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [gate.tool, ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    const first = await conversation.send('hi').result;
    expect([first.termination, paths(first.pending)]).toEqual(['Suspended', ['p/x']]);
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    const run = conversation.resume();
    await gate.begun('g');
    const later = async (): Promise<string[]> =>
      Promise.all([
        conversation.decide({ callId: 'x', action: 'approve' }),
        conversation.decide({ callId: 'x', action: 'deny' }),
        conversation.decide({ callId: 'x', suspension: 2, action: 'approve' }),
        conversation.decide({ callId: 'nobody', action: 'approve' }),
      ]);
    expect(await later()).toEqual(['duplicate', 'conflict', 'unknown', 'unknown']);
    gate.release('g');
    await run.result;
    expect(await later()).toEqual(['duplicate', 'conflict', 'unknown', 'unknown']);
    expect(ask.ran).toEqual(['x']);
  });

  it('authorize receives the call with its path, and a refused decision changes nothing', async () => {
    const ask = echoTool('ask');
    const seen: PendingCall[] = [];
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [ask.tool, subAgents({ model: byTask({ alpha: [asking('x')] }) })],
      plugins: [asks().plugin],
      authorize: (_, pending) => {
        seen.push(pending);
        return false;
      },
    });
    await conversation.send('hi').result;
    const before = conversation.log();
    await expect(conversation.decide({ callId: 'x', action: 'approve' })).rejects.toThrow(DecisionRefusedError);
    expect(paths(seen)).toEqual(['p/x']);
    expect(paths(conversation.pending)).toEqual(['p/x']);
    expect(conversation.log()).toEqual(before);
  });
});

describe('when all remaining calls wait', () => {
  it("the spawn call and the run are suspended; a denial reaches the sub-agent's model", async () => {
    const ask = echoTool('ask');
    const model = byTask({ alpha: [asking('x'), [submit('s', 'not allowed')]], beta: [[submit('s', 'B')]] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    const result = await conversation.send('hi').result;
    expect(result).toMatchObject({ termination: 'Suspended', pending: [{ callId: 'x', path: ['p', 'x'] }] });
    expect(conversation.status).toBe('waiting');
    const [suspended] = conversation.log().filter(({ type }) => type === 'tool-suspended');
    expect(suspended).toMatchObject({ reason: 'sub-agent', payload: { waiting: [{ id: 'a', calls: ['x'] }] } });
    expect(await conversation.decide({ callId: 'x', action: 'deny', reason: 'no' })).toBe('applied');
    expect(conversation.status).toBe('waiting');
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual([]);
    expect(reported(conversation.log(), 'p').map(({ id, text }) => `${id} ${text}`)).toEqual(['b B', 'a not allowed']);
    expect(only(conversation.log(), 'tool-suspended', 'decision', 'decision-consumed', 'tool-result')).toEqual([
      'tool-suspended p 1',
      'decision p 1',
      'tool-result p succeeded',
      'decision-consumed p 1',
    ]);
    await conversation.close();
    expect(only(await reading(store)('a'), 'tool-result')).toEqual([
      'tool-result x failed denied',
      'tool-result s succeeded',
    ]);
  });

  it('undecided calls wait again, and may be suspended one by one more often than limits.suspensionsPerCall', async () => {
    const ask = echoTool('ask');
    const many = ['x1', 'x2', 'x3', 'x4'];
    const model = byTask({
      alpha: [...many.map(asking), [submit('s', 'A')]],
      beta: [asking('y'), [submit('s', 'B')]],
    });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')], 'done'],
      tools: [ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
      policies: { limits: { suspensionsPerCall: 2 } },
    });
    let result = await conversation.send('hi').result;
    for (const callId of many) {
      expect(paths(result.pending).sort()).toEqual([`p/${callId}`, 'p/y']);
      expect(await conversation.decide({ callId, action: 'approve' })).toBe('applied');
      result = await conversation.resume().result;
    }
    expect(paths(result.pending)).toEqual(['p/y']);
    await conversation.decide({ callId: 'y', action: 'approve' });
    expect((await conversation.resume().result).text).toBe('done');
    expect(ask.ran).toEqual([...many, 'y']);
  });

  it('a resume without a decision calls no model and leaves every call waiting', async () => {
    const ask = echoTool('ask');
    const model = byTask({ alpha: [asking('x')] });
    const { conversation, model: parent } = await bench({
      replies: [[spawn('p', 'alpha')]],
      tools: [ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    await conversation.send('hi').result;
    expect(await conversation.resume().result).toMatchObject({ termination: 'Suspended', turns: 0 });
    expect(parent.calls).toHaveLength(1);
    expect(model.of('alpha').calls).toHaveLength(1);
    expect(paths(conversation.pending)).toEqual(['p/x']);
  });

  it('finished siblings of the spawn call continue the run to the model, and a decision meanwhile is applied at once', async () => {
    const [ask, echo, gate] = [echoTool('ask'), echoTool(), gateTool()];
    const model = byTask({ alpha: [asking('x'), [submit('s', 'A')]] });
    const { conversation } = await bench({
      replies: [[spawn('p', 'alpha'), call('e', 'echo', { m: 'x' })], [call('g', 'gate')], 'done'],
      tools: [ask.tool, echo.tool, gate.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    const run = conversation.send('hi');
    await gate.begun('g');
    expect(paths(conversation.pending)).toEqual(['p/x']);
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('applied');
    await entry(conversation, 'tool-result', ({ callId }) => callId === 'p');
    gate.release('g');
    expect((await run.result).text).toBe('done');
    expect(ask.ran).toEqual(['x']);
  });

  it('if nobody can be asked, a call of a sub-agent that needs approval is denied', async () => {
    const ask = echoTool('ask', { needsApproval: true });
    const model = byTask({ alpha: [asking('x'), [submit('s', 'denied, then')]] });
    const { agent } = await bench({
      replies: [[spawn('p', 'alpha')], 'done'],
      tools: [ask.tool, subAgents({ model })],
    });
    expect(await agent.run('hi')).toMatchObject({ text: 'done', pending: [] });
    expect(ask.ran).toEqual([]);
  });

  it.each([
    { id: 'b', task: 'beta' },
    { id: 'a', task: 'beta' },
  ])(
    'started tasks cannot be edited to %o: the call fails and its sub-agents end, without a report on other tasks',
    async (task) => {
      const ask = echoTool('ask');
      const model = byTask({ alpha: [asking('x')] });
      const { conversation, store } = await bench({
        replies: [[spawn('p', 'alpha')], 'done'],
        tools: [ask.tool, subAgents({ model })],
        plugins: [asks().plugin],
      });
      await conversation.send('hi').result;
      const args = { tasks: [task] };
      expect(await conversation.decide({ callId: 'p', action: 'edit', args })).toBe('applied');
      expect(await conversation.resume().result).toMatchObject({
        text: 'done',
        calls: [{ code: 'invalid_arguments' }],
      });
      expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('stale');
      await conversation.close();
      expect(only(await reading(store)('a'), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
    },
  );

  it('all are closed at once, also if the store does not release the log of the first one', async () => {
    const ask = echoTool('ask');
    const inner = memoryStore();
    const closed: string[] = [];
    const store: LogStore = {
      ...inner,
      async open(id, options) {
        const handle = await inner.open(id, options);
        const isSilent = id === childOf('p', 'a') || id === childOf('p', 'b');
        const close = async (): Promise<void> => {
          closed.push(id);
          await (isSilent ? new Promise(() => undefined) : handle.close());
        };
        return Object.assign(Object.create(handle), { close });
      },
    };
    const { conversation, clock } = await bench({
      store,
      replies: [[spawn('p', 'alpha', 'beta', 'gamma')]],
      tools: [
        ask.tool,
        subAgents({ model: byTask({ alpha: [asking('x')], beta: [asking('y')], gamma: [asking('z')] }) }),
      ],
      plugins: [asks().plugin],
    });
    await conversation.send('hi').result;
    const closing = conversation.close();
    await flush();
    expect(closed).toEqual(['a', 'b', 'g'].map((id) => childOf('p', id)));
    // Silent stores are waited for together.
    await clock.advance(5_000);
    await closing;
    expect(closed.at(-1)).toBe('c');
  });

  it('a cancel of waiting calls stops the sub-agents too, and later decisions are stale', async () => {
    const ask = echoTool('ask');
    const model = byTask({ alpha: [asking('x')], beta: [[submit('s', 'B')]] });
    const { conversation, store } = await bench({
      replies: [[spawn('p', 'alpha', 'beta')]],
      tools: [ask.tool, subAgents({ model })],
      plugins: [asks().plugin],
    });
    await conversation.send('hi').result;
    await conversation.cancel();
    expect(conversation.pending).toEqual([]);
    await entry(conversation, 'sub-agent', ({ phase, child }) => phase === 'ended' && child === childOf('p', 'a'));
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('stale');
    await conversation.close();
    expect(only(await reading(store)('a'), 'tool-result', 'run-stop')).toEqual([
      'tool-result x cancelled cancelled',
      'run-stop interrupted cancelled',
    ]);
  });
});

describe('the id of a call that was pending', () => {
  it.each([false, true])(
    'it is not used again after the end of its sub-agent, so an old answer decides nothing (after a restart: %s)',
    async (isRestarted) => {
      const ask = echoTool('ask');
      const replies: Reply[] = [[spawn('p', 'alpha')], [call('x', 'ask', { m: 'of the parent' })], 'done'];
      const options = {
        replies,
        tools: [ask.tool, subAgents({ model: byTask({ alpha: [asking('x')] }) })],
        plugins: [asks().plugin],
        policies: { whileSuspended: 'denyAndRun' as const },
      };
      let on = await bench(options);
      await on.conversation.send('hi').result;
      expect(paths(on.conversation.pending)).toEqual(['p/x']);
      if (isRestarted) on = await restart(on, { ...options, replies: replies.slice(1) });
      await on.conversation.send('something else').result;
      expect(paths(on.conversation.pending)).toEqual(['x_2']);
      expect(await on.conversation.decide({ callId: 'x', action: 'approve' })).toBe('stale');
      expect(await on.conversation.decide({ callId: 'x_2', action: 'approve' })).toBe('applied');
      expect((await on.conversation.resume().result).text).toBe('done');
      expect(ask.ran).toEqual(['x_2']);
    },
  );
});
