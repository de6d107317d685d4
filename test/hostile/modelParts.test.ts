import { describe, expect, test } from 'vitest';
import { type Model, ModelError, type ModelPart } from '../../src/index.ts';
import {
  call,
  codesOf,
  entriesOf,
  opened,
  outcomeOf,
  pathTool,
  say,
  scripted,
  settle,
  stillClock,
} from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

/** A complete run, with all the time that retries need. */
async function playStream(stream: () => unknown, more: Partial<Model> = {}) {
  const clock = stillClock();
  const model: Model = { id: 'odd', ...more, stream: stream as unknown as Model['stream'] };
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  const conversation = await opened({ model, tools: [pathTool('t')], ports });
  const { result } = conversation.send('go');
  await settle();
  await clock.advance(10_000_000);
  return { result: await result, log: conversation.log(), clock };
}
const throwing = (thrown: unknown) => (): never => {
  throw thrown;
};
const unreadable = new Proxy(Object.create(null), { get: throwing(new Error('get')), getPrototypeOf: throwing(1) });

const oddParts: [string, unknown][] = [
  ['null', null],
  ['a number', 5],
  ['a text', 'text-delta'],
  ['a list', []],
  ['an object without a type', {}],
  ['an unknown type', { type: 'x' }],
  ['the type __proto__', { type: '__proto__' }],
  ['a type that is not a text', { type: 5 }],
  ['text without text', { type: 'text-delta' }],
  ['a text that is a number', { type: 'text-delta', text: 5 }],
  ['reasoning that is null', { type: 'reasoning-delta', text: null }],
  ['a call without a name', { type: 'tool-call', callId: 'c', args: '{}' }],
  ['a call delta without text', { type: 'tool-call-delta', index: 0 }],
  ['a call delta without an index', { type: 'tool-call-delta', text: '{' }],
  ['a call delta whose index is no number', { type: 'tool-call-delta', index: '0', text: '{' }],
  ['a finish without a reason', { type: 'finish' }],
  ['a finish of an unknown reason', { type: 'finish', reason: 'banana' }],
];
test.each(oddParts)('a part that is %s is dropped, with one diagnostic for the whole stream', async (_, part) => {
  const parts = [part, part, ...say('still here')] as ModelPart[];
  const { result, log } = await playStream(async function* () {
    yield* parts;
  });
  expect([result.termination, result.text, codesOf(log)]).toEqual(['NaturalEnd', 'still here', ['model_part']]);
});

test('a stream of invalid parts alone is a failed attempt, never a success', async () => {
  const { result } = await playStream(async function* () {
    yield { type: 'finish', reason: 'banana' };
  });
  expect([result.termination, result.error?.code]).toEqual(['Error', 'stream-incomplete']);
});

test('invalid token counts are zero', async () => {
  const usage = { inputTokens: Number.NaN, outputTokens: -5, cachedInputTokens: '7', cacheWriteTokens: 3, extra: 1 };
  const { result } = await playStream(async function* () {
    yield { type: 'finish', reason: 'stop', usage };
  });
  const nothing = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
  expect(result.usage).toMatchObject(nothing);
});

test('arguments in the form of an object are serialized to text', async () => {
  let count = 0;
  const { log } = await playStream(async function* () {
    count += 1;
    if (count === 1) yield { ...call('c1', 't'), args: { path: 'a' } };
    yield* say('ok');
  });
  expect(outcomeOf(log)).toBe('succeeded');
});

test('a diagnostic of a model is stored as JSON, or without its detail', async () => {
  const { log } = await playStream(async function* () {
    yield { type: 'diagnostic', code: 5, detail: 10n };
    yield { type: 'diagnostic', code: 'mine', detail: new Map([['a', 1]]) };
    yield* say('ok');
  });
  expect(entriesOf(log, 'diagnostic').map(({ code, detail }) => [code, detail])).toEqual([
    ['model', undefined],
    ['mine', [['a', 1]]],
  ]);
});

describe('unusual failures of a model', () => {
  const streams: [string, () => unknown][] = [
    ['throws at once', throwing(new Error('at once'))],
    ['throws undefined at once', throwing(undefined)],
    ['rejects', () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(null) }) })],
    ['ends before its start', async function* () {}],
    ['throws an unreadable proxy', throwing(unreadable)],
  ];
  test.each(streams)('a model is retried as after a network error if it %s', async (_, stream) => {
    let count = 0;
    const { result, log, clock } = await playStream(() => {
      count += 1;
      return stream();
    });
    expect([result.termination, result.cause, count]).toEqual(['Error', 'model', 4]);
    expect(typeof result.error?.message).toBe('string');
    expect(entriesOf(log, 'model-retry')).toHaveLength(3);
    expect(clock.waiting).toBe(0);
  });

  const defective: [string, () => unknown, string | RegExp][] = [
    ['a number', () => 5, 'stream() of the model odd must return an async iterable of parts, got 5'],
    ['null', () => null, 'stream() of the model odd must return an async iterable of parts, got null'],
    ['an object without an iterator', () => ({ [Symbol.asyncIterator]: () => null }), /^TypeError: /],
    ['invalid results', () => ({ [Symbol.asyncIterator]: () => ({ next: () => 5 }) }), /^TypeError: /],
  ];
  test.each(defective)(
    'a model is called once if stream() returns %s, and the error describes it',
    async (_, stream, message) => {
      let count = 0;
      const { result, log, clock } = await playStream(() => {
        count += 1;
        return stream();
      });
      expect([result.termination, result.cause, result.error?.code, count]).toEqual(['Error', 'model', 'defect', 1]);
      expect(result.error?.message).toMatch(message);
      expect(entriesOf(log, 'model-retry')).toEqual([]);
      expect(clock.waiting).toBe(0);
    },
  );

  const thrown: [string, () => unknown][] = [
    ['undefined', () => undefined],
    ['null', () => null],
    ['a text', () => 'text'],
    ['an empty object', () => ({})],
    ['an object without a prototype', () => Object.create(null)],
    ['a Symbol', () => Symbol('s')],
    ['something unreadable', () => unreadable],
  ];
  test.each(thrown)('a model that throws %s', async (_, give) => {
    const { result } = await playStream(async function* () {
      yield { type: 'text-delta', text: 'partial' };
      throw give();
    });
    expect([result.termination, result.error?.code, result.text]).toEqual(['Error', 'network', '']);
  });
});

test('a ModelError of another copy of the library is accepted', async () => {
  let count = 0;
  const foreign = Object.assign(new Error('no key'), {
    code: 'auth',
    retryable: false,
    [Symbol.for('runchart.error')]: true,
  });
  const { result } = await playStream(async function* () {
    count += 1;
    if (count > 0) throw foreign;
    yield* say('');
  });
  expect([count, result.error]).toEqual([1, { code: 'auth', message: 'no key' }]);
});

test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, '5', null])('a requested wait of %s is ignored', async (ms) => {
  let count = 0;
  const { result, log } = await playStream(async function* () {
    count += 1;
    if (count === 1) throw new ModelError({ code: 'server', retryAfterMs: ms as number });
    yield* say('ok');
  });
  expect(result.text).toBe('ok');
  expect(entriesOf(log, 'model-retry').map(({ waitMs }) => waitMs)).toEqual([1_000]);
});

test.each([
  ['emits nothing more', undefined],
  ['sends an invalid part', null],
  ['sends more text', { type: 'text-delta', text: 'more' }],
  ['reports a diagnostic', { type: 'diagnostic', code: 'late' }],
])('a reply with a finish counts even if the stream then stays open and %s', async (_, part) => {
  let count = 0;
  const { result, log, clock } = await playStream(async function* () {
    count += 1;
    yield* say('whole');
    if (part !== undefined) yield part;
    await new Promise(() => undefined);
  });
  expect([count, result.termination, result.text, clock.waiting]).toEqual([1, 'NaturalEnd', 'whole', 0]);
  expect(codesOf(log)).toEqual([]);
});

test.each(['\u200b', '\u2060\n', '\ufeff \u00ad'])('a reply of invisible characters, %j, is empty', async (text) => {
  const { result } = await playStream(async function* () {
    yield* say(text);
  });
  expect([result.cause, result.turns]).toEqual(['empty_replies', 3]);
});

test('parts after the end of a reply are not part of it', async () => {
  const { result, log } = await playStream(async function* () {
    yield* say('done');
    yield { type: 'text-delta', text: ' and more' };
    yield call('c9', 't');
  });
  expect([result.text, entriesOf(log, 'tool-result')]).toEqual(['done', []]);
});

test('a stream whose clean-up throws has still been read', async () => {
  const parts = say('fine');
  const iterator = () => ({
    next: () => {
      const value = parts.shift();
      return Promise.resolve(value ? { done: false, value } : { done: true, value: undefined });
    },
    return: throwing(new Error('clean-up')),
  });
  const { result } = await playStream(() => ({ [Symbol.asyncIterator]: iterator }));
  expect(result.text).toBe('fine');
});

test("an error from a getter of the model's options is an error of the agent, not of the process", async () => {
  const model = scripted([]);
  Object.defineProperty(model, 'prices', { get: throwing(new Error('prices')) });
  const outcome = await opened({ model }).then(
    async (conversation) => (await conversation.send('go').result).termination,
    () => 'refused',
  );
  expect(['refused', 'Error']).toContain(outcome);
});
