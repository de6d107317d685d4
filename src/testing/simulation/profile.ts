/**
 * Rates of faults in one simulation. Rule: they are drawn anew for each seed, since one fixed mixture finds fewer defects than
 * many different ones.
 */
import type { Tape } from './choiceTape.ts';

export interface Profile {
  /** Shares of the steps that are acts of the host, and crashes. */
  act: number;
  crash: number;
  clockJump: number;
  /** Shares of model calls and appends that go wrong. */
  model: number;
  store: number;
  /** Share of the completions that are delivered twice. */
  deliveredTwice: number;
  /** Context window of the model in tokens; 0 if it names none. */
  window: number;
  /** Appends answer at once, as the memory store's do. */
  appendsAtOnce: boolean;
  /** The model has prices. */
  priced: boolean;
  /** Share of the steps that decide a waiting call. */
  decides: number;
  /** Share of the replies that repeat the one before. */
  repeats: number;
  /** Some messages have images; the store keeps their bytes as blobs. */
  images: boolean;
  keepsBlobs: boolean;
  /** The agent has another conversation, and this one is forked in the end. */
  secondConversation: boolean;
  fork: boolean;
  /** Some appends are slow and then refused: the rarer their entries, the more often. */
  overtaken: boolean;
  /** Some acts of the host follow one another before the first is answered. */
  actsTwice: boolean;
  /** Steps before faults are switched off. */
  steps: number;
}

export const RATES = [0, 0.02, 0.1, 0.3] as const;
/** Most defects show in a short simulation, some only in a long one. */
export const STEPS = [12, 24, 60, 60] as const;

/** In a window of this size nothing is summed up, and replies are short. */
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
