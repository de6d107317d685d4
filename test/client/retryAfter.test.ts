/** The waits of a client: as long as the server requests, on every path, and without a listener afterwards. */
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { EventReader } from '../../src/client/eventReader.ts';
import { readBody, ServerCalls } from '../../src/client/serverCalls.ts';

interface Waits {
  calls: ServerCalls;
  waits: number[];
  setTimer(ms: number, fire: () => void): () => void;
}

/** Timers of a wait end at once; those that limit an answer never fire. */
function callsOf(send: typeof fetch): Waits {
  const waits: number[] = [];
  const setTimer = (ms: number, fire: () => void): (() => void) => {
    if (ms >= 60_000) return () => undefined;
    waits.push(ms);
    queueMicrotask(fire);
    return () => undefined;
  };
  return { calls: new ServerCalls({ baseURL: 'http://x', fetch: send, random: () => 0, setTimer }), waits, setTimer };
}

const STREAM = { 'content-type': 'text/event-stream' };
const target = { wanted: 0, connected() {}, take() {}, flush() {}, lost() {}, failed() {} };
const listeners = ({ signal }: AbortController): number => getEventListeners(signal, 'abort').length;

/** The requests that are repeated until the server answers: a request, and the events of a conversation. */
const PATHS: Readonly<Record<string, (waiting: Waits, abort: AbortController) => Promise<unknown>>> = {
  'a request': ({ calls }, { signal }) => calls.call('GET', '/c', { signal }),
  events: ({ calls, setTimer }, abort) => {
    const { signal } = abort;
    const connected = (): void => abort.abort();
    return new EventReader({ ...target, connected }, { calls, path: '/e', signal, silenceMs: 60_000, setTimer }).read();
  },
};

const PASSING = [408, 429, 502, 503, 504];
/** The seconds of the header, and the shortest wait of the client: an odd or a long value is ignored. */
const HEADERS: readonly (readonly [string | undefined, number])[] = [
  [undefined, 0],
  ['0', 0],
  ['1', 1_000],
  ['7', 7_000],
  ['59', 59_000],
  ['61', 0],
  ['-1', 0],
  ['soon', 0],
];

describe.each(Object.entries(PATHS))('%s', (_, ask) => {
  it.each(PASSING)(
    'waits after status %i as long as Retry-After requires, each time, and leaves no listener',
    async (status) => {
      for (const [header, least] of HEADERS) {
        let count = 0;
        const abort = new AbortController();
        const waiting = callsOf(async () => {
          count += 1;
          if (count > 2) return new Response('{}', { headers: STREAM });
          return new Response('{}', { status, headers: header === undefined ? {} : { 'retry-after': header } });
        });
        await ask(waiting, abort);
        expect([status, header, waiting.waits]).toEqual([
          status,
          header,
          [125, 250].map((own) => Math.max(own, least)),
        ]);
        expect(listeners(abort)).toBe(0);
      }
    },
  );
});

describe('the waits between connections', () => {
  const EVENT = 'event: live\ndata: {"type":"status","status":"idle"}\n\n';
  /** Every order of six connections, each with an event that can be used or without one. */
  const ORDERS = Array.from({ length: 2 ** 6 }, (_, bits) =>
    Array.from({ length: 6 }, (_, at) => (bits >> at) % 2 === 1),
  );

  it('double with each connection without an event, and begin anew after an event', async () => {
    for (const order of ORDERS) {
      const abort = new AbortController();
      let count = 0;
      const { calls, waits, setTimer } = callsOf(async () => {
        const hasEvent = order[count];
        count += 1;
        if (hasEvent === undefined) abort.abort();
        return new Response(hasEvent ? EVENT : ': nothing\n\n', { headers: STREAM });
      });
      await new EventReader(target, { calls, path: '/e', signal: abort.signal, silenceMs: 60_000, setTimer }).read();
      let streak = 0;
      const expected = order.map((hasEvent) => {
        streak = hasEvent ? 1 : streak + 1;
        return 125 * 2 ** (streak - 1);
      });
      expect([order, waits]).toEqual([order, expected]);
    }
  });
});

describe('a signal has no listener', () => {
  const WAYS: Readonly<Record<string, (abort: AbortController) => Promise<unknown>>> = {
    'after an answer': ({ signal }) => callsOf(async () => new Response('{}')).calls.call('GET', '/c', { signal }),
    'after a refusal': ({ signal }) =>
      callsOf(async () => new Response('no', { status: 404 })).calls.call('GET', '/c', { signal }),
    'after every attempt has failed': ({ signal }) =>
      callsOf(() => Promise.reject(new TypeError('fetch failed'))).calls.call('GET', '/c', { signal }),
    'after an answer that is no JSON': ({ signal }) =>
      callsOf(async () => new Response('<html>')).calls.call('GET', '/c', { signal }),
    'after a wait': ({ signal }) => callsOf(fetch).calls.wait(1, signal),
    'after a wait that was cut short': (abort) => {
      const calls = new ServerCalls({ baseURL: 'http://x', random: () => 0, setTimer: () => () => undefined });
      const waiting = calls.wait(1, abort.signal);
      abort.abort();
      return waiting;
    },
    'after events that are refused': ({ signal }) =>
      callsOf(async () => new Response('no', { status: 404 })).calls.events('/e', 0, signal),
    'after a stream that has ended': ({ signal }) =>
      readBody(new Response('x'), { signal, silenceMs: 60_000, setTimer: () => () => undefined }, () => undefined),
    'after a stream that could not be read': ({ signal }) =>
      readBody(new Response('x'), { signal, silenceMs: 60_000, setTimer: () => () => undefined }, () => {
        throw new Error('odd');
      }),
  };
  it.each(Object.entries(WAYS))('%s', async (_, act) => {
    const abort = new AbortController();
    await act(abort).catch(() => undefined);
    expect(listeners(abort)).toBe(0);
  });
});
