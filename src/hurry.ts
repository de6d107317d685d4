/**
 * The time that a cancel gives to a slow store. Rule: an append under way may finish for a moment, then the cancel
 * overtakes it; what is not stored when the whole time is up is given up. Once the cancel is over no timer is left.
 */
import type { AppendLine } from './appendLine.ts';

/** How long a cancel waits behind an append. */
const OVERTAKE_MS = 50;
/** How long everything that a cancel writes may take. */
export const GIVE_UP_MS = 90;

export class Hurry {
  readonly #setTimer: (ms: number, fire: () => void) => () => void;
  readonly #line: Pick<AppendLine, 'overtake' | 'giveUp'>;
  #stops: (() => void)[] = [];
  #state: 'calm' | 'hurried' | 'overtaking' | 'timeUp' = 'calm';

  constructor(setTimer: (ms: number, fire: () => void) => () => void, line: Pick<AppendLine, 'overtake' | 'giveUp'>) {
    this.#setTimer = setTimer;
    this.#line = line;
  }

  get calm(): boolean {
    return this.#state === 'calm';
  }

  begin(): void {
    if (this.#state !== 'calm') return;
    this.#state = 'hurried';
    const overtake = (): void => {
      this.#state = 'overtaking';
      this.#line.overtake();
    };
    const giveUp = (): void => {
      this.#state = 'timeUp';
      this.#line.giveUp();
    };
    this.#stops = [this.#setTimer(OVERTAKE_MS, overtake), this.#setTimer(GIVE_UP_MS, giveUp)];
  }

  end(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#state = 'calm';
  }

  /** An append is waited for from now on. */
  heed(): void {
    if (this.#state === 'overtaking') this.#line.overtake();
    if (this.#state === 'timeUp') this.#line.giveUp();
  }
}
