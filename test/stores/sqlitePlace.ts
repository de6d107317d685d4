/**
 * Databases for tests of the SQLite store. Invariant: every test has its own directory, which is removed afterwards. The
 * store is bundled from the real source once for each test file, since its thread is a file of its own, and starts much
 * faster as JavaScript.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { SqliteStore, SqliteStoreOptions } from '../../src/stores/sqlite/sqliteStore.ts';

export const hasSqlite: boolean = isBuiltin('node:sqlite');

export type SqliteModule = typeof import('../../src/stores/sqlite/sqliteStore.ts');

export interface SqlitePlace {
  path: string;
  store: SqliteStore;
  /** Another store of the same file. */
  again(options?: SqliteStoreOptions): SqliteStore;
}

const sourceOf = (name: string): string => fileURLToPath(new URL(`../../src/stores/sqlite/${name}`, import.meta.url));

/** Bundles the store and its thread into the folder, and returns the file to import. */
export async function bundleSqlite(folder: string): Promise<string> {
  const entryPoints = ['sqliteStore.ts', 'databaseWorker.ts'].map(sourceOf);
  await build({ entryPoints, bundle: true, platform: 'node', format: 'esm', outdir: folder, logLevel: 'error' });
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  return join(folder, 'sqliteStore.js');
}

/** For the top of a test file. `file`: the bundle, for other processes. */
export function sqlitePlaces(): { place(options?: SqliteStoreOptions): Promise<SqlitePlace>; file(): string } {
  let folder = '';
  let file = '';
  let sqlite: SqliteModule | undefined;
  beforeAll(async () => {
    if (!hasSqlite) return;
    folder = await mkdtemp(join(tmpdir(), 'runchart-sqlite-'));
    file = await bundleSqlite(folder);
    sqlite = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as SqliteModule;
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const place = async (options: SqliteStoreOptions = {}): Promise<SqlitePlace> => {
    const directory = await mkdtemp(join(tmpdir(), 'runchart-sqlite-'));
    const path = join(directory, 'conversations.db');
    const stores: SqliteStore[] = [];
    const again = (more: SqliteStoreOptions = options): SqliteStore => {
      if (!sqlite) throw new Error('this Node has no node:sqlite');
      const store = sqlite.sqliteStore(path, more);
      stores.push(store);
      return store;
    };
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()));
      await rm(directory, { recursive: true, force: true });
    });
    return { path, store: again(), again };
  };
  return { place, file: () => file };
}
