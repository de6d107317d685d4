/**
 * `runchart replay`: a stored log, shown as its request cycles. Rule: nothing is written and nothing is held; what can
 * be read is shown on standard output, what could not be is told on standard error.
 */
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { createProjector } from '../../projector/index.ts';
import { CANCELLED } from '../exitCodes.ts';
import { jsonLine, type Output, printable, Screen } from '../screen.ts';
import { sessionsDirectory } from '../sessions/sessionStore.ts';
import { ReplaySpending, sumOfTallies } from '../tally.ts';
import { findLog, readStored } from './readLog.ts';
import { ReplayRenderer } from './renderReplay.ts';

export interface ReplayOptions {
  json?: boolean;
  rounds?: boolean;
  store?: string;
  /** A vitest file that tells the log's story again. */
  asTest?: boolean;
}

export interface ReplayOutputs {
  shown: Output;
  notes: Output;
}

/** Does it and answers the exit code. Rejects with ConfigurationError, and with CorruptLogError for what is no log. */
export async function replayCommand(
  given: string,
  { json = false, rounds = false, asTest = false, store }: ReplayOptions,
  { shown, notes }: ReplayOutputs,
  signal: AbortSignal,
): Promise<number> {
  const projector = createProjector();
  const spending = new ReplaySpending();
  const entries: LogEntry[] = [];
  const said = await readStored(await findLog(given, sessionsDirectory(store)), (value) => {
    projector.push(value);
    spending.take(value);
    if (asTest) entries.push(value as LogEntry);
  });
  for (const note of said) notes.write(`runchart: ${printable(note)}\n`);
  if (asTest) {
    const { testOf } = await import('../../testing/agentPaths/scriptOf.ts');
    shown.write(testOf(entries));
    return signal.aborted ? CANCELLED : 0;
  }
  const view = projector.view();
  if (json) {
    shown.write(`${jsonLine(view)}\n`);
    return signal.aborted ? CANCELLED : 0;
  }
  const renderer = new ReplayRenderer(new Screen({ reply: shown, steps: shown }));
  const tallies = view.cycles.map((cycle) => spending.of(cycle));
  for (const [index, cycle] of view.cycles.entries()) {
    // A reader that went away needs no more.
    if (signal.aborted) return CANCELLED;
    if (rounds) renderer.rounds(cycle, index + 1, tallies[index]);
    else renderer.cycle(cycle, index + 1, tallies[index]);
  }
  renderer.rest(view, sumOfTallies(tallies.filter((tally) => tally !== undefined)));
  return signal.aborted ? CANCELLED : 0;
}
