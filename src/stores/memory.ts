/**
 * Logs kept in the memory of this process. Rule: frozen entries are stored as given, others are copied and the copy is
 * frozen; a log outlives its handles and dies with the store object. Equal bytes are one blob of their conversation.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, SessionBusyError } from '../errors.ts';
import { deepFreeze } from '../json.ts';
import { onDemand } from '../onDemand.ts';
import { type ConversationInfo, type LogHandle, type LogStore, refuseOutOfOrder } from './store.ts';

const loadSummary = onDemand(() => import('./conversationSummary.ts'));

/** A store for tests and short-lived agents: nothing is written anywhere. */
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
      const found: ConversationInfo[] = [];
      for (const [id, entries] of logs) {
        const summary = conversationSummary(id);
        for (const entry of entries) summary.add(entry);
        const listed = summary.result(leased.has(id) ? 'self' : 'nobody');
        if (listed) found.push(listed);
      }
      return newestFirst(found);
    },
    async delete(id) {
      refuseLeased(id);
      logs.delete(id);
      blobs.delete(id);
    },
  };
}

/** What is frozen is taken to be frozen all the way down, as the library's own entries are. */
function keptOf(entry: LogEntry): LogEntry {
  if (Object.isFrozen(entry)) return entry;
  try {
    return deepFreeze(structuredClone(entry));
  } catch (cause) {
    throw new RunchartError('store', `entry ${entry.seq} (${entry.type}) is not JSON: ${String(cause)}`, { cause });
  }
}

/**
 * What is stored when the reading begins. The generator stands outside the handle: V8 keeps all that a generator can see
 * until the next full collection, which within the handle is the whole log.
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
    for (const entry of entries.map(keptOf)) stored.push(entry);
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
      for (const [known, blob] of blobs) {
        const fits = known.endsWith(ending) && blob.length === bytes.length;
        if (fits && blob.every((byte, at) => byte === bytes[at])) return known;
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
