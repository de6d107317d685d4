import { describe, expect, test } from 'vitest';
import { type Conversation, type Decision, InvalidDecisionError } from '../../src/index.ts';
import { cpuTime } from '../support/cpuTime.ts';
import { askedTool, call, calls, opened, plainTool, scripted, settle } from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

/** A conversation whose call `a` waits for approval. */
async function asking(more: object = {}): Promise<Conversation> {
  const conversation = await opened({ model: scripted([calls(call('a', 'ask'))]), tools: [askedTool('ask')], ...more });
  await conversation.send('go').result;
  return conversation;
}
const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};
const edit = (args: unknown) => ({ callId: 'a', action: 'edit', args });
function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}
/** Is small in memory, and has 2^60 values when serialized. */
function bomb(): unknown {
  let value: unknown = ['x'];
  for (let i = 0; i < 60; i++) value = [value, value];
  return value;
}
function ring(): unknown {
  const list: unknown[] = [];
  list.push(list, list);
  return list;
}
const parsed = (text: string): unknown => JSON.parse(text);

/** Fields of other actions, or unknown fields. */
const strayFields: [{ action: string; args?: object }, string[]][] = [
  [{ action: 'approve' }, ['args', 'payload', 'reason', 'note', 'constructor']],
  [{ action: 'deny' }, ['args', 'payload', 'note', 'Reason']],
  [{ action: 'edit', args: {} }, ['payload', 'reason', 'note']],
];
const malformed: [string, () => unknown][] = [
  ['nothing', () => undefined],
  ['null', () => null],
  ['a number', () => 5],
  ['a text', () => 'approve'],
  ['its own JSON text', () => '{"callId":"a","action":"approve"}'],
  ['a list', () => [{ callId: 'a', action: 'approve' }]],
  ['a function', () => () => ({ callId: 'a', action: 'approve' })],
  ['a promise', () => Promise.resolve({ callId: 'a', action: 'approve' })],
  ['an empty object', () => ({})],
  ['no action', () => ({ callId: 'a' })],
  ['no call', () => ({ action: 'approve' })],
  ['an empty id', () => ({ callId: '', action: 'approve' })],
  ['an id that is a number', () => ({ callId: 5, action: 'approve' })],
  ['an id that is an object', () => ({ callId: { toString: () => 'a' }, action: 'approve' })],
  ['an unknown action', () => ({ callId: 'a', action: 'allow' })],
  ['an action in capitals', () => ({ callId: 'a', action: 'APPROVE' })],
  ['the action __proto__', () => ({ callId: 'a', action: '__proto__' })],
  ['the action constructor', () => ({ callId: 'a', action: 'constructor' })],
  ['an action that is true', () => ({ callId: 'a', action: true })],
  ['an action in a list', () => ({ callId: 'a', action: ['approve'] })],
  ['inherited fields', () => Object.create({ callId: 'a', action: 'approve' })],
  ['an instance of a class', () => Object.assign(new (class Approval {})(), { callId: 'a', action: 'approve' })],
  [
    'a Map',
    () =>
      new Map([
        ['callId', 'a'],
        ['action', 'approve'],
      ]),
  ],
  ['a reason that is not a text', () => ({ callId: 'a', action: 'deny', reason: 5 })],
  ['a name that is not a text', () => ({ callId: 'a', action: 'approve', by: {} })],
  ['the suspension 0', () => ({ callId: 'a', action: 'approve', suspension: 0 })],
  ['the suspension -1', () => ({ callId: 'a', action: 'approve', suspension: -1 })],
  ['the suspension 1.5', () => ({ callId: 'a', action: 'approve', suspension: 1.5 })],
  ['a suspension that is a text', () => ({ callId: 'a', action: 'approve', suspension: '1' })],
  ['a suspension that is null', () => ({ callId: 'a', action: 'approve', suspension: null })],
  ['a suspension that is NaN', () => ({ callId: 'a', action: 'approve', suspension: Number.NaN })],
  ['a suspension without end', () => ({ callId: 'a', action: 'approve', suspension: Number.POSITIVE_INFINITY })],
  ['a suspension beyond the safe integers', () => ({ callId: 'a', action: 'approve', suspension: 2 ** 60 })],
  ['an edit without arguments', () => ({ callId: 'a', action: 'edit' })],
  ['an edit with undefined arguments', () => edit(undefined)],
  ['an answer without a payload', () => ({ callId: 'a', action: 'answer' })],
  ['an answer with an undefined payload', () => ({ callId: 'a', action: 'answer', payload: undefined })],
  ...strayFields.flatMap(([decision, fields]) =>
    fields.map((field): [string, () => unknown] => [
      `to ${decision.action} and has the field ${field}`,
      () => ({ callId: 'a', ...decision, [field]: 'x' }),
    ]),
  ),
  ['an answer, to a call that waits for approval', () => ({ callId: 'a', action: 'answer', payload: 'yes' })],
  ['a BigInt', () => edit(1n)],
  ['a Symbol', () => edit(Symbol('s'))],
  ['a function inside', () => edit({ f: () => 1 })],
  ['NaN', () => edit({ n: Number.NaN })],
  ['Infinity', () => edit([Number.POSITIVE_INFINITY])],
  ['undefined in a list', () => edit([undefined])],
  ['a list with a hole', () => edit(Object.assign([], { length: 2 }))],
  ['a Date', () => edit({ at: new Date() })],
  ['a Set', () => edit(new Set(['a']))],
  ['bytes', () => edit(new Uint8Array(2))],
  ['a ring', () => edit(ring())],
  ['more depth than JSON may have', () => edit(nested(65))],
  ['a hundred thousand levels', () => edit(nested(100_000))],
  ['a value with endless getters', () => edit(bomb())],
  ['more than a mebibyte of text', () => edit('x'.repeat(1_048_576))],
  ['more than a mebibyte of two-byte letters', () => edit('é'.repeat(600_000))],
  [
    'more than a mebibyte of keys',
    () => edit(Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`key${i}`, 1]))),
  ],
  ['a list of a billion', () => edit(Object.assign([], { length: 1_000_000_000 }))],
  ['__proto__ at the top', () => parsed('{"callId":"a","action":"approve","__proto__":{"admin":true}}')],
  ['__proto__ at depth', () => edit(parsed('{"x":{"y":[{"__proto__":null}]}}'))],
  ['__proto__ in an unused field', () => parsed('{"callId":"a","action":"approve","x":{"__proto__":1}}')],
  [
    'a getter that throws',
    () => ({
      get callId() {
        throw new Error('no');
      },
      action: 'approve',
    }),
  ],
  ['a proxy that throws', () => new Proxy({}, { ownKeys: throwing(new Error('no')), get: throwing(null) })],
  ['a toJSON', () => ({ toJSON: () => ({ callId: 'a', action: 'approve' }) })],
];
test.each(malformed)('a decision that is %s is refused before anything changes', async (_, give) => {
  const conversation = await asking();
  const before = conversation.log();
  const malformed = give() as Decision;
  const refused = () => expect(conversation.decide(malformed)).rejects.toThrow(InvalidDecisionError);
  // A check of every one of the longest would take many times as long.
  expect(await cpuTime(refused)).toBeLessThan(2_000);
  await settle();
  expect([conversation.log(), conversation.status, conversation.pending.length]).toEqual([before, 'waiting', 1]);
  expect(await conversation.decide({ callId: 'a', action: 'approve' })).toBe('applied');
});

test('an approval with new arguments runs neither these nor the old ones, and the error names the field', async () => {
  const ran: unknown[] = [];
  const conversation = await asking({ tools: [askedTool('ask', ran)] });
  const decision = { callId: 'a', action: 'approve', args: { path: 'other' } } as Decision;
  const error = await conversation.decide(decision).catch((thrown) => thrown);
  expect(error).toMatchObject({
    code: 'invalid_decision',
    message: expect.stringMatching(/a decision to approve .*no other fields than .*callId.*, got "args"/),
  });
  await conversation.resume().result;
  expect(ran).toEqual([]);
});

test('a field of another action that is undefined is absent', async () => {
  const conversation = await asking();
  const decision = { callId: 'a', action: 'approve', args: undefined, reason: undefined } as unknown as Decision;
  expect(await conversation.decide(decision)).toBe('applied');
});

test('the error contains the expected value and the next step', async () => {
  const conversation = await asking();
  const errorMessage = await conversation.decide({ callId: 'a' } as never).catch((error: Error) => error.message);
  expect(errorMessage).toContain('approve, deny, edit, answer');
  const error = await conversation.decide({ callId: 'a', action: 'answer', payload: 1 }).catch((thrown) => thrown);
  expect([error.code, error.message]).toEqual(['invalid_decision', expect.stringContaining('approve, deny or edit')]);
  const noPayload = { callId: 'a', action: 'answer' } as Decision;
  const noPayloadError = await conversation.decide(noPayload).catch((thrown: Error) => thrown);
  expect(noPayloadError).toMatchObject({ message: expect.stringContaining('payload, the answer') });
});

test('a decision of almost a mebibyte, of unusual but valid JSON, is accepted', async () => {
  const conversation = await asking();
  const args = {
    path: 'x'.repeat(1_000_000),
    ...(parsed('{"constructor":1,"toString":{"a":[null,-0.5e-3]}}') as object),
  };
  const decision = { callId: 'a', action: 'edit', args, by: undefined, suspension: undefined } as unknown as Decision;
  expect(await conversation.decide(decision)).toBe('applied');
  const other = Object.assign(Object.create(null), { callId: 'a', action: 'edit', args }) as Decision;
  expect(await conversation.decide(other)).toBe('duplicate');
});

describe('authorize', () => {
  const refusing: [string, unknown][] = [
    ['returns false', () => false],
    ['returns a promise of false', async () => false],
    ['returns nothing', () => undefined],
    ['returns 1', () => 1],
    ['returns a text', () => 'yes'],
    ['returns an object', () => ({})],
    ['throws', throwing(new Error('no'))],
    ['throws nothing', throwing(undefined)],
    ['rejects', () => Promise.reject(new Error('no'))],
    ['rejects with nothing', () => Promise.reject(undefined)],
  ];
  test.each(refusing)('a function that %s refuses, and nothing changes', async (_, authorize) => {
    const conversation = await asking({ authorize });
    const before = conversation.log();
    const error = await conversation.decide({ callId: 'a', action: 'approve' }).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: 'DecisionRefusedError', code: 'decision_refused' });
    expect([conversation.log(), conversation.pending.length]).toEqual([before, 1]);
  });

  test('it receives the decision and the call, is not called for unknown calls, and cannot change either', async () => {
    const asked: unknown[][] = [];
    const conversation = await asking({
      authorize: (decision: Decision, pending: { name: string }) => {
        asked.push([{ ...decision }, { ...pending }]);
        Reflect.set(decision, 'action', 'deny');
        Reflect.set(pending, 'name', 'other');
        return Promise.resolve(true);
      },
    });
    expect(await conversation.decide({ callId: 'x', action: 'approve' })).toBe('unknown');
    expect(await conversation.decide({ callId: 'a', action: 'approve', by: 'me' })).toBe('applied');
    const pending = { callId: 'a', name: 'ask', args: {}, reason: 'permission', suspension: 1, path: ['a'] };
    expect(asked).toEqual([[{ callId: 'a', action: 'approve', by: 'me' }, pending]]);
    expect((await conversation.resume().result).calls).toMatchObject([{ name: 'ask', outcome: 'succeeded' }]);
  });

  test('a slow authorization does not lose its place, and a conversation that is closed meanwhile refuses it', async () => {
    const answers: ((yes: boolean) => void)[] = [];
    const conversation = await asking({ authorize: () => new Promise((resolve) => answers.push(resolve)) });
    const first = conversation.decide({ callId: 'a', action: 'approve' });
    const second = conversation.decide({ callId: 'a', action: 'deny' });
    const third = conversation.decide({ callId: 'a', action: 'deny' });
    answers[1]?.(true);
    expect(await second).toBe('applied');
    answers[0]?.(true);
    expect(await first).toBe('conflict');
    await conversation.close();
    answers[2]?.(true);
    await expect(third).rejects.toMatchObject({ code: 'closed' });
  });
});

test('a call accepts a limited number of decisions', async () => {
  const conversation = await asking({ policies: { limits: { decisions: 1 } } });
  expect(await conversation.decide({ callId: 'a', action: 'approve' })).toBe('applied');
  await expect(conversation.decide({ callId: 'a', action: 'deny' })).rejects.toMatchObject({ code: 'limit' });
});

test.each([
  undefined,
  null,
  {},
  [],
  'retry',
  { retry: false },
  { retry: 1 },
  { didNotRun: 'yes' },
  { ran: undefined },
  { ran: 1, retry: true },
  { other: 1 },
  parsed('{"ran":{"__proto__":1}}'),
])('a settlement %j is refused, and the conversation continues', async (how) => {
  const conversation = await opened({ model: scripted([]), tools: [plainTool('t', () => 1)] });
  await conversation.send('go').result;
  const before = conversation.log();
  await expect(conversation.settle('a', how as never)).rejects.toThrow(InvalidDecisionError);
  expect(conversation.log()).toEqual(before);
  expect(await conversation.settle('a', { didNotRun: true })).toBe('unknown');
  expect((await conversation.send('and on').result).termination).toBe('NaturalEnd');
});

test('a settlement with an invalid call id is refused like a decision, and nothing changes', async () => {
  const conversation = await opened({ model: scripted([]), tools: [plainTool('t', () => 1)] });
  await conversation.send('go').result;
  const before = conversation.log();
  for (const callId of [undefined, null, 5, '', {}, ['a']] as never[]) {
    const refusal = /needs callId, the id of the call; nothing was changed/;
    await expect(conversation.settle(callId, { retry: true })).rejects.toThrow(InvalidDecisionError);
    await expect(conversation.settle(callId, { retry: true })).rejects.toThrow(refusal);
    await expect(conversation.decide({ callId, action: 'approve' })).rejects.toThrow(refusal);
  }
  expect(conversation.log()).toEqual(before);
});

test.each([[{}], [{ ran: 1, retry: true }], [{ didNotRun: 'yes' }], [{ retry: 1 }], [{ undone: true }]])(
  'a settlement %o is refused with the three that exist',
  async (how) => {
    const conversation = await asking();
    const refused = conversation.settle('c1', how as never);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_decision' });
    await expect(refused).rejects.toThrow(/one of \{ ran: result \}, \{ didNotRun: true \} and \{ retry: true \}/);
  },
);
