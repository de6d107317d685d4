/**
 * Virtual time for the library's timer port. Invariant: time moves only when a test moves it. Timers ring in order of
 * time and then of creation. All effects of a ring happen before the next one.
 */
import { TestClock } from '../../src/testing/world/testClock.ts';

/** Runs everything that is already due in this process: promise callbacks and the callbacks that they create. */
export async function flush(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export class VirtualClock extends TestClock {
  readonly #rounds: number | undefined;

  /** `rounds`: turns of the event loop after each ring. One is enough if only promises follow. */
  constructor(now = 1_000_000, rounds?: number) {
    super(now);
    this.#rounds = rounds;
  }

  async advance(ms: number): Promise<void> {
    const until = this.elapsedMs + ms;
    await flush(this.#rounds);
    while (await this.#ring(until));
    this.elapsedMs = until;
  }

  /** Moves time until the promise is settled, and returns the milliseconds that this took. Rejects after `most`. */
  async until(promise: Promise<unknown>, most = 1000): Promise<number> {
    const from = this.elapsedMs;
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    promise.then(done, done);
    await flush(this.#rounds);
    while (!settled) {
      if (!(await this.#ring(from + most))) throw new Error(`nothing settled it within ${most} ms of virtual time`);
    }
    return this.elapsedMs - from;
  }

  async #ring(until: number): Promise<boolean> {
    if (!this.ring(undefined, until)) return false;
    await flush(this.#rounds);
    return true;
  }
}
