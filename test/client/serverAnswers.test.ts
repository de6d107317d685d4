/** Every kind of answer that a client may get: its error, its class, the number of repetitions, and the contents of each request. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { SimulatedClock } from 'xstate';
import { EventReader } from '../../src/client/eventReader.ts';
import { connect } from '../../src/client/index.ts';
import { overviewIn } from '../../src/client/remoteConnection.ts';
import { ServerCalls } from '../../src/client/serverCalls.ts';
import {
  AgentBusyError,
  DecisionRefusedError,
  InvalidDecisionError,
  LimitError,
  RunchartError,
  SessionBusyError,
} from '../../src/index.ts';
import { errorOfCode } from '../../src/remote/errorOfCode.ts';

interface Sent {
  url: string;
  init: RequestInit;
}

/** Calls whose requests are recorded. Waits end at once; the limit of an answer never does. */
function callsOf(answer: (count: number) => Response | Promise<Response>, headers?: unknown, baseURL = 'http://h/api') {
  const sent: Sent[] = [];
  const limits: { ms: number; isStopped: boolean }[] = [];
  const setTimer = (ms: number, fire: () => void): (() => void) => {
    const timer = { ms, isStopped: false };
    if (ms === 60_000) limits.push(timer);
    else queueMicrotask(fire);
    return () => {
      timer.isStopped = true;
    };
  };
  const send = (async (url: string, init: RequestInit) => {
    sent.push({ url, init });
    return answer(sent.length);
  }) as typeof fetch;
  const calls = new ServerCalls({
    baseURL,
    fetch: send,
    random: () => 0,
    setTimer,
    ...(headers ? { headers: headers as never } : {}),
  });
  return { calls, sent, limits, setTimer };
}
const { signal } = new AbortController();
const failure = (made: Promise<unknown>): Promise<RunchartError> =>
  made.then(
    () => Promise.reject(new Error('no error')),
    (error) => error,
  );
const refusal = (status: number, body: string): Response => new Response(status === 204 ? null : body, { status });

/** Status, the code for a body without one, and whether the server may take a repetition. */
const STATUSES: readonly (readonly [status: number, code: string, isPassing: boolean])[] = [
  [400, 'bad_answer', false],
  [401, 'unauthorized', false],
  [403, 'unauthorized', false],
  [404, 'not_found', false],
  [405, 'bad_answer', false],
  [408, 'bad_answer', true],
  [409, 'bad_answer', false],
  [413, 'too_large', false],
  [415, 'bad_answer', false],
  [429, 'limit', true],
  [500, 'bad_answer', false],
  [501, 'bad_answer', false],
  [502, 'network', true],
  [503, 'network', true],
  [504, 'network', true],
];
const BODIES: readonly (readonly [body: string, code: string | undefined])[] = [
  ['', undefined],
  ['<html>', undefined],
  ['{}', undefined],
  ['{"code":"","message":"m"}', undefined],
  ['{"code":"own"}', undefined],
  ['{"code":7,"message":"m"}', undefined],
  ['{"code":"own","message":7}', undefined],
  ['null', undefined],
  ['{"code":"own","message":"m"}', 'own'],
];

/** Records each failed attempt and the end, and leaves after a certain number of attempts. */
const targetOf = (states: string[], abort: AbortController, attempts: number) => ({
  wanted: 0,
  connected: () => undefined,
  take: () => undefined,
  flush: () => undefined,
  lost: (error: RunchartError | undefined) => {
    states.push(`lost ${error?.code}`);
    if (states.length === attempts) abort.abort();
  },
  failed: (error: RunchartError) => void states.push(`failed ${error.code}`),
});

describe('a refusal', () => {
  it.each(STATUSES)(
    'with status %i has the code of its body or else %s, and is repeated: %s',
    async (status, code, isPassing) => {
      for (const [body, own] of BODIES) {
        const { calls, sent, limits } = callsOf(() => refusal(status, body));
        const error = await failure(calls.call('GET', '/c', { signal }));
        expect([body, error.code, sent.length]).toEqual([body, own ?? code, isPassing ? 7 : 1]);
        expect(error.message).toBe(own ? 'm' : `the server answered with status ${status}`);
        expect(limits.every(({ isStopped }) => isStopped)).toBe(true);
      }
    },
  );

  it.each(STATUSES)('of the events with status %i ends them, unless it may pass', async (status, code, isPassing) => {
    const states: string[] = [];
    const abort = new AbortController();
    const { calls, sent, setTimer } = callsOf(() => refusal(status, ''));
    const target = targetOf(states, abort, 4);
    await new EventReader(target, { calls, path: '/e', signal: abort.signal, silenceMs: 1, setTimer }).read();
    const mayRepair = code === 'bad_answer' || code === 'unauthorized';
    const expected = isPassing
      ? Array(4).fill(`lost ${code}`)
      : [...(mayRepair ? Array(2).fill(`lost ${code}`) : []), `failed ${code}`];
    expect([states, sent.length]).toEqual([expected, expected.length]);
  });

  const entry = 'event: entry\ndata: {"seq":0}\n\n';
  const live = 'event: live\ndata: {"type":"text-delta"}\n\n';
  it.each([
    ['', 3],
    [live, 3],
    [entry, 9],
    [live + entry, 9],
  ])(
    'ends the events only at the third one in a row without an entry between: %j, %i requests',
    async (usable, count) => {
      const states: string[] = [];
      const abort = new AbortController();
      const { calls, sent, setTimer } = callsOf(() => {
        const headers = { 'content-type': 'text/event-stream' };
        return new Response(`${usable}event: entry\ndata: no JSON\n\n`, { headers });
      });
      const target = targetOf(states, abort, 9);
      await new EventReader(target, { calls, path: '/e', signal: abort.signal, silenceMs: 60_000, setTimer }).read();
      const expected = Array(count).fill('lost bad_answer');
      if (count === 3) expected[2] = 'failed bad_answer';
      expect([states, sent.length]).toEqual([expected, count]);
    },
  );

  it.each([
    ['absent', undefined, 1],
    ['an object', { authorization: 'old' }, 1],
    ['a function', () => ({ authorization: 'new' }), 2],
  ])(
    'for a missing authorization is repeated once where the headers are %s: %o, %i requests',
    async (_, headers, count) => {
      for (const status of [401, 403]) {
        const { calls, sent } = callsOf(() => refusal(status, ''), headers);
        expect((await failure(calls.call('GET', '/c', { signal }))).code).toBe('unauthorized');
        expect(sent.length).toBe(count);
      }
    },
  );
});

describe('an answer', () => {
  it.each([['{"a":1}'], ['[]'], ['{}']])('%s is passed on', async (text) => {
    expect(await callsOf(() => new Response(text)).calls.call('GET', '/c', { signal })).toEqual(JSON.parse(text));
  });

  it.each(['', 'null', '7', '"text"', 'true', '<html>', '{"a":'])(
    '%j is a bad answer, and is not asked for again',
    async (text) => {
      const { calls, sent } = callsOf(() => new Response(text));
      expect((await failure(calls.call('GET', '/c', { signal }))).code).toBe('bad_answer');
      expect(sent.length).toBe(1);
    },
  );

  it.each([
    ['text/event-stream', true],
    ['Text/Event-Stream; charset=utf-8', true],
    ['text/event-streams', false],
    ['application/json', false],
    ['', false],
  ])('of type %j is a stream of events: %s', async (type, isStream) => {
    const { calls } = callsOf(() => new Response('x', { headers: { 'content-type': type } }));
    const asked = calls.events('/e', 0, signal);
    if (isStream) expect((await asked).ok).toBe(true);
    else expect((await failure(asked)).code).toBe('bad_answer');
  });

  it('that is lost is asked for seven times, and the error names the cause', async () => {
    const { calls, sent } = callsOf(() => Promise.reject(new TypeError('fetch failed')));
    const error = await failure(calls.call('POST', '/c', { body: { a: 1 }, signal }));
    expect([error.code, error.message, sent.length]).toEqual([
      'network',
      'the server cannot be reached: TypeError: fetch failed',
      7,
    ]);
    expect(new Set(sent.map(({ init }) => init.body))).toEqual(new Set(['{"a":1}']));
  });

  it.each([1, 6, 7])('that comes at attempt %i ends the repetitions', async (attempt) => {
    const { calls, sent } = callsOf((count) => (count < attempt ? refusal(503, '') : new Response('{}')));
    expect(await calls.call('GET', '/c', { signal })).toEqual({});
    expect(sent.length).toBe(attempt);
  });

  it('is no longer awaited after 60 s or after a close', async () => {
    for (const end of ['late', 'closed'] as const) {
      const abort = new AbortController();
      let fire = (): void => undefined;
      const timers: number[] = [];
      const setTimer = (ms: number, act: () => void) => {
        timers.push(ms);
        if (ms === 60_000) fire = act;
        else queueMicrotask(() => abort.abort());
        return () => undefined;
      };
      const send = ((_: string, init: RequestInit) =>
        new Promise((_resolve, reject) => {
          init.signal?.addEventListener('abort', () => reject(new Error('aborted')));
          queueMicrotask(() => (end === 'late' ? fire() : abort.abort()));
        })) as typeof fetch;
      const calls = new ServerCalls({ baseURL: 'http://h', fetch: send, random: () => 0, setTimer });
      expect((await failure(calls.call('GET', '/c', { signal: abort.signal }))).code).toBe('closed');
      expect(timers).toEqual(end === 'late' ? [60_000, 125] : [60_000]);
    }
  });
});

describe('a request', () => {
  const headersOf = ({ init }: Sent) => init.headers;

  it.each(['http://h/api', 'http://h/api/', 'http://h/api///'])('to %s goes to the path after it', async (base) => {
    const { calls, sent } = callsOf(() => new Response('{}'), undefined, base);
    await calls.call('GET', '/c?a=1', { signal });
    expect(sent.map(({ url }) => url)).toEqual(['http://h/api/c?a=1']);
    expect(calls.addressOf('/x')).toBe('http://h/api/x');
  });

  it.each([undefined, { a: 'own' }, () => ({ a: 'own' }), async () => ({ a: 'own' })])(
    'with the headers %o carries them on every path',
    async (headers) => {
      const own = headers ? { a: 'own' } : {};
      const stream = { headers: { 'content-type': 'text/event-stream' } };
      const { calls, sent } = callsOf((count) => new Response('{}', count > 2 ? stream : {}), headers);
      await calls.call('GET', '/c', { signal });
      await calls.call('POST', '/c', { body: {}, signal });
      await calls.events('/e', -1, signal);
      await calls.events('/e', 0, signal);
      await calls.events('/e', 7, signal);
      const events = { ...own, accept: 'text/event-stream' };
      expect(sent.map(headersOf)).toEqual([
        own,
        { ...own, 'content-type': 'application/json' },
        events,
        { ...events, 'last-event-id': '0' },
        { ...events, 'last-event-id': '7' },
      ]);
      expect(sent.map(({ init }) => [init.method, init.body, init.cache])).toEqual([
        ['GET', undefined, 'no-store'],
        ['POST', '{}', 'no-store'],
        ...Array(3).fill(['GET', undefined, 'no-store']),
      ]);
    },
  );

  it('asks for the headers again with each repetition', async () => {
    let asked = 0;
    const { calls, sent } = callsOf(
      (count) => (count < 4 ? refusal(503, '') : new Response('{}')),
      () => {
        asked += 1;
        return { n: `${asked}` };
      },
    );
    await calls.call('GET', '/c', { signal });
    expect(sent.map(headersOf)).toEqual([1, 2, 3, 4].map((n) => ({ n: `${n}` })));
  });

  it.each([
    ['setTimer', { random: () => 0 }],
    ['random', { setTimer: callsOf(() => refusal(200, '[]')).setTimer }],
  ])('is sent as usual if the option %s is undefined', async (name, options) => {
    let asked = 0;
    // Only a repetition needs a random part.
    const refusals = name === 'random' ? 1 : 0;
    const send = (async () => refusal(++asked > refusals ? 200 : 503, '[]')) as typeof fetch;
    const client = connect({ baseURL: 'http://h', fetch: send, ...options, [name]: undefined });
    expect(await client.list()).toEqual([]);
    expect(asked).toBe(refusals + 1);
  });

  it('after the close is not sent', async () => {
    const client = connect({ baseURL: 'http://h', fetch: () => Promise.reject(new Error('it was sent')) });
    await client.close();
    await client.close();
    for (const asked of [client.open('a'), client.list()]) expect((await failure(asked)).code).toBe('closed');
  });
});

it.each([
  ['agent_busy', AgentBusyError],
  ['cancellation_in_progress', AgentBusyError],
  ['invalid_decision', InvalidDecisionError],
  ['decision_refused', DecisionRefusedError],
  ['limit', LimitError],
  ['session_busy', SessionBusyError],
  ['not_found', RunchartError],
  ['new_one', RunchartError],
] as const)('the code %s is an error of the class that an embedded conversation throws', (code, own) => {
  const error = errorOfCode(code, 'words');
  expect([error.constructor, error.code, error.message]).toEqual([own, code, expect.stringContaining('words')]);
});

describe('an overview', () => {
  const whole = { createdAt: 1, entries: 2, status: 'idle', pending: [], unsettled: [] };
  it('is taken with all fields', () => {
    expect(overviewIn(whole)).toBe(whole);
  });
  it.each(Object.keys(whole).flatMap((field) => [undefined, null, {}].map((value) => [field, value] as const)))(
    'whose %s is %j is a bad answer',
    (field, value) => {
      expect(() => overviewIn({ ...whole, [field]: value })).toThrow(expect.objectContaining({ code: 'bad_answer' }));
    },
  );
});

it('a connection counts as lost after 40 s without a byte, or after silenceMs', async () => {
  for (const silenceMs of [undefined, 1_234]) {
    const timers: number[] = [];
    const setTimer = (ms: number) => {
      timers.push(ms);
      return () => undefined;
    };
    const overview = { createdAt: 1, entries: 0, status: 'idle', pending: [], unsettled: [] };
    const body = new ReadableStream({ start: () => undefined });
    const send = (async (url: string) =>
      url.includes('/events')
        ? new Response(body, { headers: { 'content-type': 'text/event-stream' } })
        : new Response(JSON.stringify({ id: 'a', overview }))) as typeof fetch;
    const client = connect({ baseURL: 'http://h', fetch: send, setTimer, ...(silenceMs && { silenceMs }) });
    onTestFinished(() => client.close());
    await client.open('a');
    await expect.poll(() => timers.filter((ms) => ms !== 60_000)).toEqual([silenceMs ?? 40_000]);
  }
});

it('each piece of the events begins the 40 s anew, so a stream with data at least that often is never cut', async () => {
  const clock = new SimulatedClock();
  let begun = 0;
  const setTimer = (ms: number, fire: () => void) => {
    if (ms === 40_000) begun += 1;
    const timer = clock.setTimeout(fire, ms);
    return () => clock.clearTimeout(timer);
  };
  const streams: { cancelled: boolean; controller: ReadableStreamDefaultController<Uint8Array> }[] = [];
  const overview = { createdAt: 1, entries: 0, status: 'idle', pending: [], unsettled: [] };
  const send = (async (url: string) => {
    if (!url.includes('/events')) return new Response(JSON.stringify({ id: 'a', overview }));
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void streams.push({ cancelled: false, controller }),
      cancel: () => void Object.assign(streams.at(-1) ?? {}, { cancelled: true }),
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  }) as typeof fetch;
  const client = connect({ baseURL: 'http://h', fetch: send, setTimer });
  onTestFinished(() => client.close());
  await client.open('a');
  await expect.poll(() => streams.length).toBe(1);
  for (let times = 1; times <= 5; times++) {
    await expect.poll(() => begun).toBe(times);
    clock.increment(39_999);
    streams[0]?.controller.enqueue(new TextEncoder().encode(': still connected\n\n'));
    expect([times, streams.length, streams[0]?.cancelled]).toEqual([times, 1, false]);
  }
  await expect.poll(() => begun).toBe(6);
  clock.increment(40_000);
  await expect.poll(() => streams[0]?.cancelled).toBe(true);
});
