/**
 * Models that throw before they stream, that break in the middle, and that never wait. Invariant: a failed attempt
 * contains the thrown error, and a mistake in the model's code is not retried. No model delays timers, time-outs or a
 * cancel.
 */
import { describe, expect, test } from 'vitest';
import type { Conversation, Model } from '../../src/index.ts';
import { ModelError } from '../../src/index.ts';
import { nextTurn } from '../../src/timeLimit.ts';
import { entriesOf, opened, say, settle, stillClock } from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

type Stream = (calls: number) => unknown;

/** An open conversation with a model that counts its calls. Time moves only when a test moves it. */
async function talking(stream: Stream, policies: object = {}) {
  const clock = stillClock();
  const counted = { calls: 0 };
  const model: Model = {
    id: 'eager',
    stream: (() => {
      counted.calls += 1;
      return stream(counted.calls);
    }) as unknown as Model['stream'],
  };
  const ports = { now: clock.now, setTimer: clock.setTimer, random: () => 0 };
  const conversation = await opened({ model, ports, policies });
  return { conversation, clock, counted };
}

async function played(stream: Stream) {
  const { conversation, clock, counted } = await talking(stream);
  const { result } = conversation.send('go');
  await settle();
  await clock.advance(10_000_000);
  return { result: await result, calls: counted.calls, log: conversation.log() };
}

const network = (code: string) => new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code }) });

const places: [string, (error: unknown) => Stream][] = [
  [
    'at once',
    (error) => () => {
      throw error;
    },
  ],
  ['from an async function', (error) => () => Promise.reject(error)],
  [
    'from an async function, after a while',
    (error) => async () => {
      await nextTurn();
      throw error;
    },
  ],
  [
    'before its first part',
    (error) =>
      // biome-ignore lint/correctness/useYield: it throws before it yields
      async function* () {
        throw error;
      },
  ],
  [
    'in the middle of the stream',
    (error) =>
      async function* () {
        yield { type: 'text-delta', text: 'half' };
        throw error;
      },
  ],
  ['from its iterator', (error) => () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) })],
];
const thrown: [string, () => unknown, { code: string; message: string; calls: number }][] = [
  [
    'a TypeError',
    () => new TypeError('x is not a function'),
    { code: 'defect', message: 'TypeError: x is not a function', calls: 1 },
  ],
  [
    'a ReferenceError',
    () => new ReferenceError('y is not defined'),
    { code: 'defect', message: 'ReferenceError: y is not defined', calls: 1 },
  ],
  [
    'a SyntaxError',
    () => new SyntaxError('Unexpected token'),
    { code: 'defect', message: 'SyntaxError: Unexpected token', calls: 1 },
  ],
  [
    'a TypeError with a cause without a network code',
    () => new TypeError('fetch failed', { cause: { code: 'ERR_INVALID_URL' } }),
    { code: 'defect', message: 'TypeError: fetch failed (ERR_INVALID_URL)', calls: 1 },
  ],
  [
    'a TypeError with a cause without a code',
    () => new TypeError('wrapped', { cause: new Error('inner') }),
    { code: 'defect', message: 'TypeError: wrapped', calls: 1 },
  ],
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ETIMEDOUT',
    'UND_ERR_SOCKET',
    'HPE_INVALID_CHUNK_SIZE',
  ].map((code): [string, () => unknown, { code: string; message: string; calls: number }] => [
    `the error of fetch for ${code}`,
    () => network(code),
    { code: 'network', message: `TypeError: fetch failed (${code})`, calls: 4 },
  ]),
  ...['Failed to fetch', 'Load failed', 'network error', 'NetworkError when attempting to fetch resource.'].map(
    (message): [string, () => unknown, { code: string; message: string; calls: number }] => [
      `the error of a browser: ${message}`,
      () => new TypeError(message),
      { code: 'network', message: `TypeError: ${message}`, calls: 4 },
    ],
  ),
  ['an Error', () => new Error('boom'), { code: 'network', message: 'boom', calls: 4 }],
  ['a RangeError', () => new RangeError('too far'), { code: 'network', message: 'RangeError: too far', calls: 4 }],
  [
    'a ModelError',
    () => new ModelError({ code: 'auth', message: 'no key' }),
    { code: 'auth', message: 'no key', calls: 1 },
  ],
];

describe.each(places)('a model that throws %s', (_, throwing) => {
  test.each(thrown)('%s is a failed attempt with the thrown error', async (_, give, { code, message, calls }) => {
    const outcome = await played(throwing(give()));
    expect(outcome.result).toMatchObject({ termination: 'Error', cause: 'model', error: { code } });
    expect(outcome.result.error?.message).toContain(message);
    expect(outcome.calls).toBe(calls);
    const reasons = entriesOf(outcome.log, 'model-retry').map(({ reason }) => reason);
    expect(reasons).toEqual(Array.from({ length: calls - 1 }, () => `${code}: ${message}`));
  });
});

test('stream() may return a promise of an async iterable, or of a list of parts', async () => {
  const streamed = await played(async () => say('promised'));
  const listed = await played(() => Promise.resolve([...say('listed')]));
  expect([streamed.result.text, listed.result.text]).toEqual(['promised', 'listed']);
});

test('a promise of stream() that rejects after a cancel causes no uncaught error', async () => {
  let reject = (_: Error): void => {};
  const { conversation } = await talking(() => new Promise((_, no) => (reject = no)));
  const { result } = conversation.send('go');
  await settle();
  await conversation.cancel();
  reject(new Error('late'));
  await settle();
  expect((await result).termination).toBe('Cancelled');
});

test('a stream that is promised and arrives after the cancel is closed unread', async () => {
  let resolve = (_: unknown): void => {};
  const { conversation } = await talking(() => new Promise((yes) => (resolve = yes)));
  const { result } = conversation.send('go');
  await settle();
  await conversation.cancel();
  const seen: string[] = [];
  const iterator = { next: () => void seen.push('next'), return: async () => void seen.push('return') };
  resolve({ [Symbol.asyncIterator]: () => iterator });
  await settle();
  expect([(await result).termination, seen]).toEqual(['Cancelled', ['return']]);
});

describe('a model that never waits', () => {
  const MOST = 50_000;
  /** Yields without a wait, and gives up if nobody stops it; counts turns of the event loop meanwhile. */
  function endless(begun: () => void, part: unknown) {
    const seen = { parts: 0, turns: 0, isOver: false };
    const stream = async function* () {
      const turn = (): void => {
        seen.turns += 1;
        if (!seen.isOver) setImmediate(turn);
      };
      setImmediate(turn);
      begun();
      try {
        while (seen.parts < MOST) {
          seen.parts += 1;
          yield part;
        }
        throw new Error('nobody stopped it');
      } finally {
        seen.isOver = true;
      }
    };
    return { seen, stream };
  }
  const text = { type: 'text-delta', text: '.' };

  test.each([
    ['text', text],
    ['invalid parts', null],
  ])('the event loop gets a turn after every 256 parts of %s', async (_, part) => {
    const { seen, stream } = endless(() => {}, part);
    const { conversation } = await talking(stream, { modelRetry: { attempts: 1 } });
    const result = await conversation.send('go').result;
    expect(result.error?.message).toBe('nobody stopped it');
    expect(seen.turns).toBeGreaterThanOrEqual(Math.floor(MOST / 256));
  });

  test('it is cancelled within two turns of the event loop', async () => {
    let cancelled: Promise<void> | undefined;
    const { seen, stream } = endless(() => setImmediate(() => (cancelled = conversation.cancel())), text);
    const { conversation }: { conversation: Conversation } = await talking(stream);
    const result = await conversation.send('go').result;
    await cancelled;
    await settle();
    expect([result.termination, seen.isOver]).toEqual(['Cancelled', true]);
    expect(seen.parts).toBeLessThanOrEqual(3 * 256);
  });

  test.each([
    ['totalMs', { totalMs: 500 }, text],
    ['firstPartMs', { firstPartMs: 500 }, null],
  ])('the time-out %s ends it', async (_, modelTimeout, part) => {
    const { seen, stream } = endless(() => setImmediate(() => void clock.advance(500)), part);
    const policies = { modelTimeout, modelRetry: { attempts: 1 } };
    const { conversation, clock } = await talking(stream, policies);
    const result = await conversation.send('go').result;
    await settle();
    expect([result.error?.code, seen.isOver]).toEqual(['timeout', true]);
    expect(seen.parts).toBeLessThan(MOST);
  });
});

test("nothing is read after the finish: the stream's return() is called, and its answer is not awaited", async () => {
  const read: string[] = [];
  const parts = [...say('whole'), { type: 'text-delta', text: ' and more' }];
  const iterator = {
    next: async () => {
      const value = parts.shift();
      read.push((value as { type: string } | undefined)?.type ?? 'end');
      return { done: value === undefined, value };
    },
    return: () => {
      read.push('return');
      return new Promise(() => undefined);
    },
  };
  const { conversation } = await talking(() => ({ [Symbol.asyncIterator]: () => iterator }));
  const result = await conversation.send('go').result;
  await settle();
  expect([result.text, read]).toEqual(['whole', ['text-delta', 'finish', 'return']]);
});

test('an error during the close after the finish does not fail the reply', async () => {
  const { conversation } = await talking(async function* () {
    try {
      yield* say('whole');
      yield null;
    } finally {
      // biome-ignore lint/correctness/noUnsafeFinally: a model may do so
      throw new Error('closing failed');
    }
  });
  const result = await conversation.send('go').result;
  await settle();
  expect([result.termination, result.text]).toEqual(['NaturalEnd', 'whole']);
});
