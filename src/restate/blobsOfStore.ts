/**
 * The blobs of a store of conversations, for contents that are too large for an engine. Invariant: nothing but blobs is written there, so
 * the store lists no conversation. A conversation of the store is open for one step at a time, and other openers wait.
 */
import { RunchartError } from '../errors.ts';
import { blobReference } from '../stores/blobReference.ts';
import type { LogHandle, LogStore } from '../stores/logStore.ts';
import { originOf } from '../stores/postgres/database.ts';
import { hasMethods } from '../validation.ts';
import { type BlobStore, MEDIA_TYPE, placeOf } from './blobStore.ts';
import { blobTable } from './blobTable.ts';

const WAIT_MS = { first: 5, most: 200, all: 10_000 };

const isBusy = (error: unknown): boolean => RunchartError.isRunchartError(error) && error.code === 'session_busy';

type BlobHandle = LogHandle & Required<Pick<LogHandle, 'putBlob' | 'getBlob'>>;

/** Rejects with `session_busy` if the place is open elsewhere for 10 s. */
async function opened(store: LogStore, id: string): Promise<LogHandle> {
  const until = performance.now() + WAIT_MS.all;
  for (let wait = WAIT_MS.first; ; wait = Math.min(2 * wait, WAIT_MS.most)) {
    try {
      return await store.open(placeOf(id));
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function blobsOfStore(store: LogStore): BlobStore {
  /** Those of this process take turns. */
  const turns = new Map<string, Promise<unknown>>();

  async function during<T>(id: string, act: (handle: BlobHandle) => Promise<T>): Promise<T> {
    const handle = await opened(store, id);
    try {
      if (!handle.putBlob || !handle.getBlob) throw new RunchartError('store', 'the store keeps no blobs');
      return await act(handle as BlobHandle);
    } finally {
      await handle.close();
    }
  }

  function inTurn<T>(id: string, act: () => Promise<T>): Promise<T> {
    const turn = (turns.get(id) ?? Promise.resolve()).then(act);
    const over = turn.catch(() => undefined);
    turns.set(id, over);
    void over.then(() => {
      if (turns.get(id) === over) turns.delete(id);
    });
    return turn;
  }

  return {
    async put(id, _, bytes) {
      await inTurn(id, () => during(id, (handle) => handle.putBlob(bytes, MEDIA_TYPE)));
    },
    get: (id, name) => inTurn(id, () => during(id, (handle) => handle.getBlob(blobReference(name, MEDIA_TYPE)))),
    async delete(id) {
      await inTurn(id, async () => store.delete?.(placeOf(id)));
    },
  };
}

export const storeValidator = {
  expected: 'a blob store with put, get and delete, or a store of conversations',
  test: (value: unknown) => hasMethods(value, 'put', 'get', 'delete') || hasMethods(value, 'open', 'list'),
};

/** The blob store that an option names. A `postgresStore` is used through its pool, and then also keeps the list. */
export function blobStoreOf(store: BlobStore | LogStore | undefined): BlobStore | undefined {
  if (!store || !('open' in store)) return store;
  const origin = originOf(store);
  return origin ? blobTable(origin.pool, { schema: origin.schema }) : blobsOfStore(store);
}
