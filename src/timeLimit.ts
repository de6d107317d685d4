/**
 * How waits and effects end: time limits, and an abort. Rule: a limit that is over leaves no timer and no listener behind;
 * what the library itself waits for hears of an abort before anybody else.
 */

/** Waits no longer than `ms`, and not beyond the abort; what the work answers later counts for nothing. */
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

/** Ends an effect. Most tools never look at their signal, so it is made when it is first asked for. */
export class EffectAbort {
  #controller: AbortController | undefined;
  #aborted = false;
  #reason: unknown;
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

  /** Called once, at the end; not where it is over already. */
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
