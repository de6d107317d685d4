/** Each end of a limited wait or an effect, and the release of its resources. */
import { describe, expect, it, vi } from 'vitest';
import { awaitAll, closedAtAbort, EffectAbort, nextTurn, within } from '../src/timeLimit.ts';

/** Timers that fire on the test's request, and the listeners of a signal. */
function watched() {
  const timers: { ms: number; fire: () => void }[] = [];
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners -= 1;
    remove(...args);
  };
  const setTimer = (ms: number, fire: () => void) => {
    const timer = { ms, fire };
    timers.push(timer);
    return () => void timers.splice(timers.indexOf(timer), 1);
  };
  return { controller, setTimer, signal, timers, left: () => [timers.length, listeners] };
}
const never = () => new Promise<never>(() => undefined);

describe('a wait for several acts', () => {
  it('resolves after all of them', async () => {
    const ended: number[] = [];
    const act = async (id: number): Promise<void> => {
      await nextTurn();
      ended.push(id);
    };
    expect(await awaitAll([act(1), act(2)])).toBe(undefined);
    expect(ended).toEqual([1, 2]);
    await awaitAll([]);
  });

  it('rejects with the first error in their order, after all of them have ended', async () => {
    let isEnded = false;
    const late = (async () => {
      for (let turn = 0; turn < 3; turn += 1) await nextTurn();
      isEnded = true;
      throw new Error('the second one');
    })();
    const first = nextTurn().then(() => Promise.reject(new Error('the first one')));
    await expect(awaitAll([first, late, Promise.reject(new Error('the third one'))])).rejects.toThrow('the first one');
    expect(isEnded).toBe(true);
  });
});

describe('a wait for at most some time', () => {
  type Watched = ReturnType<typeof watched>;
  const ends: readonly (readonly [string, () => unknown, (bench: Watched) => void, unknown])[] = [
    ['its value', async () => 5, () => {}, 5],
    ['a value at once', () => 5, () => {}, 5],
    ['its error', () => Promise.reject(new Error('no')), () => {}, new Error('no')],
    ['the limit', never, ({ timers }) => timers[0]?.fire(), new Error('took longer than 30 ms')],
    ['an abort', never, ({ controller }) => controller.abort(new Error('left')), new Error('left')],
  ];
  it.each(ends)('ends with %s, and leaves no timer and no listener', async (_, work, act, expected) => {
    const bench = watched();
    const result = within(30, bench, work);
    const settled = result.then(
      (value) => value,
      (error: unknown) => error,
    );
    expect(bench.timers.map(({ ms }) => ms)).toEqual([30]);
    act(bench);
    expect(await settled).toEqual(expected);
    if (expected instanceof Error) await expect(result).rejects.toThrow(expected.message);
    expect(bench.left()).toEqual([0, 0]);
  });

  it('does not begin after an abort', async () => {
    const bench = watched();
    bench.controller.abort(new Error('left'));
    const work = vi.fn();
    await expect(within(30, bench, work)).rejects.toThrow('left');
    expect([work.mock.calls.length, ...bench.left()]).toEqual([0, 0, 0]);
  });

  it('leaves nothing if its work throws at once', async () => {
    const bench = watched();
    const work = () => {
      throw new Error('no');
    };
    await expect(within(30, bench, work)).rejects.toThrow('no');
    expect(bench.left()).toEqual([0, 0]);
  });
});

describe('the abort of an effect', () => {
  it.each(['before', 'after'])('has the first reason, also for a signal that is asked for %s it', (when) => {
    const abort = new EffectAbort();
    const early = when === 'before' ? abort.signal : undefined;
    expect([abort.aborted, early?.aborted ?? false]).toEqual([false, false]);
    abort.abort('first');
    abort.abort('second');
    expect([abort.aborted, abort.reason, abort.signal.aborted, abort.signal.reason]).toEqual([
      ...[true, 'first', true, 'first'],
    ]);
    expect(early ?? abort.signal).toBe(abort.signal);
  });

  it('reaches the waits of the library once each, in their order, before the listeners of the signal', () => {
    const abort = new EffectAbort();
    const heard: string[] = [];
    abort.signal.addEventListener('abort', () => heard.push('signal'));
    abort.onAbort(() => heard.push('one'));
    abort.onAbort(() => heard.push('two'));
    abort.abort(undefined);
    abort.abort(undefined);
    abort.onAbort(() => heard.push('late'));
    expect(heard).toEqual(['one', 'two', 'signal']);
    expect([abort.aborted, abort.isLongOver]).toEqual([true, false]);
  });
});

describe('a stream that is closed at the abort', () => {
  const streamOf = (more: object = {}) => {
    const closed = vi.fn(async () => ({ done: true as const, value: undefined }));
    const steps = { next: never, return: closed, ...more };
    return { closed, stream: { [Symbol.asyncIterator]: () => steps } as unknown as AsyncIterable<number> };
  };

  it('is closed once, and the abort is long over in the next turn of the event loop', async () => {
    const { closed, stream } = streamOf();
    const abort = new EffectAbort();
    closedAtAbort(stream, abort);
    expect(closed).not.toHaveBeenCalled();
    abort.abort('x');
    expect([closed.mock.calls.length, abort.isLongOver]).toEqual([1, false]);
    await nextTurn();
    await Promise.resolve();
    expect([closed.mock.calls.length, abort.isLongOver]).toEqual([1, true]);
  });

  it.each([
    ['has no way to be closed', { return: undefined }],
    [
      'throws when it is closed',
      {
        return: () => {
          throw new Error('no');
        },
      },
    ],
    ['rejects when it is closed', { return: () => Promise.reject(new Error('no')) }],
  ])('may be one that %s', async (_, more) => {
    const abort = new EffectAbort();
    closedAtAbort(streamOf(more).stream, abort);
    expect(() => abort.abort('x')).not.toThrow();
    await nextTurn();
    await Promise.resolve();
    expect(abort.isLongOver).toBe(true);
  });

  it('has one iterator, which is the stream of the model', async () => {
    async function* numbers() {
      yield* [1, 2];
    }
    const read: number[] = [];
    for await (const each of closedAtAbort(numbers(), new EffectAbort()) as AsyncIterable<number>) read.push(each);
    expect(read).toEqual([1, 2]);
    const list = [1, 2];
    expect(closedAtAbort(list, new EffectAbort())).toBe(list);
  });
});
