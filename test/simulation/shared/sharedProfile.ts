/** The rates of faults in one life of several processes. Invariant: each seed draws new rates; the first of each is the plainest. */

import type { Tape } from '../../../src/testing/simulation/choiceTape.ts';
import type { Profile } from '../../../src/testing/simulation/profile.ts';

export interface SharedProfile {
  processes: number;
  conversations: number;
  /** The number of steps before faults are switched off. */
  steps: number;
  leaseMs: number;
  /** The time for which a conversation stays open without work. A short time moves it to other processes without any fault. */
  idleMs: number;
  /** The pool has one connection, so no hint reaches the process. */
  isPooled: boolean;
  onRestart: 'idle' | 'replayDecided' | 'resume';
  /** The shares of steps at which a process is killed, stopped, or cut off from the database, and at which a client acts. */
  crash: number;
  stall: number;
  cut: number;
  /** The share of steps at which nothing happens anywhere for about the time of a lease. */
  delay: number;
  act: number;
  /** The shares of statements that fail, of hints that are lost, and of answers to clients that are lost. */
  statement: number;
  hint: number;
  answer: number;
  /** The share of steps at which time passes although work is waiting. */
  haste: number;
  /** The rates of the models and tools in every process. */
  work: Profile;
}

const STEPS = [40, 80, 160, 240] as const;

/** Faults that do not belong to this kind of life are switched off. */
function drawWork(tape: Tape): Profile {
  return {
    ...{ act: 0, crash: 0, clockJump: 0, store: 0, deliveredTwice: 0, window: 0, decides: 0, steps: 0 },
    ...{ appendsAtOnce: false, priced: false, images: false, keepsBlobs: false, secondConversation: false },
    ...{ fork: false, overtaken: false, actsTwice: false },
    model: tape.pick([0, 0, 0.05, 0.2]),
    repeats: tape.pick([0, 0, 0.4]),
  };
}

export function drawSharedProfile(tape: Tape): SharedProfile {
  return {
    processes: tape.pick([2, 3]),
    conversations: tape.pick([1, 1, 2]),
    steps: tape.pick(STEPS),
    leaseMs: tape.pick([3000, 1000, 15_000]),
    idleMs: tape.pick([60_000, 1000, 0]),
    isPooled: tape.pick([false, false, true]),
    onRestart: tape.pick(['resume', 'idle', 'replayDecided'] as const),
    crash: tape.pick([0, 0.01, 0.03]),
    stall: tape.pick([0, 0.02, 0.05]),
    cut: tape.pick([0, 0, 0.02]),
    delay: tape.pick([0, 0, 0.01, 0.03]),
    act: tape.pick([0.08, 0.15, 0.25]),
    statement: tape.pick([0, 0.02, 0.08, 0.2]),
    hint: tape.pick([0, 0.1, 0.5, 1]),
    answer: tape.pick([0, 0.05, 0.2]),
    haste: tape.pick([0.05, 0.02, 0.2]),
    work: drawWork(tape),
  };
}
