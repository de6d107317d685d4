/** The time-outs of one attempt. Rule: only a part of the model counts as a sign of life; once stopped no timer is left. */
import { ModelError } from './model.ts';

export interface AttemptTimeouts {
  /** Until the first part. */
  firstPartMs: number;
  /** From one part to the next. */
  idleMs: number;
  /** For the whole attempt. */
  totalMs: number | false;
}

export class AttemptClock {
  readonly #timeouts: AttemptTimeouts;
  readonly #setTimer: (ms: number, fire: () => void) => () => void;
  readonly #expire: (error: ModelError) => void;
  readonly #stopTotal: (() => void) | undefined;
  #stopIdle: () => void;

  /** Starts at once; `expire` is called at most once for each of the two times. */
  constructor(options: {
    timeouts: AttemptTimeouts;
    setTimer(ms: number, fire: () => void): () => void;
    expire(error: ModelError): void;
  }) {
    const { timeouts, setTimer, expire } = options;
    this.#timeouts = timeouts;
    this.#setTimer = setTimer;
    this.#expire = expire;
    this.#stopIdle = this.#waitFor(timeouts.firstPartMs);
    const { totalMs } = timeouts;
    if (totalMs === false) return;
    this.#stopTotal = setTimer(totalMs, () => {
      expire(new ModelError({ code: 'timeout', message: `the model did not finish within ${totalMs} ms` }));
    });
  }

  part(): void {
    this.#stopIdle();
    this.#stopIdle = this.#waitFor(this.#timeouts.idleMs);
  }

  stop(): void {
    this.#stopIdle();
    this.#stopTotal?.();
  }

  #waitFor(ms: number): () => void {
    return this.#setTimer(ms, () => {
      this.#expire(new ModelError({ code: 'timeout', message: `the model sent nothing for ${ms} ms` }));
    });
  }
}
