/**
 * Waits for the append of a step. Rule: while it blocks, the steps behind it wait; once it was overtaken they no longer
 * do, but the step still starts nothing before its own entries are durable, and what is logged later is stored behind
 * it. An append that was given up may still land, or fail; that is told when it is known.
 */
import type { Failure } from '../machines/index.ts';
import { thrownMessage } from './thrown.ts';

export interface AppendWait {
  /** The steps behind go on now. */
  overtake(): void;
  /** The time is up. */
  giveUp(): void;
}

interface Outcome {
  /** The steps behind go on. */
  ahead(): void;
  landed(): void;
  /** `overtaken`: the steps behind did not wait for this. */
  failed(error: unknown, overtaken: boolean): void;
  /** The time is up. */
  tooLate(): void;
  /** The append has come to its end, whatever it was. */
  settled(): void;
}

export function awaitAppend(pending: Promise<void>, outcome: Outcome): AppendWait {
  let blocks = true;
  const ahead = (): void => {
    if (!blocks) return;
    blocks = false;
    outcome.ahead();
  };
  pending.then(
    () => {
      outcome.settled();
      outcome.landed();
      ahead();
    },
    (error: unknown) => {
      outcome.settled();
      outcome.failed(error, !blocks);
    },
  );
  return {
    overtake: ahead,
    giveUp() {
      outcome.tooLate();
      ahead();
    },
  };
}

/** What charts are told of it. */
export const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store',
  message: thrownMessage(error),
});
