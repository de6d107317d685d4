/**
 * A rewind of a conversation: the place that it returns to, and the entries that count after it. Invariant: the log keeps
 * every entry. A call that counts keeps its result, also one that was logged later.
 */
import type { LogEntry } from '../vocabulary.ts';

type CallEnd = Extract<LogEntry, { type: 'tool-result' | 'call-settled' }>;
const isCallEnd = (entry: LogEntry): entry is CallEnd => entry.type === 'tool-result' || entry.type === 'call-settled';

/** The entries that count after a rewind to `toSeq`. */
export function standingAt(entries: readonly LogEntry[], toSeq: number): LogEntry[] {
  const callIds = new Set<string>();
  return entries.filter((entry) => {
    if (entry.seq > toSeq) return isCallEnd(entry) && callIds.has(entry.callId);
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') callIds.add(entry.item.callId);
    return true;
  });
}

/** The entries of a log that count. */
export function standingEntries(entries: readonly LogEntry[]): readonly LogEntry[] {
  if (!entries.some(({ type }) => type === 'rewound')) return entries;
  let standing: LogEntry[] = [];
  for (const entry of entries) {
    if (entry.type === 'rewound') standing = standingAt(standing, entry.toSeq);
    else standing.push(entry);
  }
  return standing;
}

/** The place before the message: a seq, or why there is none. */
export type RewindPlace = { toSeq: number } | 'unknown' | 'steer' | 'history';

/** The place before a message that began a cycle which counts. */
export function placeBefore(entries: readonly LogEntry[], messageId: string): RewindPlace {
  const standing = standingEntries(entries);
  const index = standing.findIndex((entry) => entry.type === 'user-message' && entry.messageId === messageId);
  const message = standing[index];
  if (message?.type !== 'user-message') return isEarlier(standing, messageId) ? 'history' : 'unknown';
  if (message.kind === 'steer') return 'steer';
  // The start of its run is directly before the message, unless the process ended in between.
  const start = standing
    .slice(0, index)
    .filter(({ type }) => type === 'run-started')
    .at(-1);
  return { toSeq: (start?.runId === message.runId ? start.seq : message.seq) - 1 };
}

/** One entry represents all messages that the conversation was opened with. */
function isEarlier(entries: readonly LogEntry[], messageId: string): boolean {
  const index = /^history-(\d+)$/.exec(messageId)?.[1];
  const history = entries.find(({ type }) => type === 'history');
  return index !== undefined && history?.type === 'history' && history.messages[Number(index)]?.role === 'user';
}
