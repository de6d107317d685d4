/** The properties of a call in a view besides its result: its state, its executed arguments, its decider. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createProjector, project, type ToolCallView } from '../../src/projector/index.ts';
import { type Bench, bench, restart, storeWith } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';
import { log } from './arbitraries.ts';
import { A, C, callIn, callsOf, decided, S, started, suspendedCall, T, U } from './events.ts';

const resumed = { type: 'run-resumed', of: 'r1' };
const settled = (callId: string, how: object) => ({ type: 'call-settled', callId, how });

/** The state of `a` after each event, as one word a change. */
function statesOf(events: readonly unknown[]): string[] {
  const states = events.map((_, i) => callIn(project(events.slice(0, i + 1)), 'a')?.state ?? 'none');
  return states.filter((state, i) => state !== states[i - 1]);
}
const shown = ({ conversation }: Bench, callId = 'c1') => {
  const found = callIn(conversation.view(), callId);
  return found && [found.state, found.ranArgs ?? null, found.decidedBy ?? null, found.result?.outcome ?? null];
};

describe('the state of a call', () => {
  it('it is waiting before its turn, running after its start, and ended with its result', () => {
    expect(statesOf([U('q'), C('a'), started('a'), T('a'), S()])).toEqual(['none', 'waiting', 'running', 'ended']);
  });

  it('it is waiting from its suspension until it is started again', () => {
    const before = [U('q'), C('a'), started('a'), suspendedCall('a'), decided('a')];
    const states = ['none', 'waiting', 'running', 'waiting'];
    expect(statesOf(before)).toEqual(states);
    expect(statesOf([...before, resumed, started('a'), T('a')])).toEqual([...states, 'running', 'ended']);
  });

  it('it is waiting after a stop without a result, and running again in the resumed cycle', () => {
    const events = [U('q'), C('a'), started('a'), S('interrupted', 'crash'), resumed, started('a'), T('a')];
    expect(statesOf(events)).toEqual(['none', 'waiting', 'running', 'waiting', 'running', 'ended']);
  });

  it('it is ended with an unknown outcome, settled or retried: there is a result, which the next one replaces', () => {
    const unknown = [U('q'), C('a'), started('a'), T('a', 'may have run', 'unknown'), S('interrupted', 'crash')];
    const ends = ['none', 'waiting', 'running', 'ended'];
    for (const how of [{ ran: 'yes' }, { didNotRun: true }]) {
      expect(statesOf([...unknown, settled('a', how)])).toEqual(ends);
    }
    const again = [...unknown, settled('a', { retry: true }), resumed, started('a', { args: { b: 1 } })];
    expect(statesOf([...again, T('a')])).toEqual(ends);
    expect(callIn(project(again), 'a')).toMatchObject({ ranArgs: { b: 1 }, result: { outcome: 'unknown' } });
    expect(callIn(project([...again, T('a')]), 'a')).toMatchObject({ result: { outcome: 'succeeded' } });
  });

  it('in a log of calls and results only, the result alone determines it', () => {
    const view = project([U('q'), C('a'), C('b'), T('a'), S()]);
    expect(callsOf(view).map(({ state }) => state)).toEqual(['ended', 'waiting']);
  });

  it('it is the same in the steps and in the rounds, and earlier views do not change', () => {
    const projector = createProjector();
    const views = [U('q'), C('a'), started('a'), T('a'), A('x')].map((event) => {
      projector.push(event);
      return projector.view();
    });
    const inRounds = views.map((view) => view.cycles[0]?.rounds[0]?.output.calls[0]?.state);
    expect(inRounds).toEqual([undefined, 'waiting', 'running', 'ended', 'ended']);
    expect(views.map((view) => callIn(view, 'a')?.state)).toEqual(inRounds);
    expect(views.at(-1)?.cycles[0]?.rounds[1]?.input.results[0]).toBe(callIn(views.at(-1) ?? project([]), 'a'));
  });

  it('in every log it is `ended` exactly with a result, and `running` only after a start', () => {
    fc.assert(
      fc.property(log, (entries) => {
        const begun = new Set(entries.flatMap((each) => ('idempotencyKey' in each ? [each.callId] : [])));
        for (const { callId, state, result, ranArgs } of callsOf(project(entries))) {
          expect(state === 'ended').toBe(result !== null);
          if (state === 'running' || ranArgs !== undefined) expect(begun).toContain(callId);
        }
      }),
    );
  });
});

describe('executed arguments and deciders', () => {
  const asked = [U('q'), C('a', 'write', { m: 'a' }), suspendedCall('a')];
  const viewed = (...events: unknown[]): ToolCallView | undefined => callIn(project([...asked, ...events]), 'a');

  it("they are shown if they differ from the model's", () => {
    expect(viewed(started('a'))).not.toHaveProperty('ranArgs');
    expect(viewed(started('a', { args: { m: 'a' } }))).not.toHaveProperty('ranArgs');
    expect(viewed(started('a', { args: { m: 'b' } }), T('a'))).toMatchObject({ args: { m: 'a' }, ranArgs: { m: 'b' } });
  });

  it('the first decision on this suspension counts, and an early one counts when the call waits for it', () => {
    expect(viewed(decided('a'))).not.toHaveProperty('decidedBy');
    expect(viewed(decided('a', 1, { by: 'ada' }), decided('a', 1, { by: 'bob' }))?.decidedBy).toBe('ada');
    const early = [U('q'), C('a'), decided('a', 1, { by: 'ada' })];
    expect(callIn(project(early), 'a')).not.toHaveProperty('decidedBy');
    expect(callIn(project([...early, started('a'), T('a'), S()]), 'a')).not.toHaveProperty('decidedBy');
    expect(callIn(project([...early, suspendedCall('a')]), 'a')?.decidedBy).toBe('ada');
  });

  it('they are hidden for a call that waits for another decision', () => {
    const again = [decided('a', 1, { by: 'ada' }), started('a'), suspendedCall('a', 2)];
    expect(viewed(...again)).not.toHaveProperty('decidedBy');
    expect(viewed(...again, decided('a', 2, { by: 'bob' }), T('a'))?.decidedBy).toBe('bob');
  });
});

describe('a conversation shows calls', () => {
  it('an edited call has its arguments and its editor, before it runs, after it and after a restart', async () => {
    const { tool } = echoTool('ask');
    const on = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })], 'done'],
      tools: [tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    expect(shown(on)).toEqual(['waiting', null, null, null]);
    await on.conversation.decide({ callId: 'c1', action: 'edit', args: { m: 'b' }, by: 'ada' });
    expect(shown(on)).toEqual(['waiting', null, 'ada', null]);
    await on.conversation.resume().result;
    const after = ['ended', { m: 'b' }, 'ada', 'succeeded'];
    expect(shown(on)).toEqual(after);
    const view = on.conversation.view();
    const later = await restart(on, { tools: [tool] });
    expect(later.conversation.view()).toEqual(view);
    expect(shown(later)).toEqual(after);
  });

  it('a denied call is ended, with its decider and no executed arguments', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })], 'done'],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    await on.conversation.decide({ callId: 'c1', action: 'deny', by: 'ada' });
    await on.conversation.resume().result;
    expect(shown(on)).toEqual(['ended', null, 'ada', 'failed']);
  });

  it.each([
    [false, ['ended', null, null, 'unknown']],
    [true, ['waiting', null, null, null]],
  ])(
    'a call that a crash interrupted, idempotent %s, has the outcome of the next process',
    async (idempotent, next) => {
      const gate = gateTool('gate', { idempotent });
      const first = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool] });
      first.conversation.send('hi');
      await gate.begun('c1');
      expect(shown(first)).toEqual(['running', null, null, null]);
      const store = await storeWith(first.conversation.log());
      const again = gateTool('gate', { idempotent });
      const second = await bench({ store, replies: ['done'], tools: [again.tool] });
      expect(shown(second)).toEqual(next);
      expect(second.conversation.view()).toEqual(project(second.conversation.log()));
      if (!idempotent) return;
      const run = second.conversation.resume();
      await again.begun('c1');
      expect(shown(second)?.[0]).toBe('running');
      again.release('c1');
      await run.result;
      expect(shown(second)).toEqual(['ended', null, null, 'succeeded']);
    },
  );
});
