/** Tables of PostgreSQL for contents that are too large for an engine, and for the list of conversations. */
import { ConfigurationError, RunchartError } from '../errors.ts';
import { checkOptionsOf, object } from '../validation.ts';
import { ofName, placeOf } from './blobStore.ts';
import { type ListingStore, lastOfList, listTables, rowsIn } from './listedRows.ts';

/** A pool of `pg`, or an object with its `query`. */
export interface BlobPool {
  /** Sends a statement with its values and returns the rows. */
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

/** The options of `blobTable`. */
export interface BlobTableOptions {
  /** The schema of the tables, which is made if it does not exist. Default: `runchart_contents`. */
  schema?: string;
}

const optionsValidator = object({
  schema: {
    expected: '1 to 40 small letters, digits and underscores',
    test: (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,39}$/.test(value) && !value.startsWith('pg_'),
  },
});

/** If two processes make the same schema or table at once, the second one fails with one of these codes, and finds it made. */
const MADE_MEANWHILE: ReadonlySet<unknown> = new Set(['23505', '42710', '42P06', '42P07']);

/**
 * Keeps contents in a table of PostgreSQL, over a pool of `pg`, and the list of conversations in another one. The tables are made at the
 * first use. Throws ConfigurationError for a pool without `query`, and for an invalid schema.
 */
export function blobTable(pool: BlobPool, options: BlobTableOptions = {}): ListingStore {
  if (typeof (pool as Partial<BlobPool> | undefined)?.query !== 'function')
    throw new ConfigurationError('blobTable() needs a pool of pg: an object with the function query');
  checkOptionsOf('blobTable', options, optionsValidator);
  const schema = `"${options.schema ?? 'runchart_contents'}"`;
  const table = `${schema}.contents`;
  let making: Promise<void> | undefined;

  const ready = (): Promise<void> => {
    making ??= makeTables(pool, schema);
    // The next use tries again.
    making.catch(() => {
      making = undefined;
    });
    return making;
  };
  const query = async (text: string, values: unknown[]): Promise<Record<string, unknown>[]> => {
    await ready();
    return (await pool.query(text, values)).rows;
  };
  return {
    ...rowsIn(schema, query),
    async put(id, name, bytes) {
      const statement = `insert into ${table} (conversation, name, bytes) values ($1, $2, $3) on conflict do nothing`;
      await query(statement, [placeOf(id), name, bytes]);
    },
    async get(id, name) {
      const statement = `select bytes from ${table} where conversation = $1 and name = $2`;
      const [row] = await query(statement, [placeOf(id), name]);
      if (!(row?.bytes instanceof Uint8Array))
        throw new RunchartError('store', `the table ${table} has no contents ${name} of conversation "${id}"`);
      return ofName(name, row.bytes);
    },
    async delete(id) {
      await query(`delete from ${table} where conversation = $1`, [placeOf(id)]);
    },
  };
}

async function makeTables(pool: BlobPool, schema: string): Promise<void> {
  // Where the tables exist, the right to make tables is not needed.
  const found = await pool.query('select to_regclass($1::text) is not null as made', [lastOfList(schema)]);
  if (found.rows[0]?.made === true) return;
  const contents = `create table if not exists ${schema}.contents
    (conversation text, name text, bytes bytea not null, primary key (conversation, name))`;
  for (const statement of [`create schema if not exists ${schema}`, contents, ...listTables(schema)]) {
    try {
      await pool.query(statement, []);
    } catch (error) {
      if (!MADE_MEANWHILE.has((error as { code?: unknown } | null)?.code)) throw error;
    }
  }
}
