/** A table of PostgreSQL for contents that are too large for an engine. */
import { ConfigurationError, RunchartError } from '../errors.ts';
import { checkOptionsOf, object } from '../validation.ts';
import { type BlobStore, ofName, placeOf } from './blobStore.ts';

/** A pool of `pg`, or what has its `query`. */
export interface BlobPool {
  /** Sends a statement with its values and returns the rows. */
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** The options of `blobTable`. */
export interface BlobTableOptions {
  /** The schema of the table, which is made if it does not exist. Default: `runchart_contents`. */
  schema?: string;
}

const optionsValidator = object({
  schema: {
    expected: '1 to 40 small letters, digits and underscores',
    test: (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(value) && !value.startsWith('pg_'),
  },
});

/** Two processes that make the same table at once: the second one fails with one of these, and finds the table. */
const MADE_MEANWHILE: ReadonlySet<unknown> = new Set(['23505', '42P06', '42P07']);

/**
 * Keeps contents in a table of PostgreSQL, over a pool of `pg`. The table is made at the first use. Throws ConfigurationError for a pool
 * without `query`, and for an invalid schema.
 */
export function blobTable(pool: BlobPool, options: BlobTableOptions = {}): BlobStore {
  if (typeof (pool as Partial<BlobPool> | undefined)?.query !== 'function')
    throw new ConfigurationError('blobTable() needs a pool of pg: an object with the function query');
  checkOptionsOf('blobTable', options, optionsValidator);
  const schema = `"${options.schema ?? 'runchart_contents'}"`;
  const table = `${schema}.contents`;
  let making: Promise<void> | undefined;

  async function make(statement: string): Promise<void> {
    try {
      await pool.query(statement, []);
    } catch (error) {
      if (!MADE_MEANWHILE.has((error as { code?: unknown } | null)?.code)) throw error;
    }
  }
  const ready = (): Promise<void> => {
    making ??= (async () => {
      await make(`create schema if not exists ${schema}`);
      await make(
        `create table if not exists ${table} (conversation text, name text, bytes bytea not null, primary key (conversation, name))`,
      );
    })();
    // The next use tries again.
    making.catch(() => {
      making = undefined;
    });
    return making;
  };
  return {
    async put(id, name, bytes) {
      await ready();
      const statement = `insert into ${table} (conversation, name, bytes) values ($1, $2, $3) on conflict do nothing`;
      await pool.query(statement, [placeOf(id), name, bytes]);
    },
    async get(id, name) {
      await ready();
      const statement = `select bytes from ${table} where conversation = $1 and name = $2`;
      const [row] = (await pool.query(statement, [placeOf(id), name])).rows;
      if (!(row?.bytes instanceof Uint8Array))
        throw new RunchartError('store', `the table ${table} has no contents ${name} of conversation "${id}"`);
      return ofName(name, row.bytes);
    },
    async delete(id) {
      await ready();
      await pool.query(`delete from ${table} where conversation = $1`, [placeOf(id)]);
    },
  };
}
