/**
 * The time that a cancel gives to a slow store. Rule: an append under way may finish for a moment, then the cancel
 * overtakes it; what is not stored when the whole time is up is given up. Once the cancel is over no timer is left.
 */
import type { AppendWait } from './appendWait.ts';

/** How long a cancel waits behind an append. */
const OVERTAKE_MS = 50;
/** How long everything that a cancel writes may take. */
const GIVE_UP_MS = 90;

export class Hurry {
  readonly #setTimer: (ms: number, fire: () => void) => () => void;
  readonly #waits = new Set<AppendWait>();
  #stops: (() => void)[] = [];
  #state: 'calm' | 'hurried' | 'timeUp' = 'calm';

  constructor(setTimer: (ms: number, fire: () => void) => () => void) {
    this.#setTimer = setTimer;
  }

  get calm(): boolean {
    return this.#state === 'calm';
  }

  begin(): void {
    if (this.#state !== 'calm') return;
    this.#state = 'hurried';
    const overtake = (): void => {
      for (const wait of [...this.#waits]) wait.overtake();
    };
    const giveUp = (): void => {
      this.#state = 'timeUp';
      for (const wait of [...this.#waits]) wait.giveUp();
    };
    this.#stops = [this.#setTimer(OVERTAKE_MS, overtake), this.#setTimer(GIVE_UP_MS, giveUp)];
  }

  end(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#state = 'calm';
  }

  /** An append that is waited for from now on. */
  add(wait: AppendWait): void {
    this.#waits.add(wait);
    if (this.#state === 'timeUp') wait.giveUp();
  }

  remove(wait: AppendWait): void {
    this.#waits.delete(wait);
  }
}
