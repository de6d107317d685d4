/**
 * How a conversation is closed. Rule: what was asked for before is answered first, and what was queued is given back;
 * a store that says nothing any more is given up, every promise settles all the same, and whoever closes is told.
 */
import { Patience } from './patience.ts';
import type { Runs } from './runs.ts';
import type { Runtime } from './runtime/runtime.ts';
import { nestedIn } from './subAgents/nested.ts';

/** Rejects where the store is silent, or does not let go. */
export async function closeConversation(runtime: Runtime, runs: Runs): Promise<void> {
  const { log, tickets, known } = runtime;
  const patience = new Patience(runtime.setTimer, log);
  let silence: unknown;
  tickets.withdrawHeld();
  try {
    await patience.wait(settled(runtime, runs));
  } catch (error) {
    silence = error;
    tickets.close(error as Error);
    await nestedIn(known)?.close();
  }
  try {
    runtime.stop();
    if (silence === undefined) await patience.wait(runtime.settled()).catch((error: unknown) => (silence = error));
    await patience.release(log.close());
  } finally {
    runs.close(silence);
  }
  if (silence !== undefined) throw silence;
}

async function settled(runtime: Runtime, runs: Runs): Promise<void> {
  const { tickets, outlook } = runtime;
  const isBusy = (): boolean => runtime.status === 'active' || outlook.expecting;
  const given = new Set<string>();
  const queued = (): string[] => runtime.queue.map(({ messageId }) => messageId).filter((id) => !given.has(id));
  do {
    // What is given back now is not promoted when the run has ended; what a slow store held up comes into the queue later.
    const left = queued();
    for (const messageId of left) given.add(messageId);
    const returned = left.map((messageId) => runs.giveBack(messageId, 'closed'));
    if (isBusy() || runtime.status === 'cancelling') await runs.cancel(runs.underWay, true);
    await Promise.all(returned);
  } while ((isBusy() || queued().length > 0) && !tickets.closed);
  await nestedIn(runtime.known)?.close();
  await tickets.allAnswered();
}
