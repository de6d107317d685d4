/**
 * The facts that entries and signals do not contain, for readers in another process. Rule: JSON, as it reaches a
 * client.
 */
import type { LogEntry, PendingCall } from '../../../machines/internal.ts';
import { AgentBusyError, RunchartError } from '../../errors.ts';
import type { ConversationStatus } from '../../live.ts';
import { type Conversation, entriesOf, openRun } from '../conversation.ts';
import type { RunHandle, RunResult } from '../run.ts';

/** The state of a conversation at one length of its log. */
export interface ConversationOverview {
  /** Distinguishes two logs that had the same id one after the other. */
  createdAt: number;
  /** The length of the log that the rest belongs to. */
  entries: number;
  status: ConversationStatus;
  /** Also the calls of sub-agents, which the log of their parent does not contain. */
  pending: readonly PendingCall[];
  unsettled: readonly PendingCall[];
}

/** Also for a conversation that has no entry yet. */
const createdAtOf = (beginning: LogEntry | undefined): number =>
  beginning?.type === 'conversation' ? beginning.createdAt : 0;

export function overviewOf(
  { status, pending, unsettled }: Pick<Conversation, 'status' | 'pending' | 'unsettled'>,
  entries: readonly LogEntry[],
): ConversationOverview {
  return { createdAt: createdAtOf(entries[0]), entries: entries.length, status, pending, unsettled };
}

/** The result of a run that is over. Its error is known until the next failure, while the conversation is open. */
export async function resultOfRun(conversation: Conversation, runId: string): Promise<RunResult> {
  if (!entriesOf(conversation).some((entry) => entry.runId === runId))
    throw new RunchartError('not_found', 'there is no such run');
  const run = openRun(conversation, runId) as RunHandle;
  if (!run.ended) throw new AgentBusyError('agent_busy', 'the run is not over');
  return run.result;
}
