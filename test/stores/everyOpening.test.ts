/** Every combination of the options of `open` and `list`, in the stores of one process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { SqliteStore } from '../../src/stores/sqlite/sqliteStore.ts';
import { everyListing, everyOpening } from './openingsByHand.ts';
import { hasSqlite, type SqliteModule, sqlitePlaces } from './sqlitePlace.ts';

const directories: string[] = [];
afterAll(() => Promise.all(directories.map((path) => rm(path, { recursive: true, force: true }))));
async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'runchart-every-'));
  directories.push(path);
  return path;
}

const inMemory = async () => {
  const store = memoryStore();
  return { store, other: store };
};
everyListing('a store in memory', inMemory);
everyOpening('memory', inMemory);

const inFiles = async () => {
  const path = await directory();
  return { store: jsonlStore(path), other: jsonlStore(path) };
};
everyListing('a store in files', inFiles);
everyOpening('files', inFiles);

describe.runIf(hasSqlite)('in one file', () => {
  const { file } = sqlitePlaces();
  const stores: SqliteStore[] = [];
  const inSqlite = async () => {
    const { sqliteStore } = (await import(/* @vite-ignore */ pathToFileURL(file()).href)) as SqliteModule;
    const path = join(await directory(), 'conversations.db');
    const [store, other] = [sqliteStore(path), sqliteStore(path)];
    stores.push(store, other);
    return { store, other };
  };
  afterAll(() => Promise.all(stores.map((store) => store.close())));
  everyListing('a store in SQLite', inSqlite);
  everyOpening('SQLite', inSqlite);
});
