/**
 * IndexedDB and Web Locks in memory, as far as `indexedDbStore` uses them. Invariant: the fake promises no more than a
 * browser does. Every answer comes later, transactions run one after the other, and a failed one changes nothing.
 */
import { vi } from 'vitest';

type Key = number | string | readonly Key[];
interface Range {
  lower: Key;
  upper: Key;
  lowerOpen?: boolean;
  upperOpen?: boolean;
}
type Records = { key: Key; value: unknown }[];
interface Request {
  result?: unknown;
  error?: unknown;
  onsuccess?: () => void;
  onerror?: () => void;
  transaction?: unknown;
  onupgradeneeded?: (event: { oldVersion: number }) => void;
}
type Stores = Map<string, Records>;

const rank = (key: Key): number => (typeof key === 'number' ? 0 : typeof key === 'string' ? 1 : 2);
/** Returns negative or positive by order: numbers first, then texts, then lists, which are compared item by item. */
function compare(a: Key, b: Key): number {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  if (typeof a !== 'object' || typeof b !== 'object') return a < b ? -1 : a > b ? 1 : 0;
  for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
    const order = compare(a[at] as Key, b[at] as Key);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

const isWithin = (key: Key, { lower, upper, lowerOpen, upperOpen }: Range): boolean => {
  const [fromLower, toUpper] = [compare(key, lower), compare(key, upper)];
  return (fromLower > 0 || (fromLower === 0 && !lowerOpen)) && (toUpper < 0 || (toUpper === 0 && !upperOpen));
};

/** The index of the first record whose key is not less. */
function placeOf(records: Records, key: Key): number {
  let [from, to] = [0, records.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (compare((records[middle] as Records[number]).key, key) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

const later = (act: () => void): void => void setImmediate(act);

class Transaction {
  oncomplete?: () => void;
  onabort?: () => void;
  error: unknown = null;
  readonly #stores: Stores;
  readonly #acts: (() => void)[] = [];

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** Runs the requests of a transaction. `refused`: the disk rejects it. */
  run(refused?: { cause: unknown }): void {
    const before = [...this.#stores].map(([name, records]) => [name, [...records]] as const);
    // An answer may ask for more.
    for (const act of this.#acts) if (this.error === null) act();
    this.error ??= refused?.cause ?? null;
    if (this.error === null && !refused) return this.oncomplete?.();
    for (const [name, kept] of before) {
      const records = this.#stores.get(name) ?? [];
      records.splice(0, records.length, ...kept);
    }
    this.onabort?.();
  }

  objectStore(name: string) {
    const records = this.#stores.get(name) as Records;
    const asked = (answer: () => unknown): Request => {
      const request: Request = {};
      this.#acts.push(() => {
        try {
          request.result = answer();
          request.onsuccess?.();
        } catch (error) {
          request.error = this.error = error;
          request.onerror?.();
        }
      });
      return request;
    };
    const put = (value: unknown, key: Key, mayReplace: boolean): Request => {
      const copy = structuredClone(value);
      return asked(() => {
        const at = placeOf(records, key);
        const isThere = at < records.length && compare((records[at] as Records[number]).key, key) === 0;
        if (isThere && !mayReplace) throw new DOMException('the key is taken', 'ConstraintError');
        records.splice(at, isThere ? 1 : 0, { key, value: copy });
      });
    };
    const within = (range: Range, most = records.length): Records => {
      const matching: Records = [];
      for (let at = placeOf(records, range.lower); at < records.length && matching.length < most; at += 1) {
        const record = records[at] as Records[number];
        if (isWithin(record.key, range)) matching.push(record);
        else if (compare(record.key, range.upper) >= 0) break;
      }
      return matching;
    };
    return {
      add: (value: unknown, key: Key) => put(value, key, false),
      put: (value: unknown, key: Key) => put(value, key, true),
      get: (key: Key) => asked(() => structuredClone(within({ lower: key, upper: key })[0]?.value)),
      getAll: (range?: Range, most?: number) =>
        asked(() => structuredClone(range ? within(range, most) : records).map(({ value }) => value)),
      delete: (range: Range | string) => {
        const gone = typeof range === 'string' ? { lower: range, upper: range } : range;
        return asked(
          () => void records.splice(0, records.length, ...records.filter(({ key }) => !isWithin(key, gone))),
        );
      },
      openCursor: () => {
        const request: Request = {};
        const show = (at: number): void =>
          void this.#acts.push(() => {
            const record = records[at];
            request.result = record ? { ...structuredClone(record), continue: () => show(at + 1) } : null;
            request.onsuccess?.();
          });
        show(0);
        return request;
      },
      openKeyCursor: (range: Range, direction: string) =>
        asked(() => (direction === 'prev' ? within(range).at(-1) : within(range)[0]) ?? null),
    };
  }
}

class FakeBrowser {
  /** Databases by name, and their stores by name. */
  readonly #databases = new Map<string, { version: number; stores: Stores }>();
  readonly #held = new Set<string>();
  readonly connections: { onclose?: () => void; onversionchange?: () => void; isClosed: boolean }[] = [];
  /** Each is the error of the next opening, or of the next transaction that changes something. */
  readonly refusedOpenings: unknown[] = [];
  readonly refusedChanges: unknown[] = [];
  /** Each is the error of the next request for a lock. */
  readonly refusedLocks: unknown[] = [];
  /** The durability that each transaction with changes asked for. */
  readonly durabilities: unknown[] = [];

  readonly indexedDB = {
    open: (name: string, version: number): Request => {
      const request: Request = {};
      later(() => {
        const refusal = this.refusedOpenings.shift();
        if (refusal !== undefined) {
          request.error = refusal;
          return request.onerror?.();
        }
        const database = this.#databases.get(name) ?? { version: 0, stores: new Map() };
        request.result = this.#connection(database.stores);
        if (database.version < version) {
          const transaction = new Transaction(database.stores);
          request.transaction = transaction;
          request.onupgradeneeded?.({ oldVersion: database.version });
          transaction.run();
        }
        this.#databases.set(name, { ...database, version });
        request.onsuccess?.();
      });
      return request;
    },
  };

  /** A database of an earlier version of the store, with these stores. */
  addDatabase(name: string, version: number, stores: Readonly<Record<string, Records>>): void {
    this.#databases.set(name, { version, stores: new Map(Object.entries(stores)) });
  }

  /** Another page asks to delete the databases. This is done when each connection was closed on request. */
  deleteDatabases(): boolean {
    for (const connection of this.connections) connection.onversionchange?.();
    if (!this.connections.every(({ isClosed }) => isClosed)) return false;
    this.#databases.clear();
    return true;
  }

  /** The browser closes its connections, as it does when its disk fails. */
  closeConnections(): void {
    for (const connection of this.connections.splice(0)) {
      connection.isClosed = true;
      connection.onclose?.();
    }
  }

  readonly locks = {
    request: async (name: string, _: { ifAvailable: true }, use: (lock: object | null) => unknown): Promise<void> => {
      await new Promise<void>((resolve) => later(resolve));
      if (this.refusedLocks.length > 0) throw this.refusedLocks.shift();
      if (this.#held.has(name)) return void (await use(null));
      this.#held.add(name);
      await Promise.resolve(use({ name })).finally(() => this.#held.delete(name));
    },
    query: async () => ({ held: [...this.#held].map((name) => ({ name })) }),
  };

  #connection(stores: Stores) {
    const connection = {
      isClosed: false,
      createObjectStore: (name: string) => void stores.set(name, []),
      close: () => {
        connection.isClosed = true;
      },
      transaction: (names: string | readonly string[], mode: string, options?: { durability: string }) => {
        if (mode === 'readwrite') this.durabilities.push(options?.durability);
        if (connection.isClosed) throw new DOMException('the connection is closed', 'InvalidStateError');
        const used = [names].flat().map((name) => [name, stores.get(name) as Records] as const);
        const transaction = new Transaction(new Map(used));
        const isRefused = (): boolean => mode === 'readwrite' && this.refusedChanges.length > 0;
        later(() => transaction.run(isRefused() ? { cause: this.refusedChanges.shift() } : undefined));
        return transaction;
      },
    };
    this.connections.push(connection);
    return connection;
  }
}

/** A separate browser in place of the platform's globals, until `vi.unstubAllGlobals()`. */
export function fakeBrowser(): FakeBrowser {
  const browser = new FakeBrowser();
  vi.stubGlobal('indexedDB', browser.indexedDB);
  vi.stubGlobal('navigator', { locks: browser.locks });
  vi.stubGlobal('IDBKeyRange', {
    bound: (lower: Key, upper: Key, lowerOpen?: boolean, upperOpen?: boolean) => ({
      lower,
      upper,
      lowerOpen,
      upperOpen,
    }),
  });
  return browser;
}
