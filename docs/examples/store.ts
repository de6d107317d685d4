/** A store of one's own, over what most databases have: rows by key, and a transaction. It passes the suite of stores. */
// #region table
import type { LogEntry, LogHandle, LogStore } from 'runchart';
import { memoryStore, RunchartError, SessionBusyError, StoreConflictError } from 'runchart';
import { logStoreSuite } from 'runchart/testing';

/** Stands for your database: texts by key. Every call takes a turn of the event loop. */
class Table {
  readonly #rows = new Map<string, string>();
  async rows(prefix: string): Promise<[key: string, text: string][]> {
    await new Promise((resolve) => setImmediate(resolve));
    return [...this.#rows].filter(([key]) => key.startsWith(prefix));
  }
  /** One transaction. Makes all changes (null deletes) if the row `key` has the value `expected`; else none, and returns false. */
  async change(key: string, expected: string | undefined, changes: readonly (readonly [string, string | null])[]) {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#rows.get(key) !== expected) return false;
    for (const [at, text] of changes) text === null ? this.#rows.delete(at) : this.#rows.set(at, text);
    return true;
  }
}
// #endregion

// #region lease
const leaseOf = (id: string) => JSON.stringify([id, 'lease']);
const entriesOf = (id: string) => JSON.stringify([id, 'entry']).replace(/\]$/, ',');

/** The lease of a conversation is one row. A holder changes entries only under the condition that the row has its token. */
async function acquireLease(table: Table, id: string): Promise<string> {
  const token = crypto.randomUUID();
  if (await table.change(leaseOf(id), undefined, [[leaseOf(id), token]])) return token;
  throw new SessionBusyError(`conversation "${id}" is open: close it there first`);
}
// #endregion

// #region handle
async function open(table: Table, id: string): Promise<LogHandle> {
  const token = await acquireLease(table, id);
  let next = (await table.rows(entriesOf(id))).length;
  let tail: Promise<unknown> = Promise.resolve();
  let closing: Promise<void> | undefined;
  const mustBeOpen = () => {
    if (closing) throw new RunchartError('closed', `the log of conversation "${id}" is closed: open it again`);
  };
  return {
    async *read(from = 0) {
      mustBeOpen();
      for (const [, text] of await table.rows(entriesOf(id))) {
        const entry = JSON.parse(text) as LogEntry;
        if (entry.seq >= from) yield entry;
      }
    },
    async append(entries, expectedSeq) {
      mustBeOpen();
      // Written out at once, so later changes of the caller have no effect.
      const rows = entries.map((entry) => [JSON.stringify([id, 'entry', entry.seq]), JSON.stringify(entry)] as const);
      const ordered = entries.every(({ seq }, index) => seq === expectedSeq + index);
      const done = tail.then(async () => {
        const fits = ordered && expectedSeq === next;
        if (!fits || !(await table.change(leaseOf(id), token, rows))) {
          throw new StoreConflictError(
            `conversation "${id}" continues at ${next}, or has another holder: open it again`,
          );
        }
        next += rows.length;
      });
      tail = done.catch(() => undefined);
      return done;
    },
    close() {
      closing ??= tail.then(async () => void (await table.change(leaseOf(id), token, [[leaseOf(id), null]])));
      return closing;
    },
  };
}
// #endregion

// #region store
export function tableStore(table = new Table()): LogStore {
  const entries = async (id: string) =>
    (await table.rows(entriesOf(id))).map(([, text]) => JSON.parse(text) as LogEntry);
  return {
    async open(id, { existing, owner } = {}) {
      const [first] = await entries(id);
      const isOthers = owner !== undefined && first?.type === 'conversation' && first.owner !== owner;
      if ((existing && !first) || isOthers) throw new RunchartError('not_found', 'there is no such conversation');
      return open(table, id);
    },
    async list(options) {
      const held = new Set<string>();
      const logs = new Map<string, LogEntry[]>();
      for (const [key, text] of await table.rows('')) {
        const [id, kind] = JSON.parse(key) as [string, string];
        if (kind === 'lease') held.add(id);
        else logs.set(id, [...(logs.get(id) ?? []), JSON.parse(text)]);
      }
      // A store in memory with the same logs returns the same list, with filters and pages.
      const memory = memoryStore();
      for (const [id, entries] of logs) {
        const handle = await memory.open(id);
        await handle.append(entries, 0);
        if (!held.has(id)) await handle.close();
      }
      return memory.list(options);
    },
    async delete(id) {
      const family = new Set([id]);
      for (const parent of family) {
        for (const entry of await entries(parent)) {
          const [first] = entry.type === 'sub-agent' ? await entries(entry.child) : [];
          // A log may name conversations that are not its sub-agents.
          if (first?.type === 'conversation' && first.parent?.conversationId === parent)
            family.add(first.conversationId);
        }
      }
      const leases: [id: string, token: string][] = [];
      try {
        for (const each of family) leases.push([each, await acquireLease(table, each)]);
      } catch (error) {
        for (const [each, token] of leases) await table.change(leaseOf(each), token, [[leaseOf(each), null]]);
        throw error;
      }
      for (const [each, token] of leases.reverse()) {
        const keys = [...(await table.rows(entriesOf(each))).map(([key]) => key), leaseOf(each)];
        const gone = keys.map((key) => [key, null] as const);
        await table.change(leaseOf(each), token, gone);
      }
    },
  };
}
// #endregion

// #region suite
const failed: string[] = [];
let cases = Promise.resolve();
logStoreSuite(async () => tableStore(), {
  describe: (_, body) => body(),
  test(name, body) {
    cases = cases.then(body).catch((error) => void failed.push(`${name}: ${error}`));
  },
});
await cases;
console.log(failed.length === 0 ? 'every case holds' : failed.join('\n'));
// #endregion
