/**
 * The clock of an agent under test. Invariant: time is stopped until a test fires a timer. The test selects timers by
 * their owner: a retry's wait, a run's deadline, a tool's sleep or its time limit.
 */
interface Timer {
  /** The time in milliseconds since the start. */
  readonly at: number;
  readonly owner: string;
  fire(): void;
}

const anyone = (): boolean => true;

export class TestClock {
  readonly #beginning: number;
  /** Milliseconds since the start. They determine when timers fire. */
  elapsedMs = 0;
  /** Milliseconds by which the wall clock was changed. They do not affect timers. */
  offsetMs = 0;
  #timers: Timer[] = [];
  #owner = '';
  /** The latest timer. */
  #last: Timer | undefined;
  /** Every requested wait, in order. */
  readonly waits: number[] = [];

  constructor(beginning: number) {
    this.#beginning = beginning;
  }

  readonly now = (): number => this.#beginning + this.elapsedMs + this.offsetMs;

  readonly setTimer = (ms: number, fire: () => void): (() => void) => {
    const timer: Timer = { at: this.elapsedMs + ms, owner: this.#owner, fire };
    this.#timers.push(timer);
    this.#last = timer;
    this.waits.push(ms);
    return () => this.#remove(timer);
  };

  /** Every timer that `act` sets belongs to this owner. */
  as<T>(owner: string, act: () => T): T {
    const before = this.#owner;
    this.#owner = owner;
    try {
      return act();
    } finally {
      this.#owner = before;
    }
  }

  /** Fires the earliest timer of these owners that is due by `untilMs`. Returns false if there is none. */
  ring(isOwner: (owner: string) => boolean = anyone, untilMs = Number.POSITIVE_INFINITY): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= untilMs && isOwner(timer.owner) && (!next || timer.at < next.at)) next = timer;
    }
    return next !== undefined && this.#fire(next);
  }

  /** Returns a function that fires the timer that was the latest at this call. */
  ringLater(): () => void {
    const timer = this.#last;
    return () => void (timer && this.#timers.includes(timer) && this.#fire(timer));
  }

  /** The number of active timers. */
  get waiting(): number {
    return this.#timers.length;
  }

  /** Drops the timers of these owners, because their process has died. */
  forget(isOwner: (owner: string) => boolean = anyone): void {
    this.#timers = this.#timers.filter(({ owner }) => !isOwner(owner));
  }

  #fire(timer: Timer): true {
    this.#remove(timer);
    // A script may end an infinite wait.
    if (Number.isFinite(timer.at)) this.elapsedMs = Math.max(this.elapsedMs, timer.at);
    timer.fire();
    return true;
  }

  #remove(timer: Timer): void {
    const at = this.#timers.indexOf(timer);
    if (at >= 0) this.#timers.splice(at, 1);
  }
}
