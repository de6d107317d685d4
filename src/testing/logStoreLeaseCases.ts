/** Cases of the store suite about who holds a log, and for how long. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import { all, notice, notices, opened, refused, type StoreCase, stored, write } from './storeCase.ts';

export const leaseCases: readonly StoreCase[] = [
  [
    'a second open of a conversation is busy while a handle lives, and works after it is closed',
    async (store) => {
      const handle = await store.open('c');
      await refused('session_busy', () => store.open('c'));
      await handle.close();
      await (await store.open('c')).close();
    },
  ],
  [
    'of several opens at once exactly one succeeds',
    async (store) => {
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => store.open('c')));
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1);
      for (const result of results) {
        if (result.status === 'rejected') await refused('session_busy', () => Promise.reject(result.reason));
        else await result.value.close();
      }
    },
  ],
  [
    'a log outlives its handles, reopened after every append',
    async (store) => {
      for (let seq = 0; seq < 12; seq += 1) {
        await opened(store, 'c', (handle) => handle.append([notice('c', seq)], seq));
        assert.deepEqual(await stored(store, 'c'), notices('c', 0, seq + 1));
      }
    },
  ],
  [
    'closing waits for the appends asked for and may be done twice',
    async (store) => {
      const handle = await store.open('c');
      const append = handle.append([notice('c', 0)], 0);
      await Promise.all([handle.close(), handle.close()]);
      await append;
      assert.deepEqual(await stored(store, 'c'), [notice('c', 0)]);
    },
  ],
  [
    'a closed handle neither appends nor reads',
    async (store) => {
      const handle = await store.open('c');
      await handle.close();
      await refused('closed', () => handle.append([notice('c', 0)], 0));
      await refused('closed', () => all(handle));
      assert.deepEqual(await stored(store, 'c'), []);
    },
  ],
  [
    'conversations are kept apart, also with unusual ids',
    async (store) => {
      const ids = ['a', 'a.b', '.a', 'a b', 'a%20b', '%', 'ä', '日本', '__proto__', 'constructor', 'a.jsonl'];
      for (const id of ids) await write(store, id, [notice(id, 0, id)]);
      for (const id of ids) assert.deepEqual(await stored(store, id), [notice(id, 0, id)]);
    },
  ],
  [
    'bytes come back by their reference, where a store keeps bytes',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        if (handle.putBlob === undefined || handle.getBlob === undefined) return;
        const bytes = Uint8Array.from({ length: 5000 }, (_, index) => index % 256);
        const reference = await handle.putBlob(bytes, 'image/png');
        assert.equal(await handle.putBlob(bytes, 'image/png'), reference);
        assert.deepEqual(new Uint8Array(await handle.getBlob(reference)), bytes);
        await refused('store', async () => handle.getBlob?.('../../etc/passwd'));
      });
    },
  ],
];
