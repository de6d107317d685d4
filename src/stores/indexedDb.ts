/**
 * A store in a browser's IndexedDB. Invariant: an append is one transaction, and durable when it has completed. An open
 * log has a Web Lock, so another tab cannot open it, and a closed tab releases it. A promise of three lines keeps the
 * order of appends: `p-queue` would add 4 kB to the page.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { ConfigurationError, RunchartError, SessionBusyError, thrownMessage } from '../errors.ts';
import { blobReference, checkMediaType } from './blobReference.ts';
import type { ConversationRow } from './conversationRow.ts';
import { addToRow } from './conversationSummary.ts';
import {
  isSubAgentOf,
  type LogHandle,
  type LogStore,
  noConversation,
  refuseOtherOwner,
  refuseOutOfOrder,
  subAgentIds,
  withLookup,
} from './logStore.ts';
import { RowTable } from './rowTable.ts';

const ENTRIES = 'entries';
const BLOBS = 'blobs';
/** One row for each conversation, written with the entries that change it. */
const ROWS = 'rows';
const VERSION = 2;
/** Entries that are read at once. */
const BATCH = 500;

const failed = (what: string, cause: unknown): RunchartError =>
  RunchartError.isRunchartError(cause)
    ? cause
    : new RunchartError('store', `${what}: ${thrownMessage(cause)}`, { cause });

const resultOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Resolves when the transaction is durable. */
const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error('the transaction was aborted'));
  });

/** The connection of a page. It opens on demand, and again after the browser has closed it. */
class Database {
  readonly #name: string;
  #opening: Promise<IDBDatabase> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Runs `act` in one transaction, and resolves when that is durable. */
  async change(stores: readonly string[], act: (...objects: IDBObjectStore[]) => void): Promise<void> {
    const database = await this.#open();
    const transaction = database.transaction(stores, 'readwrite', { durability: 'strict' });
    const done = completed(transaction);
    act(...stores.map((store) => transaction.objectStore(store)));
    return done;
  }

  async read<T>(store: string, request: (entries: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await this.#open();
    return resultOf(request(database.transaction(store, 'readonly').objectStore(store)));
  }

  #open(): Promise<IDBDatabase> {
    this.#opening ??= this.#opened().catch((cause) => {
      this.#opening = undefined;
      throw failed(`the database ${this.#name} cannot be opened`, cause);
    });
    return this.#opening;
  }

  async #opened(): Promise<IDBDatabase> {
    refuseOtherPlatforms();
    const request = indexedDB.open(this.#name, VERSION);
    request.onupgradeneeded = ({ oldVersion }) => {
      const { result, transaction } = request;
      // Keys: conversation, then seq or reference.
      if (oldVersion < 1) for (const store of [ENTRIES, BLOBS]) result.createObjectStore(store);
      // Key: conversation.
      result.createObjectStore(ROWS);
      if (oldVersion === 1 && transaction) writeRows(transaction.objectStore(ENTRIES), transaction.objectStore(ROWS));
    };
    const database = await resultOf(request);
    const forget = (): void => {
      this.#opening = undefined;
    };
    database.onclose = forget;
    database.onversionchange = () => {
      forget();
      database.close();
    };
    return database;
  }
}

/** Writes the rows of a database that has none. */
function writeRows(entries: IDBObjectStore, rows: IDBObjectStore): void {
  let row: ConversationRow | undefined;
  const reading = entries.openCursor();
  reading.onsuccess = () => {
    const { result: cursor } = reading;
    const [id] = (cursor?.key ?? []) as [string?];
    if (row && row.id !== id) {
      rows.put(row, row.id);
      row = undefined;
    }
    if (!cursor || id === undefined) return;
    row = addToRow(row, cursor.value as LogEntry, id);
    cursor.continue();
  };
}

/** Throws ConfigurationError outside a browser, and on a page without Web Locks. */
function refuseOtherPlatforms(): void {
  if (typeof navigator !== 'undefined' && navigator.locks && typeof indexedDB !== 'undefined') return;
  throw new ConfigurationError(
    'indexedDbStore needs IndexedDB and Web Locks: a browser, and a page of https or localhost',
  );
}

/** The keys of one conversation. */
const keysOf = (id: string, from: number | string = Number.NEGATIVE_INFINITY): IDBKeyRange =>
  IDBKeyRange.bound([id, from], [id, []]);

/** Resolves to the release function of the lock, or to undefined if another handle has it. */
function takeLock(name: string): Promise<(() => void) | undefined> {
  refuseOtherPlatforms();
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(undefined);
        return new Promise<void>((release) => resolve(release));
      })
      .catch((cause) => reject(failed('the browser gives no lock', cause)));
  });
}

/**
 * Creates a store in the IndexedDB of a browser. Two stores with one name share their logs. Needs a page that can use Web
 * Locks (https, or an address of this machine).
 */
export function indexedDbStore(name: string): LogStore {
  if (typeof name !== 'string' || name === '')
    throw new ConfigurationError('indexedDbStore needs a name for its database');
  const database = new Database(name);
  const own = new Set<string>();
  const lockOf = (id: string): string => `runchart:${name.length}:${name}:${id}`;
  const lease = async (id: string): Promise<() => void> => {
    const release = await takeLock(lockOf(id));
    if (!release) throw new SessionBusyError(`conversation "${id}" is open already, here or in another tab`);
    own.add(id);
    return () => {
      own.delete(id);
      release();
    };
  };
  const rowOf = async (id: string, next: number): Promise<ConversationRow | undefined> => {
    let row: ConversationRow | undefined = await database.read(ROWS, (store) => store.get(id));
    if ((row?.length ?? 0) === next) return row;
    row = undefined;
    for await (const entry of entriesOf(database, id, 0, next)) row = addToRow(row, entry, id);
    return row;
  };
  const first = (id: string): Promise<LogEntry | undefined> => database.read(ENTRIES, (store) => store.get([id, 0]));
  const logs: LogStore = {
    async open(id, { existing, owner } = {}) {
      const refuseHidden = async (): Promise<void> => {
        if (!existing && owner === undefined) return;
        const entry = await first(id);
        if (existing && !entry) throw noConversation();
        refuseOtherOwner(entry, owner);
      };
      // This precedes the lock, because another owner must not learn that the conversation is open.
      await refuseHidden();
      const release = await lease(id);
      try {
        // Another tab may have created or deleted it in the meantime.
        await refuseHidden();
        const last = await database.read(ENTRIES, (store) => store.openKeyCursor(keysOf(id), 'prev'));
        const [, seq = -1] = (last?.key ?? []) as [string?, number?];
        return new IndexedDbHandle({ database, id, release, next: seq + 1, row: await rowOf(id, seq + 1) });
      } catch (cause) {
        release();
        throw failed(`the log of conversation "${id}" cannot be opened`, cause);
      }
    },
    async list(options = {}) {
      const table = new RowTable();
      const rows: ConversationRow[] = await database.read(ROWS, (store) => store.getAll());
      for (const row of rows) table.set(row.id, row);
      const { held = [] } = await navigator.locks.query();
      const locks = new Set(held.map((lock) => lock.name));
      return table.page(options, ({ id }) => (own.has(id) ? 'self' : locks.has(lockOf(id)) ? 'other' : 'nobody'));
    },
    async delete(id) {
      const family = new Map<string, () => void>();
      try {
        const ids = new Set([id]);
        for (const each of ids) {
          family.set(each, await lease(each));
          for (const child of await childrenOf(database, each)) ids.add(child);
        }
        await database.change([ENTRIES, BLOBS, ROWS], (entries, blobs, rows) => {
          for (const each of family.keys()) {
            for (const objects of [entries, blobs]) objects.delete(keysOf(each));
            rows.delete(each);
          }
        });
      } catch (cause) {
        throw failed(`conversation "${id}" cannot be deleted`, cause);
      } finally {
        for (const release of family.values()) release();
      }
    },
  };
  return withLookup(logs, async (id, owner) => {
    const entry = await first(id);
    return entry !== undefined && (owner === undefined || (entry.type === 'conversation' && entry.owner === owner));
  });
}

/** The sub-agents that the log names, if their logs name it as their parent. */
async function childrenOf(database: Database, id: string): Promise<string[]> {
  const named: LogEntry[] = [];
  for await (const entry of entriesOf(database, id, 0, Number.POSITIVE_INFINITY))
    if (entry.type === 'sub-agent') named.push(entry);
  const children: string[] = [];
  for (const child of subAgentIds(named)) {
    const entry: LogEntry | undefined = await database.read(ENTRIES, (store) => store.get([child, 0]));
    if (isSubAgentOf(entry, id)) children.push(child);
  }
  return children;
}

/** Yields entries from seq `from` to before `until`. */
async function* entriesOf(database: Database, id: string, from: number, until: number): AsyncGenerator<LogEntry> {
  for (let next = from; next < until; ) {
    const range = IDBKeyRange.bound([id, next], [id, until], false, true);
    const batch: LogEntry[] = await database.read(ENTRIES, (store) => store.getAll(range, BATCH));
    yield* batch;
    if (batch.length < BATCH) return;
    next += batch.length;
  }
}

interface HandleOptions {
  database: Database;
  id: string;
  next: number;
  /** Undefined for an empty log. */
  row: ConversationRow | undefined;
  release(): void;
}

class IndexedDbHandle implements LogHandle {
  readonly #options: HandleOptions;
  #next: number;
  #row: ConversationRow | undefined;
  /** Settles after the last requested change. */
  #lastChange: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: HandleOptions) {
    this.#options = options;
    this.#next = options.next;
    this.#row = options.row;
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    yield* entriesOf(database, id, Math.max(0, Math.ceil(from)), this.#next);
  }

  async append(entries: readonly LogEntry[], expectedSeq: number): Promise<void> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    const copies = entries.map(copyOf);
    await this.#inOrder(async () => {
      refuseOutOfOrder(id, this.#next, copies, expectedSeq);
      if (copies.length === 0) return;
      let row = this.#row && { ...this.#row };
      for (const entry of copies) row = addToRow(row, entry, id);
      await database.change([ENTRIES, ROWS], (store, rows) => {
        // `add` refuses an existing seq, so nothing is overwritten even if the lease was lost.
        for (const entry of copies) store.add(entry, [id, entry.seq]);
        rows.put(row, id);
      });
      this.#row = row;
      this.#next += copies.length;
    }, 'its entries cannot be appended');
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    this.#mustBeOpen();
    checkMediaType(mediaType);
    const { database, id } = this.#options;
    const copy = new Uint8Array(bytes);
    return this.#inOrder(async () => {
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', copy));
      const hex = [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      const reference = blobReference(hex, mediaType);
      await database.change([BLOBS], (store) => store?.put(copy, [id, reference]));
      return reference;
    }, 'its bytes cannot be stored');
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    const blob: unknown = await database.read(BLOBS, (store) => store.get([id, reference]));
    if (blob instanceof Uint8Array) return blob;
    throw new RunchartError('store', `no blob ${reference.slice(0, 100)} beside the log of conversation "${id}"`);
  }

  close(): Promise<void> {
    this.#closing ??= this.#lastChange.then(() => this.#options.release());
    return this.#closing;
  }

  #mustBeOpen(): void {
    if (!this.#closing) return;
    throw new RunchartError('closed', `the log of conversation "${this.#options.id}" is closed: open it again`);
  }

  #inOrder<T>(change: () => Promise<T>, what: string): Promise<T> {
    const changed = this.#lastChange.then(change).catch((cause) => {
      throw failed(`conversation "${this.#options.id}": ${what}`, cause);
    });
    this.#lastChange = changed.catch(() => undefined);
    return changed;
  }
}

/** Copies an entry, so later changes by its owner have no effect. */
function copyOf(entry: LogEntry): LogEntry {
  try {
    return structuredClone(entry);
  } catch (cause) {
    throw new RunchartError('store', `entry ${entry.seq} (${entry.type}) is not JSON: ${thrownMessage(cause)}`, {
      cause,
    });
  }
}
