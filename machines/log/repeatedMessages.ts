/**
 * A message that arrives again under the id of the host. Invariant: the log alone determines the outcome of the message and of its run,
 * so a repetition after a restart has the same answer. Nothing is sent twice.
 */
import type { RunOutput } from '../ports.ts';
import type { LogEntry, Termination } from '../vocabulary.ts';

type MessageEntry = Extract<LogEntry, { type: 'user-message' | 'message-queued' | 'message-returned' }>;

/** The last entry about the message: delivered, queued or returned. */
export function entryOfMessage(entries: readonly LogEntry[], messageId: string): MessageEntry | undefined {
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    const isAboutMessage =
      entry?.type === 'user-message' || entry?.type === 'message-queued' || entry?.type === 'message-returned';
    if (isAboutMessage && entry.messageId === messageId) return entry;
  }
  return undefined;
}

/** Causes of an error that are limits or decisions of the host, not failures. */
const STOPPED: ReadonlySet<string> = new Set([
  ...['max_turns', 'max_budget', 'max_tokens', 'max_total_tokens'],
  ...['no_progress', 'empty_replies', 'context_exhausted', 'hook'],
]);

function terminationOf({ reason, cause = '' }: Extract<LogEntry, { type: 'run-stop' }>): Termination {
  if (reason === 'interrupted') return 'Cancelled';
  if (reason === 'completed') return cause === '' || cause === 'end_turn' ? 'NaturalEnd' : 'PluginRequested';
  if (cause === 'timeout') return 'Cancelled';
  return STOPPED.has(cause) ? 'Stopped' : 'Error';
}

/** The end of a run, by its entries. The log does not contain the message of an error. */
export function outputInLog(runId: string, entries: readonly LogEntry[]): RunOutput {
  const end = entries.filter(({ type }) => type === 'run-stop' || type === 'run-suspended').at(-1);
  if (end?.type === 'run-suspended') return { runId, termination: 'Suspended', durable: true };
  if (end?.type !== 'run-stop') return { runId, termination: 'Error', cause: 'store', durable: false };
  const termination = terminationOf(end);
  const { cause } = end;
  return { runId, termination, ...(cause !== undefined && { cause }), durable: true };
}
