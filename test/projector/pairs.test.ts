/** Every pair of events, in the middle of a conversation: before a gap, and with views that are read late. */
import { describe, expect, it } from 'vitest';
import { type ConversationView, createProjector, project } from '../../src/projector/index.ts';
import {
  A,
  C,
  callIn,
  callsOf,
  codes,
  decided,
  queued,
  R,
  reply,
  roundsOf,
  S,
  stamped,
  started,
  stepsOf,
  suspendedCall,
  T,
  U,
} from './events.ts';

const settled = (callId: string, how: object) => ({ type: 'call-settled', callId, how });
const resumed = { type: 'run-resumed', of: 'r1' };

/** An ended cycle with a call without a result and an unknown one, and a current cycle. */
const BASE = [
  ...[
    U('a'),
    C('old'),
    C('lost'),
    T('lost', '?', 'unknown'),
    S(),
    queued('q1'),
    queued('q2', 'steer'),
    U('f', 'followUp'),
  ],
  ...[A('x'), C('c1'), C('c2', 'bash'), reply(), started('c1'), suspendedCall('c2'), U('later', 'followUp')],
];
const EVENTS: readonly object[] = [
  ...[U('b'), U('b', 'steer'), U('b', 'followUp'), A('y'), R('y'), C('c3'), C('c1'), reply(2)],
  ...[T('c1'), T('c2', 'no', 'failed'), T('old'), T('lost'), T('c3'), S('error', 'why'), S()],
  ...[started('c2', { args: { n: 1 } }), started('c1'), suspendedCall('c1'), suspendedCall('c2', 2)],
  ...[decided('c2', 1, { by: 'ada' }), decided('c2', 2, { by: 'bob' }), decided('c1', 1, { by: 'eve' })],
  ...[settled('lost', { ran: 'yes' }), settled('lost', { retry: true }), settled('c1', { didNotRun: true })],
  ...[{ type: 'run-suspended', waiting: ['c2', 'nobody'] }, resumed, queued('q3'), queued('q1', 'steer')],
  ...[
    { type: 'message-returned', messageId: 'q1' },
    { type: 'checkpoint' },
    { type: 'diagnostic', code: 'odd' },
    { type: 'strange' },
  ],
];
const base = stamped(BASE);
const next = (event: object, at: number) => stamped([event], 'r1', BASE.length + at)[0];
const pairs = EVENTS.flatMap((one) => EVENTS.map((other) => [next(one, 0), next(other, 1)] as const));

describe('each of two events', () => {
  it('in the wrong order they lead to the view of the right order, even if the gap was shown meanwhile', () => {
    for (const [one, other] of pairs) {
      const projector = createProjector();
      for (const entry of base) projector.push(entry);
      projector.push(other);
      const ahead = projector.view();
      expect(codes(ahead)).toContain('gap');
      JSON.stringify(ahead);
      projector.push(one);
      expect(projector.view()).toEqual(project([...base, one, other]));
    }
  });

  it('earlier views are unchanged, in whatever order they are read', () => {
    const orders = [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
      [2, 0, 1],
    ];
    for (const [at, [one, other]] of pairs.entries()) {
      const projector = createProjector();
      for (const entry of base) projector.push(entry);
      const views: ConversationView[] = [projector.view()];
      for (const entry of [one, other]) {
        projector.push(entry);
        views.push(projector.view());
      }
      const expected = [base, [...base, one], [...base, one, other]].map((entries) => project(entries));
      for (const index of orders[at % orders.length] ?? []) expect(views[index]).toEqual(expected[index]);
    }
  });
});

describe('entries before a gap', () => {
  const ahead = (seqs: readonly number[], events: readonly object[]) => {
    const projector = createProjector();
    const entries = stamped(events);
    for (const seq of seqs) projector.push(entries[seq]);
    return projector.view();
  };

  it('they are shown in their own order, each gap with a note', () => {
    const view = ahead([0, 4, 2, 6], [U('q'), A('1'), A('2'), A('3'), A('4'), A('5'), A('6')]);
    expect(stepsOf(view)).toEqual(['non-steer q', 'assistant 2', 'assistant 4', 'assistant 6']);
    expect(view.diagnostics).toEqual([1, 3, 5].map((seq) => ({ code: 'gap', seq, detail: { from: seq, to: seq } })));
  });

  it('the first of two repeated entries counts', () => {
    const projector = createProjector();
    const [q, , two] = stamped([U('q'), A('1'), A('2')]);
    for (const entry of [q, two, { ...two, item: { type: 'assistant', text: 'again' } }]) projector.push(entry);
    expect(stepsOf(projector.view())).toEqual(['non-steer q', 'assistant 2']);
  });
});

describe('a call', () => {
  it('a retried call waits for a new decision: an early one for the previous run has expired', () => {
    const before = [U('q'), C('a'), started('a'), decided('a', 1, { by: 'ada' }), T('a', '?', 'unknown'), S()];
    const again = [settled('a', { retry: true }), resumed, started('a'), suspendedCall('a', 1)];
    expect(callIn(project([...before, ...again]), 'a')).not.toHaveProperty('decidedBy');
    expect(callIn(project([...before, ...again, decided('a', 1, { by: 'bob' })]), 'a')).toMatchObject({
      decidedBy: 'bob',
    });
  });

  it('of two early decisions the first one counts', () => {
    const events = [U('q'), C('a'), started('a'), decided('a', 1, { by: 'ada' }), decided('a', 1, { by: 'bob' })];
    expect(callIn(project([...events, suspendedCall('a')]), 'a')).toMatchObject({ decidedBy: 'ada' });
  });

  it('a call of an earlier cycle has its result there, and is not input of the current cycle', () => {
    const view = project([U('a'), C('old'), S(), U('b'), A('x'), reply(), T('old'), A('y'), reply()]);
    expect(callIn(view, 'old')?.state).toBe('ended');
    expect(roundsOf(view, 1)?.map(({ results }) => results)).toEqual([[], []]);
  });

  it('a result for its id before a stop does not count', () => {
    const view = project([U('a'), T('c'), S(), U('b'), C('c')]);
    expect(callsOf(view).map(({ result }) => result)).toEqual([null]);
    expect(codes(view)).toEqual(['orphan']);
  });

  it.each([15, 16, 17, 18, 40])(
    'it is found by its id among %i others of its cycle, the newest of an id first',
    (count) => {
      const others = Array.from({ length: count }, (_, at) => C(`o${at}`));
      for (const events of [
        [C('a'), ...others],
        [...others, C('a')],
        [C('a', 'read', { n: 1 }), ...others, C('a')],
      ]) {
        const calls = callsOf(project([U('q'), ...events, T('a')]));
        expect(calls.filter(({ result }) => result !== null).map(({ callId, args }) => [callId, args])).toEqual([
          ['a', {}],
        ]);
        const ids = calls.map(({ callId }) => callId);
        expect(calls[ids.lastIndexOf('a')]?.result).not.toBeNull();
      }
    },
  );

  it('an unknown call waits while its suspension is the last event', () => {
    const view = project([U('q'), C('a'), { type: 'run-suspended', waiting: ['a', 'nobody'] }, T('a')]);
    expect(view.cycles[0]?.waiting).toEqual(['nobody']);
  });
});

it('a resumed run belongs to the last cycle if no entry names its run', () => {
  const first = stamped([U('a'), A('x'), S()]);
  const [message] = stamped([U('b')], 'r2', 3);
  const { runId: _, ...unnamed } = message ?? {};
  const view = project([...first, unnamed, { type: 'run-resumed', of: 'r9', seq: 4, conversationId: 'c' }]);
  expect([codes(view), view.cycles.length, view.state]).toEqual([[], 2, 'active']);
});

it.each([
  [undefined, 'followUp'],
  ['followUp', 'followUp'],
  ['steer', 'steer'],
  ['queue', 'followUp'],
  [null, 'followUp'],
])('a message without a kind under `whileActive` %j is a %s', (whileActive, expected) => {
  const { queued: waiting, cycles } = project([U('a'), U('b')], { whileActive } as never);
  expect([waiting.length, cycles[0]?.steps.length]).toEqual(expected === 'steer' ? [0, 2] : [1, 1]);
});

describe('the accepted parts of an event', () => {
  const argsOf = (args: unknown) => {
    const view = project([
      U('q'),
      { type: 'agent-output', item: { type: 'tool-call', callId: 'a', name: 'read', args } },
    ]);
    return [callIn(view, 'a')?.args, codes(view)];
  };
  const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);

  it('they are JSON, at most 512 levels deep, without holes', () => {
    expect(argsOf(deep(512))[1]).toEqual([]);
    for (const args of [deep(513), new Array(2), [1, undefined], { a: undefined }, 1n]) {
      expect(argsOf(args)).toEqual([undefined, ['malformed']]);
    }
  });

  it('they have no key that would become a prototype', () => {
    const [args] = argsOf(JSON.parse('{"a":{"__proto__":{"x":1},"b":2}}'));
    expect(args).toEqual({ a: { b: 2 } });
    expect(Object.getPrototypeOf((args as { a: object }).a)).toBe(Object.prototype);
  });

  it.each([
    [undefined, []],
    [{ a: [1] }, []],
    [1n, ['malformed']],
    [() => 1, ['malformed']],
  ])('a call is complete only with an `extra` that is JSON: %o', (extra, expected) => {
    const item = { type: 'tool-call', callId: 'a', name: 'read', args: {}, extra };
    expect(codes(project([U('q'), { type: 'agent-output', item }]))).toEqual(expected);
  });

  it.each([
    ['xstate.init', 'reserved', 'xstate.init'],
    ['xstate', 'unknown', 'xstate'],
    ['xstateful.x', 'unknown', 'xstateful.x'],
    ['x'.repeat(80), 'unknown', 'x'.repeat(80)],
    ['x'.repeat(81), 'unknown', `${'x'.repeat(80)}…`],
  ])('an event of the type %s is noted as %s', (type, code, named) => {
    expect(project([{ type }]).diagnostics).toEqual([{ code, detail: { type: named } }]);
  });

  it.each([
    [{ ran: 'x' }, 'succeeded', 'x'],
    [{ ran: 'x', didNotRun: false, retry: false }, 'succeeded', 'x'],
    [{ ran: { a: 1 }, retry: 'true' }, 'succeeded', '{"a":1}'],
    [{ ran: null }, 'succeeded', 'null'],
    [{ didNotRun: true }, 'cancelled', undefined],
    [{ retry: true, ran: 'x' }, 'unknown', '?'],
    [{}, 'unknown', '?'],
    [{ didNotRun: 1 }, 'unknown', '?'],
  ])('a settlement %j gives the call this outcome: %s', (how, outcome, text) => {
    const view = project([U('q'), C('a'), T('a', '?', 'unknown'), settled('a', how)]);
    const { result } = callIn(view, 'a') ?? {};
    expect([
      result?.outcome,
      result?.content[0] && 'text' in result.content[0] ? result.content[0].text : undefined,
    ]).toEqual([...[outcome, text]]);
  });

  it('a usage has its counts, and 0 for each invalid one', () => {
    const names = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'];
    const all = Object.fromEntries(names.map((name, at) => [name, at + 1]));
    const usageOf = (usage: unknown) =>
      project([U('q'), A('x'), { type: 'model-reply', usage }]).cycles[0]?.rounds[0]?.usage;
    expect(usageOf(all)).toEqual(all);
    expect(usageOf({ ...all, more: 1 })).toEqual(all);
    for (const odd of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5', null, undefined]) {
      for (const name of names) expect(usageOf({ ...all, [name]: odd })).toEqual({ ...all, [name]: 0 });
    }
    expect([usageOf(undefined), usageOf(null), usageOf(5)]).toEqual([undefined, undefined, undefined]);
  });
});
