/**
 * PostgreSQL inside the test process, with the members of a pool of `pg`. Invariant: there is one database for each worker, which takes
 * seconds to start. Statements take turns, and those of a transaction follow one another, as on a connection of their own.
 */
import { PGlite } from '@electric-sql/pglite';
import type { PostgresPool } from '../../src/stores/postgres/postgresStore.ts';

type Notified = (message: { channel: string; payload: string }) => void;
type Answer = { rows: Record<string, unknown>[] };

let starting: Promise<PGlite> | undefined;
/** The database of this worker. */
export const pglite = (): Promise<PGlite> => {
  starting ??= PGlite.create();
  return starting;
};

/** Receives a statement before the database does. It may answer in place of the database. */
export type Intercept = (text: string, send: () => Promise<Answer>) => Promise<Answer>;

class Turns {
  #last: Promise<unknown> = Promise.resolve();
  /** Resolves with the function that ends the turn. */
  async begin(): Promise<() => void> {
    const before = this.#last;
    let end = (): void => {};
    this.#last = new Promise<void>((resolve) => {
      end = resolve;
    });
    await before;
    return end;
  }
}
const turns = new Turns();

class PGliteConnection {
  readonly #intercept: Intercept;
  readonly #notified = new Set<Notified>();
  readonly #stops: (() => void)[] = [];
  #endTransaction: (() => void) | undefined;

  constructor(intercept: Intercept) {
    this.#intercept = intercept;
  }

  readonly query = (text: string, values: unknown[] = []): Promise<Answer> =>
    this.#intercept(text, () => this.#send(text, values));

  on(event: string, listener: Notified): void {
    if (event === 'notification') this.#notified.add(listener);
  }

  off(event: string, listener: Notified): void {
    if (event === 'notification') this.#notified.delete(listener);
  }

  release(): void {
    for (const stop of this.#stops.splice(0)) stop();
    if (this.#endTransaction) void this.query('rollback');
  }

  async #send(text: string, values: unknown[]): Promise<Answer> {
    const database = await pglite();
    const [, channel] = /^listen "(\w+)"$/.exec(text) ?? [];
    const endTurn = this.#endTransaction ?? (await turns.begin());
    if (text === 'begin') this.#endTransaction = endTurn;
    try {
      if (channel === undefined)
        return { rows: (await database.query(text, values)).rows as Record<string, unknown>[] };
      const stop = await database.listen(channel, (payload) => {
        for (const listener of this.#notified) listener({ channel, payload });
      });
      this.#stops.push(() => void stop().catch(() => {}));
      return { rows: [] };
    } finally {
      if (text === 'commit' || text === 'rollback') this.#endTransaction = undefined;
      if (this.#endTransaction === undefined) endTurn();
    }
  }
}

/** `intercept` receives each statement before the database, to lose connections and answers. */
export function pglitePool(intercept: Intercept = (_, send) => send()): PostgresPool {
  const connect = async (): Promise<PGliteConnection> => new PGliteConnection(intercept);
  return {
    connect,
    query: async (text, values) => (await connect()).query(text, values),
  };
}

/** Removes the contents of a schema's stores. */
export async function emptySchema(schema: string): Promise<void> {
  const tables = ['conversations', 'entries', 'blobs', 'acts'].map((table) => `"${schema}".${table}`);
  const pool = pglitePool();
  await Promise.all(tables.map((table) => pool.query(`delete from ${table}`)));
}
