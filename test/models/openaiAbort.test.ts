import { getEventListeners } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import {
  DONE,
  finished,
  frame,
  modelOf,
  type Played,
  play,
  request,
  served,
  textDelta,
  textIn,
} from './scriptedFetch.ts';

const REASON = new Error('the user pressed stop');
const listenersOn = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

/** Waits for something the code under test does on its own. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe('an abort', () => {
  it('before the call sends nothing', async () => {
    let requests = 0;
    const model = modelOf(() => {
      requests += 1;
      return served([]);
    });
    const { parts, error } = await play(model, request(), AbortSignal.abort(REASON));
    expect(error).toBe(REASON);
    expect(parts).toEqual([]);
    expect(requests).toBe(0);
  });

  it('ends the call of a fetch that ignores it, and the late response is discarded', async () => {
    const controller = new AbortController();
    let answer: (response: Response) => void = () => {};
    let asked = false;
    let cancelled = 0;
    const model = modelOf(() => {
      asked = true;
      return new Promise<Response>((resolve) => {
        answer = resolve;
      });
    });
    const call = play(model, request(), controller.signal);
    await until(() => asked);
    controller.abort(REASON);
    expect((await call).error).toBe(REASON);
    expect(listenersOn(controller.signal)).toBe(0);
    answer(served([], { end: 'hang', cancelled: () => (cancelled += 1) }));
    await until(() => cancelled === 1);
  });

  it('reaches the fetch', async () => {
    const controller = new AbortController();
    let seen: AbortSignal | undefined;
    const model = modelOf(() => served([]), {
      fetch: (_url, init) => {
        seen = init?.signal ?? undefined;
        return new Promise((_, reject) => seen?.addEventListener('abort', () => reject(seen?.reason)));
      },
    });
    const call = play(model, request(), controller.signal);
    await until(() => seen !== undefined);
    controller.abort(REASON);
    expect((await call).error).toBe(REASON);
    expect(seen?.aborted).toBe(true);
  });

  it('while the body is silent ends the call and cancels the body', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    const model = modelOf(() => served([frame(textDelta('a'))], { end: 'hang', cancelled: () => (cancelled += 1) }));
    const parts = model.stream(request(), { signal: controller.signal, attempt: 1 })[Symbol.asyncIterator]();
    expect((await parts.next()).value).toEqual({ type: 'text-delta', text: 'a' });
    const next = parts.next();
    controller.abort(REASON);
    await expect(next).rejects.toBe(REASON);
    expect(cancelled).toBe(1);
    expect(listenersOn(controller.signal)).toBe(0);
  });

  it('drops parts that had already arrived', async () => {
    const controller = new AbortController();
    const body = frame(textDelta('a'), textDelta('b'), finished('stop')) + DONE;
    const seen: string[] = [];
    const model = modelOf(() => served([body]));
    const call = async (): Promise<void> => {
      for await (const part of model.stream(request(), { signal: controller.signal, attempt: 1 })) {
        seen.push(part.type);
        controller.abort(REASON);
      }
    };
    await expect(call()).rejects.toBe(REASON);
    expect(seen).toEqual(['text-delta']);
  });

  it('H-045 is an abort even if the body ends at the same time', async () => {
    const controller = new AbortController();
    const body = new ReadableStream<Uint8Array>({
      start(source) {
        source.enqueue(new TextEncoder().encode(frame(textDelta('a'), finished('stop'))));
        controller.signal.addEventListener('abort', () => source.close(), { once: true });
      },
    });
    const model = modelOf(() => new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    const call = play(model, request(), controller.signal);
    setTimeout(() => controller.abort(REASON), 5);
    const { parts, error } = await call;
    expect(error).toBe(REASON);
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
  });

  it('comes before the failure that it causes', async () => {
    const controller = new AbortController();
    const model = modelOf(() => {
      controller.abort(REASON);
      return Promise.reject(new TypeError('terminated'));
    });
    expect((await play(model, request(), controller.signal)).error).toBe(REASON);
  });

  it('at the moment the response arrives is not lost', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    const response = served([], { end: 'hang', cancelled: () => (cancelled += 1) });
    const { body } = response;
    Object.defineProperty(response, 'body', {
      get() {
        controller.abort(REASON);
        return body;
      },
    });
    const { error } = await play(
      modelOf(() => response),
      request(),
      controller.signal,
    );
    expect(error).toBe(REASON);
    expect(cancelled).toBe(1);
  });

  it('ends the reading of an error body', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    const model = modelOf(() => served(['{"err'], { status: 500, end: 'hang', cancelled: () => (cancelled += 1) }));
    const call = play(model, request(), controller.signal);
    setTimeout(() => controller.abort(REASON), 5);
    expect((await call).error).toBe(REASON);
    expect(cancelled).toBe(1);
  });

  it('without a reason of its own rejects with an AbortError', async () => {
    const controller = new AbortController();
    controller.abort();
    expect(
      (
        await play(
          modelOf(() => served([])),
          request(),
          controller.signal,
        )
      ).error,
    ).toMatchObject({ name: 'AbortError' });
  });
});

describe('nothing remains after a call', () => {
  it.each([
    ['a good reply', frame(textDelta('a'), finished('stop')) + DONE, {}],
    ['a broken reply', frame(textDelta('a'), '{'), {}],
    ['a page that never ends', 'x'.repeat(100_000), { headers: { 'content-type': 'text/html' } }],
    ['a refused request whose body never ends', 'x'.repeat(100_000), { status: 500 }],
  ])('after %s the signal has no listener and the body is cancelled', async (_name, body, options) => {
    const controller = new AbortController();
    let cancelled = 0;
    const model = modelOf(() => served([body], { ...options, end: 'hang', cancelled: () => (cancelled += 1) }));
    await play(model, request(), controller.signal);
    expect(listenersOn(controller.signal)).toBe(0);
    expect(cancelled).toBe(1);
  });

  it('no timer outlives a reply', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const model = modelOf(() => served([frame(textDelta('a'), finished('stop')), DONE]));
      expect((await play(model)).error).toBeUndefined();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('a caller that stops reading closes the body', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    const model = modelOf(() => served([frame(textDelta('a'))], { end: 'hang', cancelled: () => (cancelled += 1) }));
    for await (const part of model.stream(request(), { signal: controller.signal, attempt: 1 })) {
      expect(part.type).toBe('text-delta');
      break;
    }
    expect(cancelled).toBe(1);
    expect(listenersOn(controller.signal)).toBe(0);
  });

  it('a thousand calls on one signal leave none', async () => {
    const controller = new AbortController();
    const model = modelOf(() => served([frame(textDelta('a'), finished('stop')) + DONE]));
    let most = 0;
    const calls: Played[] = [];
    for (let at = 0; at < 1000; at += 1) {
      calls.push(await play(model, request(), controller.signal));
      most = Math.max(most, listenersOn(controller.signal));
    }
    expect(calls.every(({ parts }) => textIn(parts) === 'a')).toBe(true);
    expect(most).toBe(0);
  });
});
