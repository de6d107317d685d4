/**
 * Time limits and aborts for waits and effects, and calls that nothing waits for. Invariant: a limit that has ended leaves
 * no timer and no listener. The library's own waits receive an abort before all others.
 */

/** The longest delay of a platform timer: about 25 days. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

/** Waits at most `ms`, and only until the abort. A later result is ignored. */
export async function within<T>(
  ms: number,
  { setTimer, signal }: { setTimer(ms: number, fire: () => void): () => void; signal: AbortSignal },
  work: () => T | Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const answered = Promise.resolve(work());
  let stop = (): void => {};
  let leave = (): void => {};
  const over = new Promise<never>((_, reject) => {
    stop = setTimer(ms, () => reject(new Error(`took longer than ${ms} ms`)));
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([answered, over]);
  } finally {
    stop();
    signal.removeEventListener('abort', leave);
  }
}

/** Resolves when all have ended. Then rejects with the first error in their order, if there is one. */
export async function awaitAll(acts: Iterable<Promise<unknown> | undefined>): Promise<void> {
  const all = [...acts];
  await Promise.allSettled(all);
  await Promise.all(all);
}

/** Calls a function of the host whose errors have no consequence: one that it throws, and one that its promise rejects with. */
export function callHarmlessly(act: () => unknown): void {
  try {
    const acting = act();
    if (acting instanceof Promise) acting.catch(() => undefined);
  } catch {
    // The host's function must not change a run.
  }
}

const later: (act: () => void) => unknown =
  globalThis.setImmediate ??
  ((act) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      act();
    };
    port2.postMessage(null);
  });

/** Resolves in a later turn of the event loop: timers and input that are due come first. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void later(resolve));

/** Ends an effect. Most tools never look at their signal, so it is made when it is first asked for. */
export class EffectAbort {
  #controller: AbortController | undefined;
  #aborted = false;
  #reason: unknown;
  /**
   * The signal was aborted in an earlier turn of the event loop, so a new result was not on its way. Known for streams
   * only.
   */
  isLongOver = false;
  readonly #heard: (() => void)[] = [];

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Called once, at the end. Not called if it has already ended. */
  onAbort(heard: () => void): void {
    this.#heard.push(heard);
  }

  /** The first reason counts. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    for (const heard of this.#heard) heard();
    this.#controller?.abort(reason);
  }
}

/**
 * Returns the same stream, whose iterator is closed at the abort. Nobody waits for its next value, and it may ignore
 * the signal.
 */
export function closedAtAbort<T>(
  stream: AsyncIterable<T> | Iterable<T>,
  abort: EffectAbort,
): AsyncIterable<T> | Iterable<T> {
  if (!(Symbol.asyncIterator in stream)) return stream;
  const steps = stream[Symbol.asyncIterator]();
  const close = async (): Promise<unknown> => steps.return?.();
  abort.onAbort(() => {
    close().catch(() => undefined);
    void nextTurn().then(() => {
      abort.isLongOver = true;
    });
  });
  return { [Symbol.asyncIterator]: () => steps };
}
