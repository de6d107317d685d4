/**
 * Virtual time for the library's timer port. Rule: time moves only when a test moves it, timers ring in order of time
 * and then of setting, and everything a ring leads to happens before the next one.
 */
interface Timer {
  at: number;
  fire(): void;
}

/** Lets everything that is already due in this process happen: promise callbacks and their followers. */
export async function flush(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export class VirtualClock {
  #now: number;
  #timers: Timer[] = [];
  /** Every wait that was asked for, in order. */
  readonly waits: number[] = [];
  readonly #rounds: number | undefined;

  /** `rounds`: turns of the event loop after each ring; one is enough where nothing but promises follows. */
  constructor(now = 1_000_000, rounds?: number) {
    this.#now = now;
    this.#rounds = rounds;
  }

  readonly now = (): number => this.#now;

  readonly setTimer = (ms: number, fire: () => void): (() => void) => {
    const timer: Timer = { at: this.#now + ms, fire };
    this.waits.push(ms);
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  };

  /** How many timers wait to ring. */
  get live(): number {
    return this.#timers.length;
  }

  async advance(ms: number): Promise<void> {
    const until = this.#now + ms;
    await flush(this.#rounds);
    while (await this.#ring(until));
    this.#now = until;
  }

  /** Moves time until the promise is settled; answers how many milliseconds that took. Rejects after `most`. */
  async until(promise: Promise<unknown>, most = 1000): Promise<number> {
    const from = this.#now;
    let settled = false;
    const done = (): void => {
      settled = true;
    };
    promise.then(done, done);
    await flush(this.#rounds);
    while (!settled) {
      if (!(await this.#ring(from + most))) throw new Error(`nothing settled it within ${most} ms of virtual time`);
    }
    return this.#now - from;
  }

  async #ring(until: number): Promise<boolean> {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= until && (!next || timer.at < next.at)) next = timer;
    if (!next) return false;
    this.#timers = this.#timers.filter((each) => each !== next);
    this.#now = Math.max(this.#now, next.at);
    next.fire();
    await flush(this.#rounds);
    return true;
  }
}
