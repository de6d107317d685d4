/**
 * `runchart replay`: shows a stored log as its request cycles. Invariant: nothing is written or locked. Readable
 * parts go to standard output, and notes about unreadable parts to standard error.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { jsonLine, printable, sourceText } from '../../printable.ts';
import { createProjector } from '../../projector/index.ts';
import { ReplaySpending, sumOfTallies } from '../costTally.ts';
import { CANCELLED } from '../exitCodes.ts';
import { type Output, Screen } from '../screen.ts';
import { sessionPlace } from '../sessions/sessionPlace.ts';
import { findLog } from './readLog.ts';
import { ReplayRenderer } from './renderReplay.ts';

export interface ReplayOptions {
  json?: boolean;
  rounds?: boolean;
  store?: string;
  /** Print a vitest file that replays the log. */
  asTest?: boolean;
}

export interface ReplayOutputs {
  shown: Output;
  notes: Output;
}

/** Resolves to the exit code. Rejects with ConfigurationError, and with CorruptLogError if the file is not a log. */
export async function replayCommand(
  log: string,
  { json = false, rounds = false, asTest = false, store }: ReplayOptions,
  { shown, notes }: ReplayOutputs,
  signal: AbortSignal,
): Promise<number> {
  const projector = createProjector();
  const spending = new ReplaySpending();
  const entries: LogEntry[] = [];
  const place = await sessionPlace(store);
  const found = await findLog(log, place);
  const unreadNotes = await found.read((value) => {
    projector.push(value);
    spending.addEntry(value);
    if (asTest) entries.push(value as LogEntry);
  });
  await place.close();
  for (const note of unreadNotes) notes.write(`runchart: ${printable(note)}\n`);
  if (asTest) {
    const { testOf } = await import('../../scripts/scriptOf.ts');
    shown.write(sourceText(testOf(entries)));
    return signal.aborted ? CANCELLED : 0;
  }
  const view = projector.view();
  if (json) {
    shown.write(`${jsonLine(view)}\n`);
    return signal.aborted ? CANCELLED : 0;
  }
  const renderer = new ReplayRenderer(new Screen({ reply: shown, steps: shown }));
  const tallies = view.cycles.map((cycle) => spending.tallyOf(cycle));
  for (const [index, cycle] of view.cycles.entries()) {
    // The reader of the output is gone.
    if (signal.aborted) return CANCELLED;
    if (rounds) renderer.rounds(cycle, index + 1, tallies[index]);
    else renderer.cycle(cycle, index + 1, tallies[index]);
  }
  renderer.rest(view, sumOfTallies(tallies.filter((tally) => tally !== undefined)));
  return signal.aborted ? CANCELLED : 0;
}
