/** Cases of the store suite about where bytes belong: to their conversation, as long as it is there. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import { bytesOf, PNG, withBlobs } from './blobCase.ts';
import { all, notice, refused, type StoreCase, stamped, stored } from './storeCase.ts';

export const blobPlaceCases: readonly StoreCase[] = [
  [
    'blobs are no entries: they take no seq and are not read',
    (store) =>
      withBlobs(store, async ({ put, handle }) => {
        await put(bytesOf(1));
        await handle.append([notice('c', 0)], 0);
        await put(bytesOf(2));
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), [notice('c', 0), notice('c', 1)]);
      }),
  ],
  [
    'a reference in an entry leads to its bytes after the log was opened again',
    async (store) => {
      await withBlobs(store, async ({ put, handle }) => {
        const content = [{ type: 'image', mediaType: PNG, data: await put(bytesOf(4, 5)) } as const];
        await handle.append([stamped('c', 0, { type: 'user-message', messageId: 'm', kind: 'direct', content })], 0);
      });
      await withBlobs(store, async ({ get, handle }) => {
        const [entry] = await all(handle);
        const [part] = entry?.type === 'user-message' ? entry.content : [];
        assert.deepEqual([...(await get(part?.type === 'image' ? part.data : ''))], [4, 5]);
      });
    },
  ],
  [
    'the blobs of one conversation are not found in another',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put }) => {
        reference = await put(bytesOf(1, 2, 3));
      });
      await withBlobs(store, ({ get }) => refused('store', () => get(reference)), 'other');
    },
  ],
  [
    'a conversation of blobs alone is not listed, and keeps them',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put }) => {
        reference = await put(bytesOf(7));
      });
      assert.deepEqual(await store.list(), []);
      await withBlobs(store, async ({ get }) => assert.deepEqual([...(await get(reference))], [7]));
    },
  ],
  [
    'closing waits for the blobs asked for',
    async (store) => {
      const handle = await store.open('c');
      let reference: string | undefined;
      const put = async () => {
        reference = await handle.putBlob?.(bytesOf(1, 2), PNG);
      };
      const close = async () => {
        await handle.close();
        return reference;
      };
      const [, found] = await Promise.all([put(), close()]);
      if (handle.putBlob === undefined) return;
      assert.ok(found, 'the blob was put when the handle was closed');
      await withBlobs(store, async ({ get }) => assert.deepEqual([...(await get(found))], [1, 2]));
    },
  ],
  [
    'a conversation that is deleted takes its blobs along',
    async (store) => {
      let reference = '';
      await withBlobs(store, async ({ put, handle }) => {
        reference = await put(bytesOf(1));
        await handle.append([notice('c', 0)], 0);
      });
      await store.delete('c');
      await withBlobs(store, ({ get }) => refused('store', () => get(reference)));
      assert.deepEqual(await stored(store, 'c'), []);
    },
  ],
  [
    'a closed handle neither puts nor gets',
    async (store) => {
      const handle = await store.open('c');
      const reference = await handle.putBlob?.(bytesOf(1), PNG);
      await handle.close();
      if (reference === undefined) return;
      await refused('closed', () => handle.putBlob?.(bytesOf(1), PNG));
      await refused('closed', () => handle.getBlob?.(reference));
    },
  ],
];
