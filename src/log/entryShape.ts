/**
 * Checks that a log from a store can be read: seqs count up from 0, and each entry has the fields that readers of its type
 * need. Also closes the log of a process that died. Invariant: unknown fields and types of later versions are accepted. An
 * error names the seq of the refused entry.
 */
import { type LogEntry, type LogState, type NewEntry, repairs, unusableField } from '../../machines/internal.ts';
import { CorruptLogError } from '../errors.ts';
import { type LogHandle, noticeEntries } from '../stores/logStore.ts';
import { display } from '../validation.ts';

/** The entry as it is written today: `conversationId` of a `sub-agent` entry was the sub-agent's once, not the log's. */
const current = (entry: LogEntry, id: string): LogEntry =>
  entry.type === 'sub-agent' && entry.child === undefined
    ? Object.freeze({ ...entry, conversationId: id, child: entry.conversationId })
    : entry;

/** The entry itself. Throws CorruptLogError `corrupt`. */
export function readable(entry: LogEntry): LogEntry {
  const found = Object(entry) as { [name: string]: unknown };
  const odd = unusableField(found);
  if (odd === undefined) return entry;
  const where = `entry ${found.seq} (${found.type}) of conversation "${found.conversationId}"`;
  const got = found[odd] === undefined ? 'nothing' : display(found[odd]);
  throw new CorruptLogError('corrupt', `${where} cannot be used: its ${odd} is ${got}; the log was left as it is`);
}

/** Returns the next entry of a log. Throws CorruptLogError: `gap` if an entry is missing, `fork` if a seq repeats, `corrupt` if it is unreadable. */
export function nextEntry(entry: LogEntry, id: string, expected: number): LogEntry {
  const { seq } = readable(entry);
  if (seq === expected) return current(entry, id);
  const what = `the log of conversation "${id}" goes on with entry ${seq}, expected entry ${expected}`;
  throw new CorruptLogError(seq < expected ? 'fork' : 'gap', `${what}; it was left as it is`);
}

/** Returns the entries that close a log whose process died, after notices about damage that its store tolerated. */
export const mended = (
  { notices = [] }: LogHandle,
  entries: readonly LogEntry[],
  logState: LogState,
  isIdempotent: (name: string) => boolean,
): NewEntry[] => [...noticeEntries(notices, entries), ...repairs(logState, isIdempotent)];
