/**
 * The clock of an agent under test. Rule: it stands still until somebody lets a timer ring, and who rings says whose
 * timers: a retry's wait, a run's deadline, a tool's sleep or its time limit.
 */
interface Timer {
  /** In milliseconds since the beginning. */
  readonly at: number;
  readonly owner: string;
  fire(): void;
}

const anyone = (): boolean => true;

export class TestClock {
  readonly #beginning: number;
  /** Milliseconds since the beginning. Timers ring by these. */
  elapsedMs = 0;
  /** Milliseconds by which the wall clock was set. No timer rings for it. */
  offsetMs = 0;
  #timers: Timer[] = [];
  #owner = '';
  /** The timer that was set last. */
  #last: Timer | undefined;
  /** Every wait that was asked for, in order. */
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

  /** Whatever sets a timer within `act` is of this owner. */
  as<T>(owner: string, act: () => T): T {
    const before = this.#owner;
    this.#owner = owner;
    try {
      return act();
    } finally {
      this.#owner = before;
    }
  }

  /** Lets the earliest timer of these owners ring, if it is due after `untilMs` at the latest; false if there is none. */
  ring(isOwner: (owner: string) => boolean = anyone, untilMs = Number.POSITIVE_INFINITY): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= untilMs && isOwner(timer.owner) && (!next || timer.at < next.at)) next = timer;
    }
    return next !== undefined && this.#fire(next);
  }

  /** Rings the timer that was set last when this was called. */
  ringLater(): () => void {
    const timer = this.#last;
    return () => void (timer && this.#timers.includes(timer) && this.#fire(timer));
  }

  /** Timers that wait. */
  get waiting(): number {
    return this.#timers.length;
  }

  /** The process died, and its timers with it. */
  forget(): void {
    this.#timers = [];
  }

  #fire(timer: Timer): true {
    this.#remove(timer);
    // A script may end a wait that has no end.
    if (Number.isFinite(timer.at)) this.elapsedMs = Math.max(this.elapsedMs, timer.at);
    timer.fire();
    return true;
  }

  #remove(timer: Timer): void {
    const at = this.#timers.indexOf(timer);
    if (at >= 0) this.#timers.splice(at, 1);
  }
}
