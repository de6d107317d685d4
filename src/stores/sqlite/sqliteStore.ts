/**
 * `runchart/sqlite`: a store in one SQLite file, by `node:sqlite`. Invariant: importing it needs no SQLite; making a store
 * does. The file is created when the first conversation is opened.
 */
import { isBuiltin } from 'node:module';
import { resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { display } from '../entryJson.ts';
import { type Durability, type LogStore, noConversation, withLookup } from '../logStore.ts';
import { placeOf } from '../rowTable.ts';
import { DatabaseThread } from './databaseThread.ts';
import { SqliteHandle } from './sqliteHandle.ts';

/** The options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /** An append resolves after the write (`process`, the default) or after the disk has it (`power`). */
  durability?: Durability;
}

/** A store of conversations in one SQLite file. */
export interface SqliteStore extends LogStore {
  /** Closes the open conversations and the file, and ends the thread of the store. It can be called again. */
  close(): Promise<void>;
}

/** All conversations are in the file at `path`. Throws ConfigurationError before Node 22.13, and for an invalid option. */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  const durability = durabilityIn(path, options);
  if (!isBuiltin('node:sqlite')) {
    throw new ConfigurationError(
      `sqliteStore needs node:sqlite, which Node has from 22.13 on; this is Node ${process.versions.node}: use a newer one, or jsonlStore of runchart/node`,
    );
  }
  const thread = new DatabaseThread(resolve(path), durability);
  const handles = new Set<SqliteHandle>();
  const openings = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  const store: SqliteStore = {
    async open(id, { existing = false, owner } = {}) {
      // A log that is opened after this point would never be released.
      if (closing) throw thread.closedError();
      if (existing && !thread.exists) throw noConversation();
      const opening = (async () => {
        const opened = await thread.request('open', { id, existing, owner });
        try {
          const handle = await SqliteHandle.of(thread, opened, (closed) => handles.delete(closed));
          handles.add(handle);
          return handle;
        } catch (error) {
          // The error of the log is thrown, even if the release fails too.
          await thread.request('release', opened).catch(() => {});
          throw error;
        }
      })();
      openings.add(opening);
      return opening.finally(() => openings.delete(opening));
    },
    async list(listing = {}) {
      // Without a database nothing else would refuse a wrong cursor.
      if (listing.cursor !== undefined) placeOf(listing.cursor);
      return thread.exists ? thread.request('list', listing) : [];
    },
    async delete(id) {
      if (thread.exists) await thread.request('remove', { id });
    },
    close() {
      closing ??= (async () => {
        await Promise.allSettled(openings);
        await Promise.allSettled([...handles].map((handle) => handle.close()));
        await thread.close();
      })();
      return closing;
    },
  };
  return withLookup(store, async (id, owner) => thread.exists && thread.request('lookup', { id, owner }));
}

function durabilityIn(path: string, options: SqliteStoreOptions): Durability {
  if (typeof path !== 'string' || path === '' || path === ':memory:') {
    throw new ConfigurationError(
      `sqliteStore expects the path of a file, got ${display(path)}; memoryStore() of runchart keeps logs in memory`,
    );
  }
  const stray = Object.keys(options).find((key) => key !== 'durability');
  if (stray !== undefined) throw new ConfigurationError(`sqliteStore knows no option "${stray}", only durability`);
  const { durability = 'process' } = options;
  if (durability === 'process' || durability === 'power') return durability;
  throw new ConfigurationError(`durability is 'process' or 'power', got ${display(durability)}`);
}
