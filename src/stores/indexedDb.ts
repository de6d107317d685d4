/**
 * Logs in a browser's IndexedDB. Rule: an append is one transaction, durable when it has completed; who holds a log holds
 * a Web Lock of its name, so another tab is told that it is busy, and a tab that is gone holds nothing.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { ConfigurationError, RunchartError, SessionBusyError, thrownMessage } from '../errors.ts';
import { conversationSummary, newestFirst } from './conversationSummary.ts';
import { type ConversationInfo, type LogHandle, type LogStore, refuseOutOfOrder } from './store.ts';

const ENTRIES = 'entries';
const BLOBS = 'blobs';
const VERSION = 1;
/** Entries that are read at a time. */
const BATCH = 500;

const failed = (what: string, cause: unknown): RunchartError =>
  RunchartError.isRunchartError(cause)
    ? cause
    : new RunchartError('store', `${what}: ${thrownMessage(cause)}`, { cause });

const answerOf = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Resolves when it is durable. */
const completed = (transaction: IDBTransaction): Promise<void> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error('the transaction was aborted'));
  });

/** One connection of a page; opened when it is needed, and anew where the browser closed it. */
class Database {
  readonly #name: string;
  #opening: Promise<IDBDatabase> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Does it in one transaction; resolves with what it answers once that is durable. */
  async change(store: string, act: (entries: IDBObjectStore) => void): Promise<void> {
    const database = await this.#open();
    const transaction = database.transaction(store, 'readwrite', { durability: 'strict' });
    const done = completed(transaction);
    act(transaction.objectStore(store));
    return done;
  }

  async read<T>(store: string, ask: (entries: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await this.#open();
    return answerOf(ask(database.transaction(store, 'readonly').objectStore(store)));
  }

  #open(): Promise<IDBDatabase> {
    this.#opening ??= this.#opened().catch((cause) => {
      this.#opening = undefined;
      throw failed(`the database ${this.#name} cannot be opened`, cause);
    });
    return this.#opening;
  }

  async #opened(): Promise<IDBDatabase> {
    const request = indexedDB.open(this.#name, VERSION);
    request.onupgradeneeded = () => {
      // By conversation, then by seq or reference.
      for (const store of [ENTRIES, BLOBS]) request.result.createObjectStore(store);
    };
    const database = await answerOf(request);
    const gone = (): void => {
      this.#opening = undefined;
    };
    database.onclose = gone;
    database.onversionchange = () => {
      gone();
      database.close();
    };
    return database;
  }
}

/** All keys of one conversation. */
const ofConversation = (id: string, from: number | string = Number.NEGATIVE_INFINITY): IDBKeyRange =>
  IDBKeyRange.bound([id, from], [id, []]);

/** Held while it is not released, by this tab; nothing where another handle holds it. */
function heldLock(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(undefined);
        return new Promise<void>((release) => resolve(release));
      })
      .catch(reject);
  });
}

/** A store of this origin; two stores of one name are the same store. Needs a page that may use Web Locks (https, localhost). */
export function indexedDbStore(name: string): LogStore {
  if (typeof name !== 'string' || name === '')
    throw new ConfigurationError('indexedDbStore needs a name for its database');
  const database = new Database(name);
  const own = new Set<string>();
  const lockOf = (id: string): string => `runchart:${name.length}:${name}:${id}`;
  const lease = async (id: string): Promise<() => void> => {
    if (typeof navigator === 'undefined' || !navigator.locks || typeof indexedDB === 'undefined')
      throw new ConfigurationError(
        'indexedDbStore needs IndexedDB and Web Locks: a browser, and a page of https or localhost',
      );
    const release = await heldLock(lockOf(id));
    if (!release) throw new SessionBusyError(`conversation "${id}" is open already, here or in another tab`);
    own.add(id);
    return () => {
      own.delete(id);
      release();
    };
  };
  return {
    async open(id) {
      const release = await lease(id);
      try {
        const last = await database.read(ENTRIES, (store) => store.openKeyCursor(ofConversation(id), 'prev'));
        const [, seq = -1] = (last?.key ?? []) as [string?, number?];
        return new IndexedDbHandle({ database, id, release, next: seq + 1 });
      } catch (cause) {
        release();
        throw failed(`the log of conversation "${id}" cannot be opened`, cause);
      }
    },
    async list() {
      const keys = await database.read(ENTRIES, (store) => store.getAllKeys());
      const ids = new Set(keys.map((key) => (key as [string, number])[0]));
      const { held = [] } = await navigator.locks.query();
      const locks = new Set(held.map((lock) => lock.name));
      const found: ConversationInfo[] = [];
      for (const id of ids) {
        const summary = conversationSummary(id);
        for await (const entry of entriesOf(database, id, 0, Number.POSITIVE_INFINITY)) summary.add(entry);
        const holder = own.has(id) ? 'self' : locks.has(lockOf(id)) ? 'other' : 'nobody';
        const listed = summary.result(holder);
        if (listed) found.push(listed);
      }
      return newestFirst(found);
    },
    async delete(id) {
      const release = await lease(id);
      try {
        for (const store of [ENTRIES, BLOBS]) await database.change(store, (kept) => kept.delete(ofConversation(id)));
      } catch (cause) {
        throw failed(`conversation "${id}" cannot be deleted`, cause);
      } finally {
        release();
      }
    },
  };
}

/** Those from `from` up to, and without, `until`. */
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
  release(): void;
}

class IndexedDbHandle implements LogHandle {
  readonly #options: HandleOptions;
  #next: number;
  /** What was asked for, one after the other. */
  #tail: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: HandleOptions) {
    this.#options = options;
    this.#next = options.next;
  }

  async *read(from = 0): AsyncGenerator<LogEntry> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    yield* entriesOf(database, id, Math.max(0, Math.ceil(from)), this.#next);
  }

  async append(entries: readonly LogEntry[], expectedSeq: number): Promise<void> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    const kept = entries.map(copyOf);
    await this.#inOrder(async () => {
      refuseOutOfOrder(id, this.#next, kept, expectedSeq);
      if (kept.length === 0) return;
      await database.change(ENTRIES, (store) => {
        // `add` refuses a seq that is taken: whatever broke the lease, nothing is written over.
        for (const entry of kept) store.add(entry, [id, entry.seq]);
      });
      this.#next += kept.length;
    }, 'its entries cannot be appended');
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<string> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    const kept = new Uint8Array(bytes);
    return this.#inOrder(async () => {
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', kept));
      const hex = [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      const reference = `blob:${hex}:${mediaType}`;
      await database.change(BLOBS, (store) => store.put(kept, [id, reference]));
      return reference;
    }, 'its bytes cannot be stored');
  }

  async getBlob(reference: string): Promise<Uint8Array> {
    this.#mustBeOpen();
    const { database, id } = this.#options;
    const found: unknown = await database.read(BLOBS, (store) => store.get([id, reference]));
    if (found instanceof Uint8Array) return found;
    throw new RunchartError('store', `no blob ${reference.slice(0, 100)} beside the log of conversation "${id}"`);
  }

  close(): Promise<void> {
    this.#closing ??= this.#tail.then(() => this.#options.release());
    return this.#closing;
  }

  #mustBeOpen(): void {
    if (!this.#closing) return;
    throw new RunchartError('closed', `the log of conversation "${this.#options.id}" is closed: open it again`);
  }

  #inOrder<T>(act: () => Promise<T>, what: string): Promise<T> {
    const mine = this.#tail.then(act).catch((cause) => {
      throw failed(`conversation "${this.#options.id}": ${what}`, cause);
    });
    this.#tail = mine.catch(() => undefined);
    return mine;
  }
}

/** As it is now: what its owner does to it later changes nothing. */
function copyOf(entry: LogEntry): LogEntry {
  try {
    return structuredClone(entry);
  } catch (cause) {
    throw new RunchartError('store', `entry ${entry.seq} (${entry.type}) is not JSON: ${thrownMessage(cause)}`, {
      cause,
    });
  }
}
