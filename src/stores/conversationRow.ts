/**
 * The row of a conversation in a list. Invariant: a row is JSON, so a store may keep it beside the log. The holder of the
 * log decides whether the conversation is active.
 */
import type { ConversationInfo } from './logStore.ts';

/** The owner of the lease: none, this process, or another one. */
export type Holder = 'nobody' | 'self' | 'other';

export interface ConversationRow extends Omit<ConversationInfo, 'status' | 'cursor'> {
  /** The entries that were folded. */
  length: number;
  /** The state of the last run according to the log. */
  cycle: 'ended' | 'running' | 'suspended';
  /** Of a sub-agent's conversation, which is not listed. */
  parentId?: string;
}

/** The row as a list shows it, without its cursor. Null for an empty log and for a sub-agent's conversation. */
export function listedRow(row: ConversationRow | undefined, holder: Holder): ConversationInfo | null {
  if (row === undefined || row.parentId !== undefined) return null;
  const { length: _, cycle, ...info } = row;
  const status = statusOf(row, holder);
  return { ...info, ...(cycle === 'running' && status === 'idle' && { lastCause: 'crash' }), status };
}

/** A run without a holder has ended with its process. The next opening writes its stop. */
export function statusOf({ cycle }: ConversationRow, holder: Holder): ConversationInfo['status'] {
  const active = holder === 'other' || (holder === 'self' && cycle === 'running');
  return active ? 'active' : cycle === 'suspended' ? 'waiting' : 'idle';
}
