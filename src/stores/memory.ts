/**
 * A store in the memory of this process. Invariant: entries are frozen; entries that are not are copied first. A log
 * exists as long as the store object. Equal bytes are stored once for each conversation.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, SessionBusyError } from '../errors.ts';
import { deepFreeze } from '../json.ts';
import { onDemand } from '../onDemand.ts';
import { type ConversationInfo, type LogHandle, type LogStore, refuseOutOfOrder } from './logStore.ts';

const loadSummary = onDemand(() => import('./conversationSummary.ts'));

/** For tests and short-lived agents. Writes nothing to disk. */
export function memoryStore(): LogStore {
  const logs = new Map<string, LogEntry[]>();
  const blobs = new Map<string, Blobs>();
  const leased = new Set<string>();
  const refuseLeased = (id: string) => {
    if (!leased.has(id)) return;
    throw new SessionBusyError(`conversation "${id}" is open already: close the other handle first`);
  };
  return {
    async open(id) {
      refuseLeased(id);
      leased.add(id);
      const entries = logs.get(id) ?? [];
      logs.set(id, entries);
      return memoryHandle(id, entries, blobs, () => {
        leased.delete(id);
        if (entries.length === 0) logs.delete(id);
      });
    },
    async list() {
      const { conversationSummary, newestFirst } = await loadSummary();
      const conversations: ConversationInfo[] = [];
      for (const [id, entries] of logs) {
        const summary = conversationSummary(id);
        for (const entry of entries) summary.add(entry);
        const listed = summary.result(leased.has(id) ? 'self' : 'nobody');
        if (listed) conversations.push(listed);
      }
      return newestFirst(conversations);
    },
    async delete(id) {
      refuseLeased(id);
      logs.delete(id);
      blobs.delete(id);
    },
  };
}

/** A frozen entry counts as deeply frozen, like the library's own entries. */
function frozenEntry(entry: LogEntry): LogEntry {
  if (Object.isFrozen(entry)) return entry;
  try {
    return deepFreeze(structuredClone(entry));
  } catch (cause) {
    throw new RunchartError('store', `entry ${entry.seq} (${entry.type}) is not JSON: ${String(cause)}`, { cause });
  }
}

/**
 * Yields the entries that are stored at the first step. A generator inside the handle would keep the whole log alive
 * until the next full garbage collection (`test/scenarios/garbage.test.ts`).
 */
async function* entriesOf(
  stored: readonly LogEntry[],
  from: number,
  refuseClosed: () => void,
): AsyncGenerator<LogEntry> {
  refuseClosed();
  const until = stored.length;
  for (let seq = Math.max(0, Math.ceil(from)); seq < until; seq += 1) yield stored[seq] as LogEntry;
}

/** Bytes by their reference. */
type Blobs = Map<string, Uint8Array>;

function memoryHandle(id: string, stored: LogEntry[], all: Map<string, Blobs>, release: () => void): LogHandle {
  let open = true;
  const refuseClosed = () => {
    if (!open) throw new RunchartError('closed', `the log of conversation "${id}" is closed: open it again`);
  };
  const appendNow = (entries: readonly LogEntry[], expectedSeq: number) => {
    refuseClosed();
    refuseOutOfOrder(id, stored.length, entries, expectedSeq);
    for (const entry of entries.map(frozenEntry)) stored.push(entry);
  };
  return {
    read: (from = 0) => entriesOf(stored, from, refuseClosed),
    appendNow,
    async append(entries, expectedSeq) {
      appendNow(entries, expectedSeq);
    },
    async putBlob(bytes, mediaType) {
      refuseClosed();
      const blobs: Blobs = all.get(id) ?? new Map();
      all.set(id, blobs);
      const ending = `:${mediaType}`;
      for (const [existing, blob] of blobs) {
        const fits = existing.endsWith(ending) && blob.length === bytes.length;
        if (fits && blob.every((byte, at) => byte === bytes[at])) return existing;
      }
      const reference = `blob:${blobs.size}${ending}`;
      blobs.set(reference, new Uint8Array(bytes));
      return reference;
    },
    async getBlob(reference) {
      refuseClosed();
      const blob = all.get(id)?.get(reference);
      if (blob) return blob.slice();
      throw new RunchartError('store', `no blob ${reference.slice(0, 100)} beside the log of conversation "${id}"`);
    },
    async close() {
      if (open) release();
      open = false;
    },
  };
}
