/**
 * How long a close waits for its store. Rule: each answer of the store begins the time anew, and only while it owes one
 * does time pass; so a store that is slow is waited for, and one that says nothing any more is not.
 */
import { RunchartError } from './errors.ts';
import type { Ports } from './runtime/ports.ts';

/** How long a store may say nothing. */
const SILENCE_MS = 5000;

export interface Answering {
  /** Whether an append is under way. */
  readonly owes: boolean;
  /** How many appends have come to an end. */
  readonly answers: number;
}

export class Patience {
  readonly #setTimer: Ports['setTimer'];
  readonly #store: Answering;

  constructor(setTimer: Ports['setTimer'], store: Answering) {
    this.#setTimer = setTimer;
    this.#store = store;
  }

  /** Waits for what needs appends. Rejects with `store` where the store is silent: the work goes on, unheeded. */
  wait<T>(work: Promise<T>): Promise<T> {
    return this.#bounded(work, () => this.#store.owes);
  }

  /** Waits for the store to let go of its log. Rejects in the same way. */
  release(work: Promise<void>): Promise<void> {
    return this.#bounded(work, () => true);
  }

  async #bounded<T>(work: Promise<T>, owes: () => boolean): Promise<T> {
    let stop: (() => void) | undefined;
    const silent = new Promise<never>((_, reject) => {
      const listen = (): void => {
        const { answers } = this.#store;
        const owed = owes();
        stop = this.#setTimer(SILENCE_MS, () => {
          if (owed && owes() && this.#store.answers === answers) reject(silence());
          else listen();
        });
      };
      listen();
    });
    try {
      return await Promise.race([work, silent]);
    } finally {
      stop?.();
    }
  }
}

const silence = (): RunchartError =>
  new RunchartError(
    'store',
    `the store has not answered for ${SILENCE_MS / 1000} s while the conversation was closed: ` +
      'what it was given may be stored or not, and the next opening shows it',
  );
