/**
 * `node:sqlite`, and a database of logs opened with it. Invariant: a file that is not such a database is refused and not
 * changed. `@types/node` of the oldest supported Node has no types of `node:sqlite`.
 */
import { CorruptLogError, RunchartError } from '../../errors.ts';

export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = { readonly [column: string]: unknown };

export interface Statement {
  get(...values: SqlValue[]): SqlRow | undefined;
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>;
  run(...values: SqlValue[]): { lastInsertRowid: number | bigint };
}

export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

interface NodeSqlite {
  DatabaseSync: new (path: string) => Database;
}

/** "runc" in ASCII. */
const APPLICATION_ID = 0x72756e63;
const VERSION = 1;
/** The time that a writer waits for one of another process. */
const BUSY_MS = 10_000;

/**
 * `place` is the id as UTF-16, big-endian: it keeps any text apart, and sorts as a list does. `row` is JSON; the columns
 * before it are copies of its fields, for indexes.
 */
const SCHEMA = `
  CREATE TABLE conversations (
    log INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    place BLOB NOT NULL UNIQUE,
    length INTEGER NOT NULL DEFAULT 0,
    listed INTEGER NOT NULL DEFAULT 0,
    updated_at REAL,
    owner TEXT,
    cycle TEXT,
    row TEXT,
    token TEXT,
    holder TEXT
  ) STRICT;
  CREATE INDEX listed_rows ON conversations (updated_at DESC, place) WHERE listed = 1;
  CREATE INDEX owned_rows ON conversations (owner, updated_at DESC, place) WHERE listed = 1;
  CREATE TABLE entries (
    log INTEGER NOT NULL, seq INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (log, seq)
  ) STRICT;
  CREATE TABLE blobs (
    log INTEGER NOT NULL, hash TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (log, hash)
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${VERSION};
`;

/** Opens or creates it. `synchronous`: FULL syncs each commit. Throws CorruptLogError, and RunchartError `store`. */
export function openDatabase(path: string, synchronous: 'FULL' | 'NORMAL'): Database {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite') as NodeSqlite;
  let database: Database | undefined;
  try {
    database = new DatabaseSync(path);
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const isNew = isEmpty(database, path);
    database.exec('PRAGMA journal_mode = WAL');
    database.exec(`PRAGMA synchronous = ${synchronous}`);
    if (isNew) create(database, path);
    return database;
  } catch (cause) {
    database?.close();
    throw databaseError(`cannot open the database ${path}`, cause);
  }
}

function create(database: Database, path: string): void {
  database.exec('BEGIN IMMEDIATE');
  // Another process may have created the tables in the meantime.
  if (isEmpty(database, path)) database.exec(SCHEMA);
  database.exec('COMMIT');
}

/** False for a database of logs. Throws CorruptLogError for another one. */
function isEmpty(database: Database, path: string): boolean {
  const numberOf = (sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0];
  const application = numberOf('PRAGMA application_id');
  const version = numberOf('PRAGMA user_version');
  if (application === 0 && version === 0 && numberOf('SELECT count(*) FROM sqlite_schema') === 0) return true;
  if (application !== APPLICATION_ID)
    throw new CorruptLogError(
      'no_header',
      `expected a database of runchart at ${path}, it is another one: use a new path`,
    );
  if (version === VERSION) return false;
  throw new CorruptLogError(
    'version',
    `expected version ${VERSION} of the database ${path}, got ${version}: use a newer runchart`,
  );
}

const NOT_A_DATABASE = 26;
const CORRUPT = 11;

/** An error of SQLite as one of the library. */
export function databaseError(what: string, cause: unknown): RunchartError {
  if (RunchartError.isRunchartError(cause)) return cause;
  const { message, errcode = 0 } = cause as { message?: string; errcode?: number };
  // The lower byte is the kind, the upper ones say more.
  const kind = errcode & 0xff;
  if (kind === NOT_A_DATABASE) return new CorruptLogError('no_header', `${what}: it is no SQLite database`);
  if (kind === CORRUPT) return new CorruptLogError('corrupt', `${what}: ${message}`);
  return new RunchartError('store', `${what}: ${message ?? String(cause)}`, { cause });
}
