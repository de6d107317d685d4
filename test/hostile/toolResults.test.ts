import { describe, expect, test } from 'vitest';
import { toolResult } from '../../src/index.ts';
import { codesOf, entriesOf, outcomeOf, plainTool, playTool, resultOf, resultText } from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

class Account {
  #key = 'private';
  name = 'shown';
  get key(): string {
    return this.#key;
  }
}
class Money {
  amount = 5;
  toJSON(): string {
    return `${this.amount} EUR`;
  }
}
const throwing = (thrown: unknown) => () => {
  throw thrown;
};
const proxy = (): object =>
  new Proxy(
    {},
    { get: throwing(new Error('get')), ownKeys: throwing(new Error('keys')), has: throwing(new Error('has')) },
  );
const revoked = (): object => {
  const { proxy: dead, revoke } = Proxy.revocable({}, {});
  revoke();
  return dead;
};
const unreadableError = (): Error =>
  Object.defineProperty(new Error('x'), 'message', { get: throwing(new Error('no')) });
const ring = (): object => {
  const list: unknown[] = [];
  list.push({ list });
  return list;
};
const deep = (depth: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
};
const ringMap = (): Map<string, unknown> => {
  const map = new Map<string, unknown>();
  return map.set('self', map);
};

/** The return value of a tool, and the text that the model receives. */
const converted: [string, () => unknown, string][] = [
  ['undefined', () => undefined, '(no output)'],
  ['null', () => null, 'null'],
  ['false', () => false, 'false'],
  ['an empty text', () => '', ''],
  ['0', () => 0, '0'],
  ['-0', () => -0, '0'],
  ['NaN', () => Number.NaN, 'null'],
  ['Infinity', () => Number.POSITIVE_INFINITY, 'null'],
  ['a Date', () => new Date(0), '"1970-01-01T00:00:00.000Z"'],
  ['an invalid Date', () => new Date(Number.NaN), 'null'],
  ['a Map', () => new Map([['a', new Set([1])]]), '[["a",[1]]]'],
  ['a Set', () => new Set(['a', 'b']), '["a","b"]'],
  ['bytes', () => new Uint8Array([1, 2]), '[1,2]'],
  ['floats', () => new Float64Array([0.5]), '[0.5]'],
  ['a Buffer', () => Buffer.from([1]), '{"type":"Buffer","data":[1]}'],
  ['an instance of a class with a toJSON', () => new Money(), '"5 EUR"'],
  ['an Error in a list', () => [new RangeError('too far')], '[{"name":"RangeError","message":"too far"}]'],
  ['a regular expression', () => /a+/g, '"/a+/g"'],
  ['a URL', () => new URL('http://x/'), '"http://x/"'],
  ['a boxed text', () => Object('boxed'), '"boxed"'],
  ['an object without a prototype', () => Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
  ['an object with undefined fields', () => ({ a: undefined, b: 1 }), '{"b":1}'],
  ['an own __proto__', () => JSON.parse('{"__proto__":{"polluted":1},"a":1}'), '{"a":1}'],
  ['a list with holes', () => Object.assign([], { 1: 'b', length: 2 }), '[null,"b"]'],
  ['a list of holes', () => new Array(2), '[null,null]'],
  ['a list of holes as an explicit result', () => toolResult.success(new Array(2)), '[null,null]'],
  [
    'content with a hole',
    () => Object.assign([], { 1: { type: 'text', text: 'b' } }),
    '[null,{"type":"text","text":"b"}]',
  ],
  ['a list that only looks like content', () => [{ type: 'text' }, 5], '[{"type":"text"},5]'],
  ['a toJSON that returns something else', () => ({ toJSON: () => ({ b: 2 }) }), '{"b":2}'],
];
test.each(converted)('H-074 %s becomes a text', async (_, give, text) => {
  const { result, log } = await playTool(plainTool('t', give));
  expect([result.termination, outcomeOf(log), resultText(log)]).toEqual(['NaturalEnd', 'succeeded', text]);
});

const refused: [string, () => unknown][] = [
  ['an instance of a class', () => new Account()],
  ['an instance of a class in a list', () => ({ accounts: [new Account()] })],
  ['an instance of a class as an explicit result', () => toolResult.success(new Account() as never)],
  ['an instance of a class in the state', () => toolResult.success('', { state: { a: new Account() as never } })],
  ['a Response', () => new Response('text')],
  ['a promise of Headers', () => Promise.resolve(new Headers({ a: 'b' }))],
  ['a class', () => Account],
  ['a generator that yields an instance of a class last', () => [new Account()].values()],
  ['a generator in a generator', () => [[1].values()].values()],
  ['a ring', ring],
  ['a Map that holds itself', ringMap],
  ['a BigInt', () => 1n],
  ['a list of BigInts', () => new BigInt64Array(1)],
  ['a Symbol', () => Symbol('s')],
  ['a function', () => () => 1],
  ['a function in a field', () => ({ call() {} })],
  ['a Symbol in a list', () => [Symbol('s')]],
  ['a toJSON that throws', () => ({ toJSON: throwing(new Error('toJSON')) })],
  ['a toJSON that throws nothing', () => ({ toJSON: throwing(undefined) })],
  [
    'a getter that throws',
    () => ({
      get a() {
        throw new Error('getter');
      },
    }),
  ],
  [
    'a getter that throws an unreadable error',
    () => ({
      get a() {
        throw unreadableError();
      },
    }),
  ],
  ['a field that is a proxy that throws', () => ({ a: proxy() })],
  ['a field that is a revoked proxy', () => ({ a: revoked() })],
  ['an ArrayBuffer', () => new ArrayBuffer(8)],
  ['a DataView', () => new DataView(new ArrayBuffer(8))],
  ['a promise in a field', () => ({ a: Promise.resolve(1) })],
  ['a WeakMap', () => new WeakMap()],
  ['lists nested 1,000 deep', () => deep(1_000)],
  ['lists nested 100,000 deep', () => deep(100_000)],
  ['content with an invalid text', () => [{ type: 'text', text: 5 }]],
  ['content with an image without data', () => [{ type: 'image', mediaType: 'image/png' }]],
];
test('the error for a refused class names the class, and the value never becomes {}', async () => {
  const { log } = await playTool(plainTool('t', () => new Response('text')));
  expect(resultText(log)).toBe("the tool's result is no JSON: an object of the class Response is not JSON");
});

test.each(refused)('H-074 %s is refused, and the log stays loadable', async (_, give) => {
  const { result, log } = await playTool(plainTool('t', give));
  expect([result.termination, outcomeOf(log)]).toEqual(['NaturalEnd', 'failed not_json']);
  expect(resultText(log)).not.toBe('');
});

const failing: [string, () => unknown, string][] = [
  ['throws', throwing(new TypeError('bad')), 'TypeError: bad'],
  ['throws a text', throwing('plain'), 'Error: plain'],
  ['returns an Error', () => new RangeError('too far'), 'RangeError: too far'],
  ['resolves with an Error', () => Promise.resolve(new RangeError('too far')), 'RangeError: too far'],
  [
    'returns an Error as a success',
    () => toolResult.success(new RangeError('too far') as never),
    'RangeError: too far',
  ],
  ['yields an Error last', () => [new RangeError('too far')].values(), 'RangeError: too far'],
  ['throws an object', throwing({ why: 1 }), 'Error: {"why":1}'],
  ['throws an object with a message', throwing({ message: 'said' }), 'Error: said'],
  ['throws undefined', throwing(undefined), 'Error: undefined'],
  ['throws null', throwing(null), 'Error: null'],
  ['throws a Symbol', throwing(Symbol('s')), 'Error: Symbol(s)'],
  [
    'throws an error whose message throws',
    throwing(unreadableError()),
    'Error: a value was thrown that cannot be shown',
  ],
  ['throws a revoked proxy', throwing(revoked()), 'Error: a value was thrown that cannot be shown'],
  ['throws an object without a prototype', throwing(Object.create(null)), 'Error: {}'],
  ['rejects with undefined', () => Promise.reject(undefined), 'Error: undefined'],
  ['rejects with null', () => Promise.reject(null), 'Error: null'],
  ['rejects with a text', () => Promise.reject('later'), 'Error: later'],
  ['rejects with an object', () => Promise.reject({ a: 1 }), 'Error: {"a":1}'],
  ['rejects with a Symbol', () => Promise.reject(Symbol('s')), 'Error: Symbol(s)'],
  [
    'returns a then that throws',
    () => Object.defineProperty({}, 'then', { get: throwing(new Error('then')) }),
    'Error: then',
  ],
];
test.each(failing)('a tool that %s has failed, with an error for the model', async (_, execute, text) => {
  const { result, log } = await playTool(plainTool('t', execute));
  expect([result.termination, outcomeOf(log), resultText(log)]).toEqual(['NaturalEnd', 'failed error', text]);
});

test.each([
  ['a proxy that throws', proxy],
  ['a revoked proxy', revoked],
  ['a promise of a revoked proxy', async () => revoked()],
  ['a promise of a proxy that throws', async () => proxy()],
])('%s is a failure', async (_, give) => {
  const { result, log } = await playTool(plainTool('t', give));
  expect(result.termination).toBe('NaturalEnd');
  expect(outcomeOf(log)).toMatch(/^failed (error|not_json)$/);
});

describe('results of toolResult', () => {
  test.each([
    [undefined, 'error'],
    ['', 'error'],
    [5, 'error'],
    [Symbol('s'), 'error'],
    [{ a: 1 }, 'error'],
    ['E_MINE', 'E_MINE'],
    ['x'.repeat(100_000), 'x'.repeat(64)],
  ])('the code %j is stored as %j', async (code, stored) => {
    const { log } = await playTool(plainTool('t', () => toolResult.error('failed', code as string)));
    expect([resultOf(log)?.code, resultText(log)]).toEqual([stored, 'failed']);
  });

  test.each([undefined, null, {}, { reason: 5 }, { reason: null }, { reason: { toString: () => 'x' } }])(
    'a suspension with the reason %j is a failure',
    async (suspend) => {
      const { log } = await playTool(plainTool('t', () => toolResult.pending(suspend as never)));
      expect([outcomeOf(log), entriesOf(log, 'tool-suspended')]).toEqual(['failed error', []]);
    },
  );

  test('a suspension whose payload is not JSON, or too long, is a failure', async () => {
    for (const [payload, outcome] of [
      [ring(), 'failed not_json'],
      [1n, 'failed not_json'],
      ['x'.repeat(300_000), 'failed too_large'],
    ] as const) {
      const { log } = await playTool(
        plainTool('t', () => toolResult.pending({ reason: 'ask', payload: payload as never })),
      );
      expect([outcomeOf(log), entriesOf(log, 'tool-suspended')]).toEqual([outcome, []]);
    }
  });

  test.each([
    ['a list', [1], 'failed not_json'],
    ['a text', 'x', 'failed not_json'],
    ['null', null, 'failed not_json'],
    ['a ring', ring(), 'failed not_json'],
    ['a function in it', { a: () => 1 }, 'failed not_json'],
    ['a megabyte', { a: 'x'.repeat(1_000_000) }, 'failed too_large'],
  ])('state that is %s is refused, and nothing is written', async (_, state, outcome) => {
    const { log, conversation } = await playTool(
      plainTool('t', () => toolResult.success('ok', { state: state as never })),
    );
    expect([outcomeOf(log), conversation.state]).toEqual([outcome, {}]);
  });

  test('state may have any key except __proto__', async () => {
    const state = JSON.parse('{"__proto__":{"polluted":1},"constructor":2,"toString":3,"":4}');
    const { log, conversation } = await playTool(plainTool('t', () => toolResult.success('ok', { state })));
    expect(outcomeOf(log)).toBe('succeeded');
    expect(Object.entries(conversation.state)).toEqual([
      ['constructor', 2],
      ['toString', 3],
      ['', 4],
    ]);
    expect(Object.isFrozen(conversation.state)).toBe(true);
  });

  test('options cannot imitate another result', async () => {
    const options = { status: 'pending', suspend: { reason: 'x' }, content: 'other' };
    const { log } = await playTool(plainTool('t', () => toolResult.success('ok', options as never)));
    expect([outcomeOf(log), resultText(log)]).toEqual(['succeeded', 'ok']);
  });

  test('an object of the same shape is an ordinary value', async () => {
    const forged = { status: 'pending', suspend: { reason: 'x' } };
    const { log } = await playTool(plainTool('t', () => forged));
    expect([outcomeOf(log), resultText(log), codesOf(log)]).toEqual(['succeeded', JSON.stringify(forged), []]);
  });
});
