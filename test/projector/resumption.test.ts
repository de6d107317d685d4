/** Views of suspension, resumption and settlement (docs/internals/model.md, RequestCycle). */
import { describe, expect, it } from 'vitest';
import { createProjector, project } from '../../src/projector/index.ts';
import { A, C, callIn, codes, decided, parts, roundsOf, S, stamped, stepsOf, suspendedCall, T, U } from './events.ts';

const suspended = (...waiting: string[]) => ({ type: 'run-suspended', waiting });
const resumed = (of: string) => ({ type: 'run-resumed', of });
const settled = (callId: string, how: object) => ({ type: 'call-settled', callId, how });

describe('suspended cycles', () => {
  const first = stamped([U('q'), A('x'), C('a'), C('b'), suspendedCall('a'), suspendedCall('b'), suspended('a', 'b')]);

  it('a suspension is not a stop: the cycle stays open and lists the waiting calls', () => {
    const view = project(first);
    expect(view.state).toBe('active');
    expect(view.cycles[0]).toMatchObject({ stop: null, waiting: ['a', 'b'] });
  });

  it('a decision without a decider changes nothing in the view', () => {
    expect(project([...first, ...stamped([decided('a')], 'r1', first.length)])).toEqual(project(first));
  });

  it('the resumed run continues in the same cycle, which no longer waits', () => {
    const rest = stamped([decided('a'), resumed('r1'), T('a'), T('b'), A('done'), S()], 'r2', first.length);
    const view = project([...first, ...rest]);
    expect(view.cycles).toHaveLength(1);
    expect(stepsOf(view)).toEqual(['non-steer q', 'assistant x [read a b]', 'assistant done']);
    expect(view.cycles[0]).toMatchObject({ stop: { reason: 'completed' }, waiting: [] });
    expect(roundsOf(view)?.[1]?.results).toEqual(['a', 'b']);
    expect(view.diagnostics).toEqual([]);
  });

  it('a waiting call that receives its result no longer waits', () => {
    const view = project([...first, ...stamped([T('a', 'denied', 'failed')], 'r1', first.length)]);
    expect(view.cycles[0]?.waiting).toEqual(['b']);
  });

  it('a waiting cycle that is cancelled ends with its calls cancelled', () => {
    const rest = [T('a', '', 'cancelled'), T('b', '', 'cancelled'), S('interrupted', 'cancelled')];
    const view = project([...first, ...stamped(rest, 'r1', first.length)]);
    expect(view.state).toBe('idle');
    expect(view.cycles[0]).toMatchObject({ stop: { reason: 'interrupted', cause: 'cancelled' }, waiting: [] });
  });

  it('a suspension while nothing runs is an orphan', () => {
    expect(codes(project([suspended('a')]))).toEqual(['orphan']);
  });
});

describe('resumed cycles', () => {
  it('a resume removes the stop of the last cycle until the next stop', () => {
    const log = [...stamped([U('q'), A('x'), S('interrupted', 'crash')]), ...stamped([resumed('r1')], 'r2', 3)];
    const open = project(log);
    expect([open.state, open.cycles[0]?.stop]).toEqual(['active', null]);
    const closed = project([...log, ...stamped([A('y'), S()], 'r2', 4)]);
    expect(closed.cycles.map(({ stop }) => stop?.reason)).toEqual(['completed']);
    expect(stepsOf(closed)).toEqual(['non-steer q', 'assistant x', 'assistant y']);
  });

  it('a cycle before a later root does not reopen', () => {
    const log = [...stamped([U('q'), A('x'), S('error')]), ...stamped([U('p'), A('y'), S()], 'r2', 3)];
    const view = project([...log, ...stamped([resumed('r1'), A('z')], 'r3', 6)]);
    expect(view.cycles.map(({ stop }) => stop?.reason)).toEqual(['error', 'completed']);
    expect(codes(view)).toEqual(['not_last', 'orphan']);
  });

  it('if no entry names a run, the last cycle reopens', () => {
    const view = project([U('q'), S('error'), resumed('before'), A('z'), S()]);
    expect(view.cycles.map(({ stop }) => stop?.reason)).toEqual(['completed']);
    expect(view.diagnostics).toEqual([]);
  });

  it('a resume without a cycle is an orphan', () => {
    expect(project([resumed('r1')])).toMatchObject({ state: 'idle', cycles: [], diagnostics: [{ code: 'orphan' }] });
  });
});

describe('settled calls', () => {
  const crashed = stamped([U('q'), C('c1'), T('c1', 'may have run', 'unknown'), S('interrupted', 'crash')]);
  const thenComes = (...events: object[]) => project([...crashed, ...stamped(events, 'r1', crashed.length)]);

  it.each([
    ['a text', 'done', 'done'],
    ['a value', { ok: [1] }, '{"ok":[1]}'],
    ['null', null, 'null'],
  ])('a call that ran, with %s, has succeeded with it', (_, ran, text) => {
    expect(callIn(thenComes(settled('c1', { ran })), 'c1')?.result).toEqual({
      outcome: 'succeeded',
      content: parts(text),
    });
  });

  it('a call that did not run is cancelled', () => {
    expect(callIn(thenComes(settled('c1', { didNotRun: true })), 'c1')?.result).toEqual({
      outcome: 'cancelled',
      content: [],
    });
  });

  it('a retry leaves the outcome unknown until the new result', () => {
    const retry = settled('c1', { retry: true });
    expect(callIn(thenComes(retry), 'c1')?.result?.outcome).toBe('unknown');
    const view = thenComes(retry, resumed('r1'), T('c1', 'second'), T('c1', 'third'), A('done'), S());
    expect(callIn(view, 'c1')?.result).toEqual({ outcome: 'succeeded', content: parts('second') });
    expect(roundsOf(view)?.[1]?.results).toEqual(['c1']);
    expect(codes(view)).toEqual(['result_repeated']);
  });

  it('a settled call is not settled again, and an unknown id is an orphan', () => {
    const view = thenComes(settled('c1', { ran: 1 }), settled('c1', { ran: 2 }), settled('x', { ran: 1 }));
    expect(callIn(view, 'c1')?.result?.content).toEqual(parts('1'));
    expect(codes(view)).toEqual(['settled_already', 'orphan']);
  });

  it('a result that was input of a round is replaced there too', () => {
    const events = [U('q'), C('c1'), T('c1', '?', 'unknown'), A('I do not know'), S()];
    const projector = createProjector();
    for (const event of events) projector.push(event);
    const before = projector.view();
    expect(before.cycles[0]?.rounds[1]?.input.results[0]?.result?.outcome).toBe('unknown');
    projector.push(settled('c1', { ran: 'yes' }));
    const call = projector.view().cycles[0]?.rounds[1]?.input.results[0];
    expect(call?.result).toEqual({ outcome: 'succeeded', content: parts('yes') });
    expect(projector.view()).toEqual(project([...events, settled('c1', { ran: 'yes' })]));
    expect(before.cycles[0]?.rounds[1]?.input.results[0]?.result?.outcome).toBe('unknown');
  });

  it('a call of an earlier cycle is settled in its place', () => {
    const view = thenComes(U('p'), A('y'), settled('c1', { didNotRun: true }), S());
    expect(callIn(view, 'c1')?.result?.outcome).toBe('cancelled');
    expect(view.cycles).toHaveLength(2);
  });
});
