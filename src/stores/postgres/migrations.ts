/**
 * The tables of the store, made step by step. Invariant: a step that was published never changes; a change is a further step. Steps
 * run in one transaction under an advisory lock, so that processes which start together make the tables once.
 */
import { ConfigurationError, RunchartError } from '../../errors.ts';
import { type Database, storeError } from './database.ts';

/** Names of at most this length leave room for suffixes. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,39}$/;

/** The quoted name. Throws ConfigurationError for a name that would need more than quotes. */
export function quotedSchema(schema: unknown): string {
  if (typeof schema === 'string' && SCHEMA.test(schema) && !schema.startsWith('pg_')) return `"${schema}"`;
  throw new ConfigurationError(
    `schema takes 1 to 40 small letters, digits and underscores, not ${JSON.stringify(schema)?.slice(0, 60)}`,
  );
}

/** The statements of each version. `$s` is the quoted schema. */
const STEPS: readonly (readonly string[])[] = [
  [
    // Each number names one holder of one conversation. A process takes a hundred at a time.
    'create sequence $s.epochs increment by 100',
    // `place` is the id as UTF-16, the order of JavaScript. `summary` is the row in lists, as JSON.
    `create table $s.conversations (
      id text collate "C" primary key,
      place bytea not null,
      epoch bigint not null,
      lease_until timestamptz not null,
      length integer not null default 0,
      summary text,
      updated_at double precision,
      owner text collate "C",
      parent text collate "C",
      cycle text
    )`,
    `create index conversations_listed on $s.conversations (updated_at desc, place)
      where length > 0 and parent is null`,
    `create index conversations_owned on $s.conversations (owner, updated_at desc, place)
      where length > 0 and parent is null and owner is not null`,
    'create index conversations_children on $s.conversations (parent) where parent is not null',
    // JSON as text: jsonb takes neither NUL nor lone surrogates, and changes the order of keys.
    `create table $s.entries (
      conversation text collate "C" not null,
      seq integer not null,
      epoch bigint not null,
      entry text not null,
      primary key (conversation, seq)
    )`,
    `create table $s.blobs (
      conversation text collate "C" not null,
      sha256 text collate "C" not null,
      bytes bytea not null,
      primary key (conversation, sha256)
    )`,
    // Requests of other processes to the holder. `claimed`: the epoch of the holder that has begun with it.
    `create table $s.acts (
      act_id text collate "C" primary key,
      place bigint generated always as identity,
      conversation text collate "C" not null,
      act text not null,
      expires_at timestamptz not null,
      claimed bigint,
      answer text
    )`,
    'create index acts_open on $s.acts (conversation, place) where answer is null',
    'create index acts_expired on $s.acts (expires_at)',
  ],
];

const NO_SUCH_TABLE = '42P01';

async function versionIn(database: Database, schema: string): Promise<number> {
  try {
    const [row] = await database.repeat(`select max(version) as version from ${schema}.versions`);
    return Number(row?.version ?? 0);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === NO_SUCH_TABLE) return 0;
    throw error;
  }
}

function refuseNewer(version: number, schema: string): void {
  if (version <= STEPS.length) return;
  throw new RunchartError(
    'store',
    `the schema ${schema} has version ${version}, this runchart knows ${STEPS.length}: update runchart`,
  );
}

/** Makes the tables, or adds the missing ones. Rejects with RunchartError `store`. */
export async function migrate(database: Database, schema: string): Promise<void> {
  try {
    const found = await versionIn(database, schema);
    refuseNewer(found, schema);
    if (found === STEPS.length) return;
    await database.transaction(async (connection) => {
      const query: typeof connection.query = (text, values) => connection.query(text, values);
      await query('select pg_advisory_xact_lock(hashtext($1::text))', [`runchart ${schema}`]);
      const name = schema.slice(1, -1);
      const { rows } = await query('select 1 from pg_namespace where nspname = $1', [name]);
      // Without the right to create schemas, `if not exists` would be refused too.
      if (rows.length === 0) await query(`create schema ${schema}`);
      await query(
        `create table if not exists ${schema}.versions (version integer primary key, made_at timestamptz not null)`,
      );
      const [last] = (await query(`select max(version) as version from ${schema}.versions`)).rows;
      const version = Number(last?.version ?? 0);
      refuseNewer(version, schema);
      for (const [index, step] of STEPS.entries()) {
        if (index < version) continue;
        for (const statement of step) await query(statement.replaceAll('$s', schema));
        await query(`insert into ${schema}.versions values ($1::integer, clock_timestamp())`, [index + 1]);
      }
    });
  } catch (error) {
    throw storeError(`the tables of the schema ${schema} cannot be made`, error);
  }
}
