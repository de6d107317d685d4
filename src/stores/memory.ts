/**
 * A store in the memory of this process. Invariant: entries are frozen; entries that are not are copied first. A log
 * exists as long as the store object. Equal bytes are stored once for each conversation.
 */
import { deepFreeze } from '../../machines/internal.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { RunchartError, SessionBusyError } from '../errors.ts';
import { onDemand } from '../onDemand.ts';
import {
  type ConversationInfo,
  isSubAgentOf,
  type ListOptions,
  type LogHandle,
  type LogStore,
  noConversation,
  refuseOtherOwner,
  refuseOutOfOrder,
  type StoreOpening,
  subAgentIds,
  withLookup,
} from './logStore.ts';
import type { RowTable } from './rowTable.ts';

const loadRows = onDemand(async () => ({
  ...(await import('./conversationSummary.ts')),
  ...(await import('./rowTable.ts')),
}));

const loadReferences = onDemand(() => import('./blobReference.ts'));

/** Creates a store in memory. For tests and short-lived agents. Writes nothing to disk. */
export function memoryStore(): LogStore {
  const logs = new MemoryLogs();
  const store: LogStore = {
    open: (id, options) => logs.open(id, options),
    list: (options) => logs.list(options),
    delete: (id) => logs.delete(id),
  };
  return withLookup(store, async (id, owner) => logs.exists(id, owner));
}

class MemoryLogs implements LogStore {
  readonly #logs = new Map<string, LogEntry[]>();
  readonly #blobs = new Map<string, Blobs>();
  readonly #leased = new Set<string>();
  /** The logs that changed since the last list. */
  readonly #changed = new Set<string>();
  #rows: RowTable | undefined;

  exists(id: string, owner?: string): boolean {
    const [first] = this.#logs.get(id) ?? [];
    if (first === undefined) return false;
    return owner === undefined || (first.type === 'conversation' && first.owner === owner);
  }

  async open(id: string, { existing, owner }: StoreOpening = {}): Promise<LogHandle> {
    const entries = this.#logs.get(id) ?? [];
    refuseOtherOwner(entries[0], owner);
    this.#refuseLeased(id);
    if (existing && entries.length === 0) throw noConversation();
    this.#leased.add(id);
    this.#logs.set(id, entries);
    return memoryHandle(id, entries, this.#blobs, {
      changed: () => this.#changed.add(id),
      release: () => {
        this.#leased.delete(id);
        if (entries.length === 0) this.#logs.delete(id);
      },
    });
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    const { addToRow, RowTable } = await loadRows();
    this.#rows ??= new RowTable();
    for (const id of this.#changed) {
      const entries = this.#logs.get(id) ?? [];
      let row = entries.length === 0 ? undefined : this.#rows.get(id);
      for (let seq = row?.length ?? 0; seq < entries.length; seq += 1)
        row = addToRow(row, entries[seq] as LogEntry, id);
      this.#rows.set(id, row);
    }
    this.#changed.clear();
    return this.#rows.page(options, ({ id }) => (this.#leased.has(id) ? 'self' : 'nobody'));
  }

  async delete(id: string): Promise<void> {
    const ids = this.#family(id);
    for (const each of ids) this.#refuseLeased(each);
    for (const each of ids) {
      this.#logs.delete(each);
      this.#blobs.delete(each);
      this.#rows?.set(each, undefined);
      this.#changed.delete(each);
    }
  }

  /** The conversation and its sub-agents. */
  #family(id: string): Set<string> {
    const family = new Set([id]);
    for (const parent of family) {
      for (const child of subAgentIds(this.#logs.get(parent) ?? [])) {
        if (isSubAgentOf(this.#logs.get(child)?.[0], parent)) family.add(child);
      }
    }
    return family;
  }

  #refuseLeased(id: string): void {
    if (!this.#leased.has(id)) return;
    throw new SessionBusyError(`conversation "${id}" is open already: close the other handle first`);
  }
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

function memoryHandle(
  id: string,
  stored: LogEntry[],
  all: Map<string, Blobs>,
  { changed, release }: { changed(): void; release(): void },
): LogHandle {
  let open = true;
  const refuseClosed = () => {
    if (!open) throw new RunchartError('closed', `the log of conversation "${id}" is closed: open it again`);
  };
  const appendNow = (entries: readonly LogEntry[], expectedSeq: number) => {
    refuseClosed();
    refuseOutOfOrder(id, stored.length, entries, expectedSeq);
    for (const entry of entries.map(frozenEntry)) stored.push(entry);
    changed();
  };
  /** Settles after all requested blobs. */
  let blobsPut: Promise<unknown> | undefined;
  let closing: Promise<void> | undefined;
  const putBlob = async (bytes: Uint8Array, mediaType: string): Promise<string> => {
    const { referenceOf } = await loadReferences();
    const reference = referenceOf(bytes, mediaType);
    const blobs: Blobs = all.get(id) ?? new Map();
    all.set(id, blobs);
    if (!blobs.has(reference)) blobs.set(reference, bytes);
    return reference;
  };
  return {
    read: (from = 0) => entriesOf(stored, from, refuseClosed),
    appendNow,
    async append(entries, expectedSeq) {
      appendNow(entries, expectedSeq);
    },
    async putBlob(bytes, mediaType) {
      refuseClosed();
      const put = putBlob(new Uint8Array(bytes), mediaType);
      blobsPut = Promise.allSettled([blobsPut, put]);
      return put;
    },
    async getBlob(reference) {
      refuseClosed();
      const blob = all.get(id)?.get(reference);
      if (blob) return blob.slice();
      throw new RunchartError('store', `no blob ${reference.slice(0, 100)} beside the log of conversation "${id}"`);
    },
    close() {
      open = false;
      closing ??= blobsPut ? blobsPut.then(release) : Promise.resolve(release());
      return closing;
    },
  };
}
