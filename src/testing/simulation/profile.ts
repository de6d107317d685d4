/**
 * Rates of faults in one simulation. Invariant: each seed draws new rates, because one fixed mixture finds fewer
 * defects than many different ones.
 */
import type { Tape } from './choiceTape.ts';

export interface Profile {
  /** The shares of steps that are acts of the host, or crashes. */
  act: number;
  crash: number;
  clockJump: number;
  /** The shares of model calls and appends that fail. */
  model: number;
  store: number;
  /** The share of completions that are delivered twice. */
  deliveredTwice: number;
  /** The model's context window in tokens. 0 if the model does not declare one. */
  window: number;
  /** Appends answer synchronously, like the memory store's. */
  appendsAtOnce: boolean;
  /** The model has prices. */
  priced: boolean;
  /** The share of steps that decide a waiting call. */
  decides: number;
  /** The share of replies that repeat the previous one. */
  repeats: number;
  /** Some messages contain images, whose bytes the store keeps as blobs. */
  images: boolean;
  keepsBlobs: boolean;
  /** The agent has another conversation, and the simulated one is forked at the end. */
  secondConversation: boolean;
  fork: boolean;
  /** Some appends are slow and then refused, more often if their entries are rare. */
  overtaken: boolean;
  /** Some acts of the host start before the previous act is answered. */
  actsTwice: boolean;
  /** The number of steps before faults are switched off. */
  steps: number;
}

export const RATES = [0, 0.02, 0.1, 0.3] as const;
/** A short simulation reveals most defects, and only a long one reveals the others. */
export const STEPS = [12, 24, 60, 60] as const;

/** In a window of this size nothing is summarized, and replies are short. */
export const UNSUMMED = 1200;

export function drawProfile(tape: Tape): Profile {
  return {
    act: 0.05 + tape.next(5) * 0.05,
    crash: tape.pick([0, 0.01, 0.04]),
    clockJump: tape.pick([0, 0.02]),
    model: tape.pick(RATES),
    store: tape.pick([0, 0.05, 0.2]),
    deliveredTwice: tape.pick([0, 0, 0, 0.1]),
    window: tape.pick([0, 3000, 2400, 1800, 0, 0, 0, 0, 0, 0, 0, 2000]),
    appendsAtOnce: tape.next(2) === 0,
    priced: tape.next(2) === 1,
    decides: tape.pick([0, 0.1, 0.3]),
    repeats: tape.pick([0, 0, 0.6]),
    images: tape.next(4) === 3,
    keepsBlobs: tape.next(2) === 1,
    secondConversation: tape.next(6) === 5,
    fork: tape.next(4) === 3,
    overtaken: tape.next(3) === 2,
    actsTwice: tape.next(4) === 3,
    steps: tape.pick(STEPS),
  };
}
