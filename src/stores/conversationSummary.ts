/** What a list says of a conversation, folded from its log. Rule: the same for every store; a log in use is what its holder makes of it. */
import { usageOf } from '../../machines/internal.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ConversationInfo } from './store.ts';

/** Who holds the conversation now: nobody, a handle of this process, or another process. */
export type Holder = 'nobody' | 'self' | 'other';

interface ConversationSummary {
  add(entry: LogEntry): void;
  /** Null for an empty log and for a sub-agent's conversation. */
  result(holder: Holder): ConversationInfo | null;
}

export function conversationSummary(id: string): ConversationSummary {
  let found: Omit<ConversationInfo, 'status'> | null = null;
  let subAgent = false;
  let cycle: 'ended' | 'running' | 'suspended' = 'ended';
  return {
    add(entry) {
      if (found === null) {
        const first = entry.type === 'conversation' ? entry : { cwd: '', createdAt: entry.at, parent: undefined };
        subAgent = first.parent !== undefined && first.parent !== null;
        found = {
          id,
          cwd: typeof first.cwd === 'string' ? first.cwd : '',
          createdAt: finite(first.createdAt) ?? entry.at,
          updatedAt: entry.at,
          turns: 0,
          costUsd: 0,
        };
      }
      found.updatedAt = entry.at;
      const spent = usageOf(entry);
      if (spent) {
        const cost = finite(spent.costUsd);
        found.costUsd = found.costUsd === null || cost === null ? null : found.costUsd + cost;
      }
      if (entry.type === 'model-reply') found.turns += 1;
      else if (entry.type === 'run-started' || entry.type === 'run-resumed') cycle = 'running';
      else if (entry.type === 'history') found.lastCause = 'history';
      else if (entry.type === 'run-suspended') cycle = 'suspended';
      else if (entry.type === 'run-stop') {
        cycle = 'ended';
        delete found.lastCause;
        if (typeof entry.cause === 'string') found.lastCause = entry.cause;
      }
    },
    result(holder) {
      if (found === null || subAgent) return null;
      // A run nobody holds is over: its process is gone, and the next opening writes its stop.
      const active = holder === 'other' || (holder === 'self' && cycle === 'running');
      return { ...found, status: active ? 'active' : cycle === 'suspended' ? 'waiting' : 'idle' };
    },
  };
}

/** The order of every list: last used first, then by id. */
export function newestFirst(list: ConversationInfo[]): ConversationInfo[] {
  return list.sort((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
}

function finite(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
