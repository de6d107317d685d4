/** One execution of a tool in virtual time: its clock, its signal, its time limit, and the request of a failure to the retry policy. */
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { RunchartError } from '../../src/errors.ts';
import { EffectAbort } from '../../src/timeLimit.ts';
import { callClock, type Execution, executeTool } from '../../src/tools/execute.ts';
import { defineTool, definitionOf, type ToolContext, toolResult } from '../../src/tools/tool.ts';
import type { PreparedCall } from '../../src/tools/toolbox.ts';
import type { ResultLimits } from '../../src/tools/toolResult.ts';
import { timeLimitOf, toolSignal } from '../../src/tools/toolSignal.ts';
import { flush, VirtualClock } from '../support/virtualClock.ts';

const hidden = <T>(value: T): T => JSON.parse((JSON.stringify(value) ?? 'null').replaceAll('SECRET', '[hidden]')) as T;
const redact = Object.assign(hidden, { entry: hidden }) as unknown as ResultLimits['redact'];

/** An execution of `work` that may take 1,000 ms, and its reports. */
function executed(work: (context: ToolContext) => unknown, more: Partial<Execution> & { idempotent?: boolean } = {}) {
  const clock = new VirtualClock();
  const { idempotent, ...options } = more;
  const tool = defineTool({
    ...{ name: 'work', description: '', parameters: z.object({}) },
    ...(idempotent !== undefined && { idempotent }),
    execute: (_, context) => work(context),
  });
  const definition = definitionOf(tool) as PreparedCall['definition'];
  const abort = new EffectAbort();
  const reports: unknown[] = [];
  const late = vi.fn();
  const asked: unknown[] = [];
  const retry: Execution['retry'] = (error, kind, isIdempotent) => {
    asked.push([error, kind, isIdempotent]);
    return { retry: { random: 0.5 } };
  };
  const ports = { now: () => clock.now(), setTimer: clock.setTimer };
  const { clock: own, end } = callClock(ports, abort);
  const context = { ...own, progress: (update: unknown) => reports.push(update) } as unknown as ToolContext;
  const call = { callId: 'c1', name: 'work', args: {} };
  const value = executeTool(
    { call, tool, definition, args: {} },
    {
      ...{ context, abort, timeoutMs: 1_000, setTimer: clock.setTimer, retry, late, resultBytes: 1_000, redact },
      ...options,
    },
  );
  return { clock, abort, value, reports, late, asked, end, context };
}
const text = (words: string) => [{ type: 'text', text: words }];
const never = () => new Promise<never>(() => undefined);
/** A promise that the test settles. */
function held() {
  let settle = { resolve: (_: unknown): void => {}, reject: (_: unknown): void => {} };
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  return {
    promise,
    resolve: (value: unknown) => settle.resolve(value),
    reject: (error: unknown) => settle.reject(error),
  };
}

describe('an execution', () => {
  const boom = new Error('a SECRET');
  it.each<[string, () => unknown, object]>([
    ['returns a value', () => 'ok', { kind: 'succeeded', content: text('ok') }],
    ['returns a promise', async () => 'ok', { kind: 'succeeded', content: text('ok') }],
    [
      'throws',
      () => {
        throw boom;
      },
      { kind: 'erred', code: 'error', content: text('Error: a [hidden]') },
    ],
    ['rejects', () => Promise.reject(boom), { kind: 'erred', code: 'error', content: text('Error: a [hidden]') }],
    ['returns an error', () => boom, { kind: 'erred', code: 'error', content: text('Error: a [hidden]') }],
    ['waits', () => toolResult.pending({ reason: 'r' }), { kind: 'pending', reason: 'r' }],
    ['fails', () => toolResult.error('no', 'mine'), { kind: 'erred', code: 'mine', content: text('no') }],
    ['returns no JSON', () => 1n, { kind: 'erred', code: 'not_json' }],
  ])('that %s has one value and leaves no timer', async (_, work, value) => {
    const { value: made, clock, late } = executed(work);
    expect(await made).toMatchObject(value);
    expect([clock.waiting, late.mock.calls.length]).toEqual([0, 0]);
  });

  it.each([true, false, undefined])(
    'that fails asks the policy with its error, the kind of failure, and whether the tool is idempotent (%s)',
    async (idempotent) => {
      const isIdempotent = idempotent === true;
      const more = idempotent === undefined ? {} : { idempotent };
      const throws = executed(() => Promise.reject(boom), more);
      expect(await throws.value).toMatchObject({ kind: 'erred', retry: { random: 0.5 } });
      expect(throws.asked).toEqual([[boom, 'thrown', isIdempotent]]);
      const returns = executed(() => toolResult.error('a SECRET', 'mine'), more);
      expect(await returns.value).toMatchObject({ code: 'mine', retry: { random: 0.5 } });
      const hangs = executed(never, more);
      await hangs.clock.advance(1_000);
      expect(await hangs.value).toMatchObject({ code: 'timeout', retry: { random: 0.5 } });
      for (const [{ asked }, code, kind, words] of [
        [returns, 'mine', 'returned', 'a [hidden]'],
        [hangs, 'timeout', 'timeout', 'work did not finish within 1000 ms. It may still have an effect.'],
      ] as const) {
        const [error, ...rest] = asked[0] as [RunchartError, ...unknown[]];
        expect([RunchartError.isRunchartError(error), error.code, error.message, ...rest, asked.length]).toEqual([
          true,
          code,
          words,
          kind,
          isIdempotent,
          1,
        ]);
      }
    },
  );

  it('that succeeds, waits, returns no JSON, or fails after its abort does not ask the policy', async () => {
    for (const work of [
      () => 'ok',
      () => toolResult.warning('ok'),
      () => toolResult.pending({ reason: 'r' }),
      () => 1n,
    ]) {
      const { value, asked } = executed(work);
      expect((await value) as object).not.toHaveProperty('retry');
      expect(asked).toEqual([]);
    }
    const work = held();
    const cancelled = executed(() => work.promise);
    cancelled.abort.abort(new Error('cancelled'));
    work.reject(boom);
    expect(await cancelled.value).toMatchObject({ kind: 'erred' });
    expect(cancelled.asked).toEqual([]);
  });

  it('that takes too long is abandoned at its limit and not before, and its signal is aborted', async () => {
    const { clock, value, abort, late } = executed(never, { timeoutMs: 250 });
    await clock.advance(249);
    expect(abort.aborted).toBe(false);
    await clock.advance(1);
    expect(await value).toMatchObject({ kind: 'erred', code: 'timeout' });
    expect(abort.reason).toMatchObject({ name: 'TimeoutError' });
    expect([clock.waiting, late.mock.calls.length]).toEqual([0, 0]);
  });

  it('that is cancelled leaves no timer, and a later value, but no later error, is reported', async () => {
    for (const [settle, reports] of [
      ['resolve', 1],
      ['reject', 0],
    ] as const) {
      const work = held();
      const { clock, value, late } = executed(() => work.promise, { timeoutMs: 10 });
      await clock.advance(10);
      await value;
      work[settle](settle === 'resolve' ? 'late' : boom);
      await flush();
      expect([settle, late.mock.calls.length]).toEqual([settle, reports]);
    }
    const { clock, abort } = executed(never);
    expect(clock.waiting).toBe(1);
    abort.abort(new Error('cancelled'));
    expect(clock.waiting).toBe(0);
  });

  it.each<[string, () => unknown, string, unknown[]]>([
    [
      'null',
      function* () {
        yield 'a';
        return null;
      },
      'null',
      ['a'],
    ],
    [
      'zero',
      function* () {
        yield 'a';
        return 0;
      },
      '0',
      ['a'],
    ],
    [
      'nothing',
      function* () {
        yield 'a';
        yield 'b';
      },
      'b',
      ['a', 'b'],
    ],
    [
      'a promise',
      function* () {
        yield Promise.resolve('a');
      },
      'a',
      ['a'],
    ],
  ])('of a generator that returns %s has that result, or else its last value', async (_, work, result, reports) => {
    const made = executed(work);
    expect(await made.value).toMatchObject({ kind: 'succeeded', content: text(result) });
    expect(made.reports).toEqual(reports);
  });

  it('of a list, a map or a set is a value and no stream', async () => {
    for (const [value, shown] of [
      [['a'], '["a"]'],
      [[], '[]'],
    ] as const)
      expect(await executed(() => value).value).toMatchObject({ content: text(shown) });
    for (const value of [new Map(), new Set(['a'])]) {
      const made = executed(() => value);
      await made.value;
      expect(made.reports).toEqual([]);
    }
  });

  it('of a stream that ends leaves no listener on the signal, and one that is cut is closed once', async () => {
    const returns = vi.fn(async () => ({ done: true, value: undefined }));
    const stream = (next: () => unknown) => {
      const steps = { next, return: returns, [Symbol.asyncIterator]: () => steps };
      return steps;
    };
    const ended = executed(() => stream(async () => ({ done: true, value: 'ok' })));
    const removed = vi.spyOn(ended.abort.signal, 'removeEventListener');
    await ended.value;
    expect(removed).toHaveBeenCalled();
    ended.abort.abort(new Error('over'));
    expect(returns).toHaveBeenCalledTimes(0);
    const cut = executed(() => stream(never));
    await flush();
    cut.abort.abort(new Error('over'));
    await flush();
    expect(returns).toHaveBeenCalledTimes(1);
  });
});

describe('the clock of a call', () => {
  function opened() {
    const time = new VirtualClock();
    const abort = new EffectAbort();
    return { time, abort, ...callClock({ now: () => time.now(), setTimer: time.setTimer }, abort) };
  }

  it('sleeps as long as it is asked to, and leaves nothing behind', async () => {
    const { time, clock } = opened();
    const slept: number[] = [];
    const since = clock.now();
    for (const ms of [30, 10, 20]) void clock.sleep(ms).then(() => slept.push(clock.now() - since));
    await time.advance(30);
    expect([slept, time.waiting]).toEqual([[10, 20, 30], 0]);
  });

  it.each([
    ['the call ends', { name: 'AbortError', message: 'the call is over' }],
    ['the call is cancelled', { message: 'cancelled' }],
  ])('wakes each sleeper at once when %s, and nobody sleeps after that', async (why, reason) => {
    const { time, clock, abort, end } = opened();
    const first = [clock.sleep(10), clock.sleep(20)];
    if (why.includes('ends')) end();
    else abort.abort(new Error('cancelled'));
    expect(time.waiting).toBe(0);
    for (const sleep of [...first, clock.sleep(10)]) await expect(sleep).rejects.toMatchObject(reason);
    // The first reason counts.
    end();
    abort.abort(new Error('other'));
    await expect(clock.sleep(10)).rejects.toMatchObject(reason);
    expect(time.waiting).toBe(0);
  });
});

describe('the signal of a call', () => {
  function opened(timeoutMs = 70) {
    const abort = new EffectAbort();
    const failed: unknown[] = [];
    const signal = toolSignal({ abort, timeoutMs, listenerFailed: (error) => failed.push(error) });
    return { abort, failed, signal };
  }

  it('has the time limit of its call', () => {
    expect([timeLimitOf(opened(70).signal), timeLimitOf(new AbortController().signal)]).toEqual([70, undefined]);
  });

  it('calls functions, objects and onabort, with the signal as `this`, and none that was removed', async () => {
    const { abort, signal, failed } = opened();
    const calls: unknown[] = [];
    const listener = function (this: unknown, event: Event): void {
      calls.push(['function', this === signal, event.type]);
    };
    const object = { handleEvent: (event: Event) => void calls.push(['object', event.type]) };
    const gone = (): void => void calls.push('gone');
    signal.addEventListener('abort', listener);
    signal.addEventListener('abort', listener);
    signal.addEventListener('abort', object);
    signal.addEventListener('abort', gone);
    signal.removeEventListener('abort', gone);
    signal.addEventListener('abort', null as never);
    signal.onabort = (event) => void calls.push(['onabort', event.type]);
    abort.abort(new Error('over'));
    expect(calls).toHaveLength(3);
    for (const call of [
      ['function', true, 'abort'],
      ['object', 'abort'],
      ['onabort', 'abort'],
    ])
      expect(calls).toContainEqual(call);
    await flush();
    expect(failed).toEqual([]);
  });

  it('takes the options of a listener', () => {
    const { signal } = opened();
    const once = vi.fn();
    const leave = new AbortController();
    signal.addEventListener('abort', once, { once: true });
    const left = vi.fn();
    signal.addEventListener('abort', left, { signal: leave.signal });
    leave.abort();
    signal.dispatchEvent(new Event('abort'));
    signal.dispatchEvent(new Event('abort'));
    expect([once.mock.calls.length, left.mock.calls.length]).toEqual([1, 0]);
  });

  it('reports a listener that throws or rejects, and calls the others', async () => {
    const { abort, signal, failed } = opened();
    const [thrown, rejected] = [new Error('thrown'), new Error('rejected')];
    const called = vi.fn();
    signal.addEventListener('abort', () => {
      throw thrown;
    });
    signal.addEventListener('abort', (() => Promise.reject(rejected)) as () => void);
    signal.addEventListener('abort', called);
    expect(() => abort.abort(new Error('over'))).not.toThrow();
    await flush();
    expect(called).toHaveBeenCalledTimes(1);
    expect(failed).toEqual(expect.arrayContaining([thrown, rejected]));
    expect(failed).toHaveLength(2);
  });
});
