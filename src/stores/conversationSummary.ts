/**
 * The line of a conversation in a list, folded from its log. Invariant: it is the same for every store. The holder of
 * the log decides whether the conversation is active.
 */
import { usageOf } from '../../machines/internal.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ConversationInfo } from './logStore.ts';

/** The owner of the lease: none, this process, or another one. */
export type Holder = 'nobody' | 'self' | 'other';

interface ConversationSummary {
  add(entry: LogEntry): void;
  /** Null for an empty log and for a sub-agent's conversation. */
  result(holder: Holder): ConversationInfo | null;
}

export function conversationSummary(id: string): ConversationSummary {
  let summary: Omit<ConversationInfo, 'status'> | null = null;
  let subAgent = false;
  let cycle: 'ended' | 'running' | 'suspended' = 'ended';
  return {
    add(entry) {
      if (summary === null) {
        const first = entry.type === 'conversation' ? entry : { cwd: '', createdAt: entry.at, parent: undefined };
        subAgent = first.parent !== undefined && first.parent !== null;
        summary = {
          id,
          cwd: typeof first.cwd === 'string' ? first.cwd : '',
          createdAt: finite(first.createdAt) ?? entry.at,
          updatedAt: entry.at,
          turns: 0,
          costUsd: 0,
        };
      }
      summary.updatedAt = entry.at;
      const spent = usageOf(entry);
      if (spent) {
        const cost = finite(spent.costUsd);
        summary.costUsd = summary.costUsd === null || cost === null ? null : summary.costUsd + cost;
      }
      if (entry.type === 'model-reply') summary.turns += 1;
      else if (entry.type === 'run-started' || entry.type === 'run-resumed') cycle = 'running';
      else if (entry.type === 'history') summary.lastCause = 'history';
      else if (entry.type === 'run-suspended') cycle = 'suspended';
      else if (entry.type === 'run-stop') {
        cycle = 'ended';
        delete summary.lastCause;
        if (typeof entry.cause === 'string') summary.lastCause = entry.cause;
      }
    },
    result(holder) {
      if (summary === null || subAgent) return null;
      // A run without a holder has ended with its process. The next opening writes its stop.
      const active = holder === 'other' || (holder === 'self' && cycle === 'running');
      return { ...summary, status: active ? 'active' : cycle === 'suspended' ? 'waiting' : 'idle' };
    },
  };
}

/** Sorts a list: last used first, then by id. */
export function newestFirst(list: ConversationInfo[]): ConversationInfo[] {
  return list.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
}

function finite(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
