/** The projector with events that no healthy backend sends. No row throws. */
import { describe, expect, it } from 'vitest';
import { createProjector, project } from '../../src/projector/index.ts';
import { A, C, callIn, codes, R, S, stamped, stepsOf, T, U } from './events.ts';

const EMPTY = { state: 'idle', cycles: [], queued: [], diagnostics: [] };

describe('events that do not fit', () => {
  it('H-090 an empty list is an empty projection', () => {
    expect(project([])).toEqual(EMPTY);
    expect(createProjector().view()).toEqual(EMPTY);
  });

  it('H-091 a leading stop is one diagnostic and no cycle', () => {
    expect(project([S()])).toMatchObject({ ...EMPTY, diagnostics: [{ code: 'stop_while_idle' }] });
  });

  it.each([
    ['a text', A('x')],
    ['a reasoning', R('x')],
    ['a call', C('c1')],
    ['a result', T('c1')],
  ])('H-092 CYC-12 %s while idle is one orphan, and no cycle is created', (_, event) => {
    expect(project([event])).toMatchObject({ ...EMPTY, diagnostics: [{ code: 'orphan' }] });
    const view = project([U('q'), S(), event, U('p')]);
    expect([view.cycles.length, codes(view)]).toEqual([2, ['orphan']]);
  });

  it('H-093 a list that ends while active has an open cycle', () => {
    const view = project([U('q'), A('x')]);
    expect([view.state, view.cycles.length, view.cycles[0]?.stop]).toEqual(['active', 1, null]);
  });

  it('H-094 INV-3 the second of two stops is a diagnostic', () => {
    const view = project([U('q'), A('x'), S('interrupted'), S('error')]);
    expect(view.cycles.map(({ stop }) => stop)).toEqual([{ reason: 'interrupted' }]);
    expect(codes(view)).toEqual(['stop_while_idle']);
  });

  it('H-095 a message without kind is classified by policy, the same on every run', () => {
    const log = [U('q'), A('x'), U('p'), A('y'), S()];
    expect(stepsOf(project(log), 0)).toEqual(['non-steer q', 'assistant x', 'assistant y']);
    expect(project(log).cycles[1]?.root).toMatchObject({ messageId: 'p', kind: 'followUp' });
    const steered = project(log, { whileActive: 'steer' });
    expect(stepsOf(steered)).toEqual(['non-steer q', 'assistant x', 'steer p', 'assistant y']);
    expect(project(log, { whileActive: 'steer' })).toEqual(steered);
    expect([project(log).diagnostics, steered.diagnostics]).toEqual([[], []]);
  });

  it('H-096 of three followUps the first becomes root at the stop, and the others keep their order', () => {
    const view = project([U('q'), U('a', 'followUp'), U('b', 'followUp'), U('c', 'followUp'), S()]);
    expect(view.cycles.map(({ id }) => id)).toEqual(['q', 'a']);
    expect(view.queued.map(({ messageId }) => messageId)).toEqual(['b', 'c']);
    expect([view.state, view.cycles[1]?.stop]).toEqual(['active', null]);
  });

  it('H-099 a result before its call waits for it', () => {
    const view = project([U('q'), T('c1', 'early'), C('c1'), A('x'), S()]);
    expect(callIn(view, 'c1')?.result).toMatchObject({ outcome: 'succeeded', content: [{ text: 'early' }] });
    expect(view.diagnostics).toEqual([]);
  });

  it('H-099 a result without a call is an orphan at the stop, and the first of two results is kept', () => {
    const view = project([U('q'), T('x'), C('c1'), T('c1', 'first'), T('c1', 'second'), S()]);
    expect(callIn(view, 'c1')?.result?.content).toEqual([{ type: 'text', text: 'first' }]);
    expect(codes(view)).toEqual(['result_repeated', 'orphan']);
    expect(view.diagnostics[1]?.detail).toEqual({ type: 'tool-result', callId: 'x' });
  });

  it('H-099 of two results that wait for one call the first is kept', () => {
    const view = project([U('q'), T('c1', 'first'), T('c1', 'second'), C('c1'), S()]);
    expect(callIn(view, 'c1')?.result?.content).toEqual([{ type: 'text', text: 'first' }]);
    expect(codes(view)).toEqual(['result_repeated']);
  });

  it('the number of results that wait for their calls is limited', () => {
    const view = project([U('q'), ...Array.from({ length: 1030 }, (_, i) => T(`x${i}`))]);
    expect(codes(view)).toEqual(Array(6).fill('orphan'));
  });

  it.each(['completed', 'interrupted', 'error'] as const)(
    'H-100 a call without result at a stop (%s) is flagged',
    (reason) => {
      const view = project([U('q'), C('c1'), C('c2'), T('c1'), S(reason)]);
      expect(callIn(view, 'c2')?.result).toBe(null);
      expect(view.diagnostics).toEqual([{ code: 'result_missing', detail: { callId: 'c2' } }]);
    },
  );

  it('a result after the stop is attached to the call of the old cycle', () => {
    const view = project([U('q'), C('c1'), S('interrupted'), U('p'), T('c1', 'late'), A('x'), S()]);
    expect(callIn(view, 'c1')?.result?.content).toEqual([{ type: 'text', text: 'late' }]);
    expect([stepsOf(view, 1), codes(view)]).toEqual([['non-steer p', 'assistant x'], ['result_missing']]);
  });

  it('H-024 of two calls with one id both are shown, and the result belongs to the newer', () => {
    const view = project([U('q'), C('c1'), C('c1', 'bash'), T('c1'), S()]);
    expect(stepsOf(view)[1]).toBe('no text [read c1] [bash c1]');
    expect(codes(view)).toEqual(['call_repeated', 'result_missing']);
  });

  it('H-109 an event with several items is split in order, one text item a block', () => {
    const items = [R('think').item, A('say').item, C('c1').item, C('c2', 'bash').item, A('more').item];
    const words = ['non-steer q', 'reasoning think', 'assistant say [read c1] [bash c2]', 'assistant more'];
    expect(stepsOf(project([U('q'), { type: 'agent-output', items }]))).toEqual(words);
    expect(stepsOf(project([U('q'), { type: 'agent-output', item: items }]))).toEqual(words);
  });

  it('H-110 read, bash, read are three groups', () => {
    expect(stepsOf(project([U('q'), C('1'), C('2', 'bash'), C('3')]))[1]).toBe('no text [read 1] [bash 2] [read 3]');
  });
});

describe('values that are not events', () => {
  it.each([
    ['a strange type', { type: 'x' }],
    ['a number for a type', { type: 42 }],
    ['no type', {}],
    ['null', null],
    ['undefined', undefined],
    ['an array', [U('q')]],
    ['a string', 'user-message'],
    ['a symbol', Symbol('user-message')],
    ['a function', () => U('q')],
    ['a bigint', 1n],
    ['a type of an object', { type: { toString: () => 'run-stop' } }],
  ])('H-104 %s is unknown', (_, value) => {
    const view = project([U('q'), value, A('x')]);
    expect([stepsOf(view), codes(view)]).toEqual([['non-steer q', 'assistant x'], ['unknown']]);
  });

  it.each(['xstate.done.actor.tool1', 'xstate.init', 'xstate.stop'])('H-105 %s is reserved', (type) => {
    const view = project([U('q'), { type, output: 1 }, S()]);
    expect(view.diagnostics).toEqual([{ code: 'reserved', detail: { type } }]);
    expect(view.cycles[0]?.stop).toEqual({ reason: 'completed' });
  });

  it('an unknown type is named in its diagnostic, cut if it is long', () => {
    const [short, long] = project([{ type: 'thinking' }, { type: 'x'.repeat(5000) }]).diagnostics;
    expect(short?.detail).toEqual({ type: 'thinking' });
    expect(JSON.stringify(long).length).toBeLessThan(200);
  });

  const throwing = (): never => {
    throw new Error('trap');
  };
  const trap = { get: throwing, has: throwing, ownKeys: throwing, getPrototypeOf: throwing };
  it.each([
    ['a proxy', new Proxy({}, trap)],
    ['a getter', Object.defineProperty({}, 'type', { get: throwing })],
    ['content', { ...U('q'), content: new Proxy([], trap) }],
    ['arguments', { type: 'agent-output', item: { ...C('c').item, args: new Proxy({}, trap) } }],
    ['a revoked proxy', revoked()],
  ])('%s that throws is unreadable, and has no other effect', (_, value) => {
    const view = project([U('q'), value, A('x')]);
    expect([stepsOf(view), codes(view)]).toEqual([['non-steer q', 'assistant x'], ['unreadable']]);
  });

  it.each([
    ['messageId', { ...U('q'), messageId: 1 }],
    ['kind', { ...U('q'), kind: 'shout' }],
    ['content', { ...U('q'), content: 'text' }],
    ['content', { ...U('q'), content: [{ type: 'video' }] }],
    ['content', { ...U('q'), content: [{ type: 'image', mediaType: 'image/png', data: new Uint8Array(1) }] }],
    ['item', { type: 'agent-output', item: { type: 'assistant' } }],
    ['item', { type: 'agent-output', items: [A('x').item, null] }],
    ['callId', { ...T('c'), callId: null }],
    ['outcome', { ...T('c'), outcome: 'fine' }],
    ['code', { ...T('c'), code: 1 }],
    ['content', { ...T('c'), content: undefined }],
    ['cause', { ...S(), cause: {} }],
    ['waiting', { type: 'run-suspended', waiting: [1] }],
    ['of', { type: 'run-resumed' }],
    ['messageId', { type: 'message-queued' }],
    ['kind', { type: 'message-queued', messageId: 'a', kind: 'direct', content: [] }],
    ['content', { type: 'message-queued', messageId: 'a', kind: 'steer' }],
    ['messageId', { type: 'message-returned' }],
    ['callId', { type: 'call-settled' }],
    ['how', { type: 'call-settled', callId: 'c', how: { ran: undefined } }],
    ['how', { type: 'call-settled', callId: 'c', how: null }],
    ['code', { type: 'diagnostic' }],
  ])('an event with a wrong %s is malformed, and the field is named (%j)', (field, event) => {
    const view = project([U('first'), event]);
    expect(view.diagnostics).toEqual([{ code: 'malformed', detail: { type: event.type, field } }]);
    expect([stepsOf(view), view.cycles[0]?.stop, view.queued]).toEqual([['non-steer first'], null, []]);
  });
});

it.each([
  ['done', 'done'],
  ['', ''],
  [7, 7],
  [null, null],
  [undefined, 'undefined'],
  [{ is: 'done' }, 'object'],
])(
  'a run-stop with the reason %j ends its cycle as an error, with one diagnostic that contains the reason',
  (reason, value) => {
    const view = project([U('first'), A('x'), { ...S(), reason, cause: 'later' }, U('second')]);
    expect(view.cycles.map(({ stop }) => stop)).toEqual([{ reason: 'error', cause: 'later' }, null]);
    expect(view.diagnostics).toEqual([{ code: 'malformed', detail: { type: 'run-stop', field: 'reason', value } }]);
    expect(project([{ ...S(), reason }]).diagnostics.map(({ code }) => code)).toEqual(['stop_while_idle']);
  },
);

describe('arguments', () => {
  const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  const bomb = Array.from({ length: 40 }).reduce<object>((inner) => ({ a: inner, b: inner }), {});
  it.each([
    ['nested 100,000 deep (H-065)', nested(100_000)],
    ['in a circle (H-074)', cyclic],
    ['that grow without end when copied', bomb],
    ['with a value that is not JSON', { a: Number.NaN }],
    ['with a class instance', { a: new Date(0) }],
    ['that are missing', undefined],
  ])('%s make the call malformed', (_, args) => {
    expect(codes(project([U('q'), { type: 'agent-output', item: { ...C('c').item, args } }]))).toEqual(['malformed']);
  });

  it('a depth of 500 levels is accepted, and the view does not share them with the sender', () => {
    const args = { deep: nested(500), list: [{ a: 1 }] };
    const view = project([U('q'), C('c', 'read', args)]);
    expect(callIn(view, 'c')?.args).toEqual(args);
    args.list.push({ a: 2 });
    expect(callIn(view, 'c')?.args).toMatchObject({ list: [{ a: 1 }] });
  });

  it('a negative zero is shown as a stored log shows it', () => {
    expect(callIn(project([U('q'), C('c', 'read', [-0])]), 'c')?.args).toEqual([0]);
  });
});

describe('runtime entries and diagnostics', () => {
  it('runtime entries without effect on the views are not diagnostics', () => {
    const types =
      'conversation run-started tool-allowed tool-started decision decision-consumed state-changed model-retry';
    const more = 'continuation compaction context-warning sub-agent checkpoint notice extension tool-suspended';
    const view = project(stamped([U('q'), ...`${types} ${more}`.split(' ').map((type) => ({ type })), A('x')]));
    expect([stepsOf(view), view.diagnostics]).toEqual([['non-steer q', 'assistant x'], []]);
  });

  it('diagnostics of the log are listed with the others', () => {
    const late = { type: 'diagnostic', code: 'late_result', detail: { callId: 'c1' } };
    expect(project(stamped([S(), late])).diagnostics).toEqual([
      { code: 'stop_while_idle', seq: 0, detail: { type: 'run-stop' } },
      { code: 'late_result', seq: 1, detail: { callId: 'c1' } },
    ]);
  });

  it('the number of diagnostics is limited: after the first thousand there is a count of the others', () => {
    const { diagnostics } = project(Array.from({ length: 1500 }, () => null));
    expect(diagnostics).toHaveLength(1001);
    expect(diagnostics.at(-1)).toEqual({ code: 'diagnostics_dropped', detail: { count: 500 } });
  });

  it('an iterable that throws, or a value that is not iterable, ends the list with a diagnostic', () => {
    function* torn() {
      yield U('q');
      throw new Error('torn');
    }
    expect([stepsOf(project(torn())), codes(project(torn()))]).toEqual([['non-steer q'], ['unreadable']]);
    expect(codes(project(42 as never))).toEqual(['unreadable']);
  });
});

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
