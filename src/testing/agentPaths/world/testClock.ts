/**
 * The clock of an agent under test. Rule: it stands still until somebody lets a timer ring, and who rings says whose
 * timers: a retry's wait, a run's deadline, a tool's sleep or its time limit.
 */
import type { Ports } from '../../../runtime/ports.ts';

const BEGINNING = 1_700_000_000_000;

interface Timer {
  readonly at: number;
  readonly owner: string;
  fire(): void;
}

export class TestClock {
  #now = BEGINNING;
  #timers: Timer[] = [];
  #owner = '';
  /** The timer that was set last. */
  #last: Timer | undefined;
  /** How many timers were set. */
  set = 0;

  readonly now = (): number => this.#now;

  readonly setTimer: Ports['setTimer'] = (ms, fire) => {
    const timer: Timer = { at: this.#now + ms, owner: this.#owner, fire };
    this.#timers.push(timer);
    this.#last = timer;
    this.set += 1;
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

  /** Lets the earliest timer of these owners ring; false where there is none. */
  ring(isOwner: (owner: string) => boolean): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (isOwner(timer.owner) && (!next || timer.at < next.at)) next = timer;
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
    if (Number.isFinite(timer.at)) this.#now = Math.max(this.#now, timer.at);
    timer.fire();
    return true;
  }

  #remove(timer: Timer): void {
    const at = this.#timers.indexOf(timer);
    if (at >= 0) this.#timers.splice(at, 1);
  }
}
