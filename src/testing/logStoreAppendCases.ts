/** Cases of the store suite about appending and reading. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { LogStore } from '../stores/store.ts';
import { all, notice, notices, opened, refused, type StoreCase, stored } from './storeCase.ts';

export const appendCases: readonly StoreCase[] = [
  ['a new conversation reads as empty', async (store) => assert.deepEqual(await stored(store, 'c'), [])],
  [
    'entries come back as they were appended, in order',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([notice('c', 0)], 0);
        await handle.append(notices('c', 1, 3), 1);
        assert.deepEqual(await all(handle), notices('c', 0, 4));
      });
    },
  ],
  [
    'reading from a seq includes it, and beyond the end gives nothing',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 5), 0);
        assert.deepEqual(await all(handle, 3), notices('c', 3, 2));
        assert.deepEqual(await all(handle, 0), notices('c', 0, 5));
        assert.deepEqual(await all(handle, 5), []);
        assert.deepEqual(await all(handle, 99), []);
      });
    },
  ],
  ['an expected seq behind the end is a store conflict and stores nothing', (store) => conflicts(store, 1)],
  ['an expected seq beyond the end is a store conflict and stores nothing', (store) => conflicts(store, 3)],
  [
    'entries that do not count on from the expected seq are a store conflict and none is stored',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await refused('store_conflict', () => handle.append([notice('c', 0), notice('c', 2)], 0));
        await refused('store_conflict', () => handle.append([notice('c', 1)], 0));
        assert.deepEqual(await all(handle), []);
      });
    },
  ],
  [
    'an append of nothing stores nothing and still checks its seq',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([], 0);
        await refused('store_conflict', () => handle.append([], 1));
        await handle.append([notice('c', 0)], 0);
        assert.deepEqual(await all(handle), [notice('c', 0)]);
      });
    },
  ],
  [
    'appends that were not waited for are kept in the order of the calls',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await Promise.all(Array.from({ length: 20 }, (_, index) => handle.append([notice('c', index)], index)));
        assert.deepEqual(await all(handle), notices('c', 0, 20));
      });
    },
  ],
  [
    'of two appends with one expected seq the second is refused, and the log goes on',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        const first = handle.append([notice('c', 0, 'first')], 0);
        await refused('store_conflict', () => handle.append([notice('c', 0, 'second')], 0));
        await first;
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), [notice('c', 0, 'first'), notice('c', 1)]);
      });
    },
  ],
  [
    'a reader gets the entries there were when it began, while others are appended',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        const seen: LogEntry[] = [];
        for await (const entry of handle.read()) {
          seen.push(entry);
          if (seen.length === 1) await handle.append([notice('c', 3)], 3);
        }
        assert.deepEqual(seen, notices('c', 0, 3));
        assert.deepEqual(await all(handle), notices('c', 0, 4));
      });
    },
  ],
  [
    'the list a caller appended is its own to change afterwards',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        const list = [notice('c', 0)];
        await handle.append(list, 0);
        list.push(notice('c', 1));
        assert.deepEqual(await all(handle), [notice('c', 0)]);
      });
    },
  ],
  [
    'a store that appends at once appends the same as one that is waited for',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        if (handle.appendNow === undefined) return;
        handle.appendNow([notice('c', 0)], 0);
        assert.throws(() => handle.appendNow?.([notice('c', 0)], 0), { code: 'store_conflict' });
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), notices('c', 0, 2));
      });
    },
  ],
];

async function conflicts(store: LogStore, expectedSeq: number): Promise<void> {
  await opened(store, 'c', async (handle) => {
    await handle.append(notices('c', 0, 2), 0);
    await refused('store_conflict', () => handle.append([notice('c', expectedSeq, 'stray')], expectedSeq));
    assert.deepEqual(await all(handle), notices('c', 0, 2));
    await handle.append([notice('c', 2)], 2);
  });
  assert.deepEqual(await stored(store, 'c'), notices('c', 0, 3));
}
