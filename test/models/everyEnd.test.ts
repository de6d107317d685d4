/**
 * Every end of an attempt and of a call over HTTP or through the AI SDK, with every resource that it holds: timers, listeners,
 * iterators, readers and bodies. Each must be released exactly once, in time, whatever ends the call.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Live } from '../../src/live.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { Attempt, type Attempted } from '../../src/models/attempt.ts';
import { BATCHES, type Model, ModelError, type ModelPart, type PartBatches } from '../../src/models/model.ts';
import { openai, openaiResponses } from '../../src/models/openai/index.ts';
import { EffectAbort } from '../../src/timeLimit.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';
import { KEY, request, served } from './scriptedFetch.ts';
import { end as sdkEnd, textParts } from './sdkProvider.ts';

const TEXT: ModelPart = { type: 'text-delta', text: 'so' };
const FINISH: ModelPart = { type: 'finish', reason: 'stop' };
type Step = ModelPart | Error | 'end' | 'hang';

/** A stream in the form of a generator or of batches, which counts how often it is closed. */
function streamOf(steps: readonly Step[], form: 'parts' | 'batches') {
  const closed: string[] = [];
  let at = 0;
  const next = async (): Promise<ModelPart | undefined> => {
    const step = at < steps.length ? steps[at] : 'hang';
    at += 1;
    if (step === 'hang') return new Promise(() => undefined);
    if (step instanceof Error) throw step;
    return step === 'end' ? undefined : step;
  };
  const iterator = {
    async next() {
      const value = await next();
      return value === undefined ? { done: true as const, value } : { done: false as const, value };
    },
    async return() {
      closed.push('iterator');
      return { done: true as const, value: undefined };
    },
  };
  const batches: PartBatches = {
    next: async () => {
      const part = await next();
      return part && [part];
    },
    close: () => void closed.push('batches'),
  };
  const stream = {
    [Symbol.asyncIterator]: () => iterator,
    ...(form === 'batches' && { [BATCHES]: () => batches }),
  };
  return { stream: stream as unknown as AsyncIterable<ModelPart>, closed };
}

function attempt(stream: Model['stream'], totalMs: number | false = 9_000) {
  const clock = new VirtualClock();
  const abort = new EffectAbort();
  const signals: Live[] = [];
  const diagnosed: string[] = [];
  const made = new Attempt({
    ...{ model: { id: 'm', stream }, request: request(), attempt: 3, runId: 'r', abort },
    timeouts: { firstPartMs: 1_000, idleMs: 500, totalMs },
    ...{ now: clock.now, setTimer: clock.setTimer, random: () => 0.25 },
    live: () => (signal) => void signals.push(signal),
    diagnose: (code) => void diagnosed.push(code),
  });
  return { clock, abort, made, signals, diagnosed };
}

/** Each end: the steps of the model, other events, and the outcome. `closes`: the iterator must be closed by its reader. */
const ENDS: readonly (readonly [string, readonly Step[], 'abort' | 'wait' | '', string, closes: boolean])[] = [
  ['a finish', [TEXT, FINISH, 'hang'], '', 'reply', true],
  ['a finish at once', [FINISH, 'hang'], '', 'reply', true],
  ['a filtered reply', [TEXT, { type: 'finish', reason: 'content-filter' }], '', 'content-filter', true],
  ['an end without a finish', [TEXT, 'end'], '', 'stream-incomplete', false],
  ['an end without anything', ['end'], '', 'stream-incomplete', false],
  ['a failure', [TEXT, new ModelError({ code: 'server' })], '', 'server', false],
  ['a failure at once', [new ModelError({ code: 'auth' })], '', 'auth', false],
  ['another error', [TEXT, new Error('gone')], '', 'network', false],
  ['a mistake of the model', [new TypeError('x is not a function')], '', 'defect', false],
  ['an abort before the first part', ['hang'], 'abort', 'cancelled', true],
  ['an abort after a part', [TEXT, 'hang'], 'abort', 'cancelled', true],
  ['silence before the first part', ['hang'], 'wait', 'timeout', true],
  ['silence after a part', [TEXT, 'hang'], 'wait', 'timeout', true],
];

describe.each(['parts', 'batches'] as const)('an attempt whose model gives %s', (form) => {
  it.each(ENDS)('with %s has no timer left, and its stream is closed', async (_, steps, act, outcome, closes) => {
    const { stream, closed } = streamOf(steps, form);
    const { clock, abort, made, signals } = attempt(() => stream);
    const run = made.run();
    await flush();
    if (act === 'abort') abort.abort(new ModelError({ code: 'cancelled' }));
    if (act === 'wait') await clock.until(run, 2_000);
    const ended: Attempted = await run;
    await flush();
    expect(ended.kind === 'reply' ? 'reply' : ended.code).toBe(outcome);
    expect(clock.waiting).toBe(0);
    const isOpen = closes && !(form === 'batches' && act !== '');
    // An abort cannot reach batches that never come; their model obeys the signal.
    if (form === 'batches') expect(closed).toEqual(isOpen || !closes ? ['batches'] : []);
    else expect(closed.length > 0).toBe(closes);
    // Streamed text that did not become a reply is dropped once.
    const resets = signals.filter(({ type }) => type === 'reset');
    expect(resets).toHaveLength(steps[0] === TEXT && outcome !== 'reply' ? 1 : 0);
    expect(made.inFlight === null).toBe(outcome !== 'reply' || steps[0] !== TEXT);
    made.reset();
    made.reset();
    expect(signals.filter(({ type }) => type === 'reset')).toHaveLength(steps[0] === TEXT ? 1 : 0);
    if (ended.kind === 'failed') expect(ended).toMatchObject({ random: 0.25, model: 'm' });
  });
});

describe('an attempt', () => {
  it('that was aborted before it began asks no model, and leaves no timer', async () => {
    const { stream } = streamOf([FINISH], 'parts');
    const open = vi.fn(() => stream);
    const { abort, clock, made } = attempt(open);
    abort.abort(new ModelError({ code: 'cancelled' }));
    expect(await made.run()).toMatchObject({ kind: 'failed', code: 'cancelled' });
    await flush();
    expect([open.mock.calls.length, clock.waiting]).toEqual([0, 0]);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['a text', 'parts'],
    ['an object', {}],
  ])('whose model returns %s is a mistake of the model', async (_, value) => {
    const { clock, made } = attempt((() => value) as never);
    expect(await made.run()).toMatchObject({ kind: 'failed', code: 'defect', retryable: false });
    expect(clock.waiting).toBe(0);
  });

  it('whose model answers after the abort closes the stream, and reads nothing of it', async () => {
    const { stream, closed } = streamOf([TEXT, FINISH], 'parts');
    let answer: (stream: AsyncIterable<ModelPart>) => void = () => undefined;
    const late = new Promise<AsyncIterable<ModelPart>>((resolve) => {
      answer = resolve;
    });
    const { abort, made, signals } = attempt((() => late) as never);
    const run = made.run();
    await flush();
    abort.abort(new ModelError({ code: 'cancelled' }));
    expect(await run).toMatchObject({ code: 'cancelled' });
    answer(stream);
    await flush();
    expect([closed, signals]).toEqual([['iterator'], []]);
  });

  it.each([
    [1_000, 999, 'reply'],
    [1_000, 1_001, 'timeout'],
    [false, 3_000, 'reply'],
  ] as const)('with a limit of %s ms whose parts come for %i ms ends as %s', async (totalMs, ms, outcome) => {
    const parts: ModelPart[] = [];
    let wake = (): void => undefined;
    async function* stream(): AsyncGenerator<ModelPart> {
      for (;;) {
        for (let part = parts.shift(); part; part = parts.shift()) yield part;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    const { clock, made } = attempt(() => stream(), totalMs);
    const feed = (part: ModelPart) => (): void => {
      parts.push(part);
      wake();
    };
    for (let at = 100; at < ms; at += 100) clock.setTimer(at, feed(TEXT));
    const stop = clock.setTimer(ms, feed(FINISH));
    const run = made.run();
    await clock.until(run, 10_000);
    const ended = await run;
    expect(ended.kind === 'reply' ? 'reply' : ended.code).toBe(outcome);
    stop();
    await clock.advance(1_000);
    expect(clock.waiting).toBe(0);
  });

  it('passes its number and its signal to the model, and reports each kind of unusable part once', async () => {
    const contexts: unknown[] = [];
    const odd = [
      { type: 'new' },
      null,
      { type: 'text-delta', text: 7 },
      { type: 'tool-call-delta', text: 'x', name: 7 },
    ];
    const { stream } = streamOf([...(odd as ModelPart[]), FINISH], 'parts');
    const { abort, made, diagnosed } = attempt((_, context) => {
      contexts.push(context);
      return stream;
    });
    expect((await made.run()).kind).toBe('reply');
    expect(contexts).toEqual([{ signal: abort.signal, attempt: 3 }]);
    expect(diagnosed).toEqual(['model_part']);
  });
});

/** Counts the listeners of a signal. */
function counted() {
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  const heard = new Set<unknown>();
  signal.addEventListener = (type: string, listener: never, options?: object) => {
    heard.add(listener);
    listeners = heard.size;
    add(type as 'abort', listener, options as never);
  };
  signal.removeEventListener = (type: string, listener: never) => {
    heard.delete(listener);
    listeners = heard.size;
    remove(type as 'abort', listener);
  };
  return { controller, signal, count: () => listeners };
}

function counter() {
  let closed = 0;
  const count = (): void => {
    closed += 1;
  };
  return { count, closed: () => closed };
}
type Watched = { model: Model; closed: () => number };
const WIRES: { [name: string]: (name: string, options: never) => Model } = { openai, openaiResponses, anthropic };
const HALF: { [name: string]: string } = {
  openai: 'data: {"choices":[{"index":0,"delta":{"content":"so"}}]}\n\n',
  openaiResponses: 'data: {"type":"response.output_text.delta","output_index":0,"delta":"so"}\n\n',
  anthropic: 'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"so"}}\n\n',
};
const WHOLE: { [name: string]: string } = {
  openai: 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  openaiResponses: 'data: {"type":"response.completed","response":{}}\n\n',
  anthropic: 'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n',
};
type Body =
  | 'whole'
  | 'whole and closed'
  | 'refusal and closed'
  | 'half'
  | 'error'
  | 'breaks'
  | 'hangs'
  | 'hangs at once'
  | 'refusal'
  | 'page'
  | 'json';

function overHttp(name: string, body: Body): Watched {
  const { count, closed } = counter();
  const options = { cancelled: count };
  const [half = '', whole = ''] = [HALF[name], WHOLE[name]];
  const error = 'event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n';
  const answers: { [body in Body]: () => Response } = {
    whole: () => served([half, whole], { ...options, end: 'hang' }),
    'whole and closed': () => served([half, whole], options),
    'refusal and closed': () => served(['{"error":{"message":"no"}}'], { ...options, status: 500 }),
    half: () => served([half], options),
    error: () => served([half, error], { ...options, end: 'hang' }),
    breaks: () => served([half], { ...options, end: new Error('reset') }),
    hangs: () => served([half], { ...options, end: 'hang' }),
    'hangs at once': () => served([], { ...options, end: 'hang' }),
    refusal: () => served(['{"error":{"message":"no"}}'], { ...options, end: 'hang', status: 500 }),
    page: () => served(['<html>'], { ...options, end: 'hang', headers: { 'content-type': 'text/html' } }),
    json: () => served(['{'], { ...options, headers: { 'content-type': 'application/json' } }),
  };
  const fetch = async (): Promise<Response> => answers[body]();
  const made = WIRES[name]?.('m', { apiKey: KEY, baseURL: 'http://model.test/v1', fetch } as never);
  return { model: made as Model, closed };
}

function bySdk(_: string, body: Body): Watched {
  const { count, closed } = counter();
  const parts: { [body in Body]?: readonly unknown[] } = {
    whole: [...textParts('so'), sdkEnd()],
    half: textParts('so'),
    error: [...textParts('so'), { type: 'error', error: new Error('no') }],
    breaks: textParts('so'),
    hangs: textParts('so'),
  };
  const fields = { specificationVersion: 'v3', provider: 'acme.chat', modelId: 'm', supportedUrls: {} };
  const doStream = async () => {
    if (body === 'refusal') throw Object.assign(new Error('no'), { name: 'AI_APICallError', statusCode: 500 });
    let at = 0;
    const list = parts[body] ?? [];
    const stream = new ReadableStream({
      pull(controller) {
        const part = list[at];
        at += 1;
        if (part !== undefined) controller.enqueue(part);
        else if (body === 'half') controller.close();
        else if (body === 'breaks') controller.error(new Error('reset'));
        else return new Promise(() => undefined);
      },
      cancel: count,
    });
    return { stream };
  };
  return { model: aiSdkModel({ ...fields, doStream } as never), closed };
}

const MAKERS = { openai: overHttp, openaiResponses: overHttp, anthropic: overHttp, aiSdk: bySdk } as const;
/** Each end of a call: the body, the acts of its reader, and the outcome. `cancels`: the body must be cancelled. */
const CALLS: readonly (readonly [string, Body, 'abort' | 'leave' | '', string | undefined, cancels: boolean])[] = [
  ['the whole reply', 'whole', '', undefined, true],
  ['the whole reply, of a server that closes it', 'whole and closed', '', undefined, false],
  ['an end without a finish', 'half', '', 'stream-incomplete', false],
  ['an error in the stream', 'error', '', 'any', true],
  ['a body that breaks', 'breaks', '', 'network', false],
  ['an abort within the reply', 'hangs', 'abort', 'enough', true],
  ['an abort before the reply', 'hangs at once', 'abort', 'enough', true],
  ['a reader that leaves', 'hangs', 'leave', undefined, true],
  ['a refusal', 'refusal', '', 'server', true],
  ['a refusal, of a server that closes it', 'refusal and closed', '', 'server', false],
  ['a page', 'page', '', 'content-type', true],
  ['a body of no JSON', 'json', '', 'bad-frame', false],
];

describe('a call', () => {
  // The package of the vendor is loaded at the first call, which takes real time.
  beforeAll(() => import('@anthropic-ai/sdk'));
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  const all = (Object.keys(MAKERS) as (keyof typeof MAKERS)[]).flatMap((name) =>
    CALLS.filter(
      ([, body]) => name !== 'aiSdk' || !['page', 'json', 'whole and closed', 'refusal and closed'].includes(body),
    ).map(([what, ...rest]) => [name, what, ...rest] as const),
  );
  it.each(all)(
    'of %s with %s leaves no listener, no timer and no open body',
    async (name, _, body, act, code, cancels) => {
      const { model, closed } = MAKERS[name](name, body);
      const { controller, signal, count } = counted();
      let thrown: unknown;
      const reading = (async () => {
        for await (const part of model.stream(request(), { signal, attempt: 1 })) {
          expect(count()).toBeLessThanOrEqual(1);
          if (act === 'abort') controller.abort(new Error('enough'));
          if (act === 'leave' && part.type === 'text-delta') return;
        }
      })().catch((error: unknown) => {
        thrown = error;
      });
      let isOver = false;
      void reading.then(() => {
        isOver = true;
      });
      for (let turn = 0; turn < 200 && !isOver; turn++) {
        await vi.advanceTimersByTimeAsync(turn < 20 ? 0 : 100);
        await new Promise((resolve) => setImmediate(resolve));
        if (turn === 20 && body === 'hangs at once') controller.abort(new Error('enough'));
      }
      expect(isOver).toBe(true);
      // A vendor client may end a turn after the reader.
      for (let turn = 0; turn < 20 && vi.getTimerCount() > 0; turn++) {
        await vi.advanceTimersByTimeAsync(0);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(count()).toBe(0);
      expect(vi.getTimerCount()).toBe(0);
      if (code === 'enough') expect((thrown as Error).message).toBe('enough');
      else if (code === undefined) expect(thrown).toBeUndefined();
      else expect(thrown).toMatchObject(code === 'any' ? { name: 'ModelError' } : { code });
      if (name !== 'aiSdk' || body !== 'refusal') expect(closed()).toBe(cancels ? 1 : 0);
    },
  );

  it.each(Object.keys(WIRES))(
    'of %s that is aborted before the server answers closes the answer that comes later',
    async (name) => {
      let answer: (response: Response) => void = () => undefined;
      const bodies = counter();
      let fetchSignal: AbortSignal | null | undefined;
      const fetch = (_: unknown, init: RequestInit): Promise<Response> => {
        fetchSignal = init.signal;
        return new Promise((resolve) => {
          answer = resolve;
        });
      };
      const model = WIRES[name]?.('m', { apiKey: KEY, baseURL: 'http://model.test/v1', fetch } as never) as Model;
      const { controller, signal, count } = counted();
      const reading = (async () => {
        for await (const _ of model.stream(request(), { signal, attempt: 1 })) expect.unreachable();
      })();
      const ended = expect(reading).rejects.toThrow('enough');
      await vi.waitFor(() => expect(fetchSignal).toBeDefined());
      expect(fetchSignal?.aborted).toBe(false);
      controller.abort(new Error('enough'));
      await ended;
      expect([fetchSignal?.aborted, count()]).toEqual([true, 0]);
      answer(served([], { end: 'hang', cancelled: bodies.count }));
      await vi.advanceTimersByTimeAsync(0);
      expect(bodies.closed()).toBe(1);
    },
  );
});
