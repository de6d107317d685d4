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
  onupgradeneeded?: () => void;
}

const rank = (key: Key): number => (typeof key === 'number' ? 0 : typeof key === 'string' ? 1 : 2);
/** Numbers come first, then texts, then lists, which are compared item by item. */
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
  readonly #records: Records;
  readonly #acts: (() => void)[] = [];

  constructor(records: Records) {
    this.#records = records;
  }

  /** Runs the requests of a transaction. `refused`: the disk rejects it. */
  run(refused?: { cause: unknown }): void {
    const before = [...this.#records];
    for (const act of this.#acts) if (this.error === null) act();
    this.error ??= refused?.cause ?? null;
    if (this.error === null && !refused) return this.oncomplete?.();
    this.#records.splice(0, this.#records.length, ...before);
    this.onabort?.();
  }

  objectStore() {
    const records = this.#records;
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
      const found: Records = [];
      for (let at = placeOf(records, range.lower); at < records.length && found.length < most; at += 1) {
        const record = records[at] as Records[number];
        if (isWithin(record.key, range)) found.push(record);
        else if (compare(record.key, range.upper) >= 0) break;
      }
      return found;
    };
    return {
      add: (value: unknown, key: Key) => put(value, key, false),
      put: (value: unknown, key: Key) => put(value, key, true),
      get: (key: Key) => asked(() => structuredClone(within({ lower: key, upper: key })[0]?.value)),
      getAll: (range: Range, most: number) =>
        asked(() => structuredClone(within(range, most)).map(({ value }) => value)),
      getAllKeys: () => asked(() => records.map(({ key }) => key)),
      delete: (range: Range) =>
        asked(() => void records.splice(0, records.length, ...records.filter(({ key }) => !isWithin(key, range)))),
      openKeyCursor: (range: Range, direction: string) =>
        asked(() => (direction === 'prev' ? within(range).at(-1) : within(range)[0]) ?? null),
    };
  }
}

class FakeBrowser {
  /** Databases by name, and their stores by name. */
  readonly #databases = new Map<string, Map<string, Records>>();
  readonly #held = new Set<string>();
  readonly connections: { onclose?: () => void; onversionchange?: () => void; isClosed: boolean }[] = [];
  /** Each is the error of the next opening, or of the next transaction that changes something. */
  readonly refusedOpenings: unknown[] = [];
  readonly refusedChanges: unknown[] = [];

  readonly indexedDB = {
    open: (name: string): Request => {
      const request: Request = {};
      later(() => {
        const refusal = this.refusedOpenings.shift();
        if (refusal !== undefined) {
          request.error = refusal;
          return request.onerror?.();
        }
        const stores = this.#databases.get(name) ?? new Map<string, Records>();
        request.result = this.#connection(stores);
        if (!this.#databases.has(name)) request.onupgradeneeded?.();
        this.#databases.set(name, stores);
        request.onsuccess?.();
      });
      return request;
    },
  };

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
      if (this.#held.has(name)) return void (await use(null));
      this.#held.add(name);
      await Promise.resolve(use({ name })).finally(() => this.#held.delete(name));
    },
    query: async () => ({ held: [...this.#held].map((name) => ({ name })) }),
  };

  #connection(stores: Map<string, Records>) {
    const connection = {
      isClosed: false,
      createObjectStore: (name: string) => void stores.set(name, []),
      close: () => {
        connection.isClosed = true;
      },
      transaction: (name: string, mode: string) => {
        if (connection.isClosed) throw new DOMException('the connection is closed', 'InvalidStateError');
        const transaction = new Transaction(stores.get(name) as Records);
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
