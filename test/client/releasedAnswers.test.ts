/** A request leaves nothing, however it ends: no timer, no listener on the signal, and no open body. */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readBody, ServerCalls } from '../../src/client/serverCalls.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const setTimer = (ms: number, fire: () => void): (() => void) => {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
};

/** A server whose answers stay open unless they are `whole`. `open` counts the bodies that nobody has released. */
function serverOf(answer: (count: number) => { text: string; whole?: boolean; init?: ResponseInit } | 'lost' | 'none') {
  const counts = { requests: 0, open: 0 };
  const send = (async (_: string, { signal }: RequestInit) => {
    counts.requests += 1;
    if (signal?.aborted) throw new Error('aborted');
    const planned = answer(counts.requests);
    if (planned === 'lost') throw new TypeError('fetch failed');
    if (planned === 'none')
      return new Promise<Response>((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')));
      });
    const { text, whole = false, init } = planned;
    counts.open += whole ? 0 : 1;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text));
        if (whole) controller.close();
      },
      cancel() {
        counts.open -= 1;
      },
    });
    return new Response(body, init);
  }) as typeof fetch;
  return { send, counts };
}

const stream = { headers: { 'content-type': 'text/event-stream' } };
const page = { headers: { 'content-type': 'text/html' } };
type Way = {
  answer: Parameters<typeof serverOf>[0];
  events?: boolean;
  closesAfterMs?: number;
  outcome: string;
  requests: number;
};
const WAYS: { readonly [name: string]: Way } = {
  'an answer': { answer: () => ({ text: '{}', whole: true }), outcome: 'answered', requests: 1 },
  'an answer that never ends': { answer: () => ({ text: '{}' }), outcome: 'answered', requests: 1 },
  'an answer that is no JSON': { answer: () => ({ text: '<', whole: true }), outcome: 'bad_answer', requests: 1 },
  'a refusal': { answer: () => ({ text: '', whole: true, init: { status: 404 } }), outcome: 'not_found', requests: 1 },
  'a refusal that never ends': {
    answer: () => ({ text: '', init: { status: 404 } }),
    outcome: 'not_found',
    requests: 1,
  },
  'an answer after a lost one': {
    answer: (count) => (count === 1 ? 'lost' : { text: '{}', whole: true }),
    ...{ outcome: 'answered', requests: 2 },
  },
  'a request that nobody answers': { answer: () => 'none', outcome: 'network', requests: 7 },
  'a close during the request': { answer: () => 'none', closesAfterMs: 1000, outcome: 'closed', requests: 1 },
  'a close before a repetition': { answer: () => 'lost', closesAfterMs: 1, outcome: 'closed', requests: 1 },
  'events that are refused': {
    answer: () => ({ text: '', init: { status: 403 } }),
    ...{ events: true, outcome: 'refused', requests: 1 },
  },
  'events that are a page': {
    answer: () => ({ text: '<html>', init: page }),
    ...{ events: true, outcome: 'bad_answer', requests: 1 },
  },
};

describe('a request leaves nothing behind after', () => {
  it.each(Object.entries(WAYS))('%s', async (_, { answer, events = false, closesAfterMs, outcome, requests }) => {
    const { send, counts } = serverOf(answer);
    const calls = new ServerCalls({ baseURL: 'http://h', fetch: send, random: () => 0, setTimer });
    const abort = new AbortController();
    const { signal } = abort;
    let came = 'nothing';
    const asked: Promise<unknown> = events ? calls.events('/e', 0, signal) : calls.call('GET', '/c', { signal });
    asked.then(
      () => {
        came = 'answered';
      },
      (error: { code?: string }) => {
        came = error.code ?? 'refused';
      },
    );
    if (closesAfterMs !== undefined) {
      await vi.advanceTimersByTimeAsync(closesAfterMs);
      abort.abort();
    }
    // After a close nothing is awaited. A stalled body is abandoned after a minute, and seven requests after eight.
    await vi.advanceTimersByTimeAsync(closesAfterMs === undefined ? 600_000 : 0);
    expect({ came, requests: counts.requests, open: counts.open, timers: vi.getTimerCount() }).toEqual({
      came: outcome,
      requests,
      open: 0,
      timers: 0,
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('an answer that came whole leaves no timer even before its limit', async () => {
    const { send } = serverOf(() => ({ text: '{}', whole: true }));
    const calls = new ServerCalls({ baseURL: 'http://h', fetch: send, random: () => 0, setTimer });
    await calls.call('GET', '/c', { signal: new AbortController().signal });
    expect(vi.getTimerCount()).toBe(0);
  });

  it('a close while the headers are made reaches the request before it is sent', async () => {
    const { send, counts } = serverOf(() => 'none');
    const abort = new AbortController();
    const headers = async () => {
      abort.abort();
      return {};
    };
    const calls = new ServerCalls({ baseURL: 'http://h', fetch: send, random: () => 0, setTimer, headers });
    const asked = calls.call('GET', '/c', { signal: abort.signal });
    await expect(asked).rejects.toMatchObject({ code: 'closed' });
    expect({ ...counts, timers: vi.getTimerCount() }).toEqual({ requests: 1, open: 0, timers: 0 });
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  });
});

describe('reading a body leaves nothing behind after', () => {
  const read = (text: string, whole: boolean, take: () => void) => {
    const { send, counts } = serverOf(() => ({ text, whole, init: stream }));
    const abort = new AbortController();
    const reading = send('http://h', { signal: abort.signal })
      .then((response) => readBody(response, { signal: abort.signal, silenceMs: 1000, setTimer }, take))
      .then(
        () => 'ended',
        (error: Error) => error.message,
      );
    return { abort, counts, reading };
  };
  it.each([
    ['its end', true, 'none', 'ended'],
    ['a silence', false, 'silence', 'ended'],
    ['a close', false, 'close', 'ended'],
    ['a failure of the reader', false, 'failure', 'unusable'],
  ])('%s', async (_, whole, way, outcome) => {
    const { abort, counts, reading } = read('data: a\n\n', whole, () => {
      if (way === 'failure') throw new Error('unusable');
    });
    await vi.advanceTimersByTimeAsync(1);
    if (way === 'close') abort.abort();
    await vi.advanceTimersByTimeAsync(way === 'silence' ? 1000 : 1);
    expect(await reading).toBe(outcome);
    expect({ open: counts.open, timers: vi.getTimerCount() }).toEqual({ open: 0, timers: 0 });
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
  });
});
