/** Cases of the store suite about who holds a log, and for how long. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import { RunchartError } from '../errors.ts';
import type { LogStore } from '../stores/store.ts';
import { all, notice, notices, opened, refused, type StoreCase, stored } from './storeCase.ts';

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
    'an open that was refused takes nothing from the holder',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([notice('c', 0)], 0);
        for (let time = 0; time < 3; time += 1) await refused('session_busy', () => store.open('c'));
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), notices('c', 0, 2));
        await refused('session_busy', () => store.open('c'));
      });
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
    'openers that take turns lose no entry and write none twice',
    async (store) => {
      await Promise.all(Array.from({ length: 4 }, () => takeTurns(store, 5)));
      assert.deepEqual(await stored(store, 'c'), notices('c', 0, 20));
    },
  ],
  [
    'many conversations are open at the same time, each with its own entries',
    async (store) => {
      const ids = Array.from({ length: 20 }, (_, index) => `conversation-${index}`);
      const handles = await Promise.all(ids.map((id) => store.open(id)));
      for (let seq = 0; seq < 3; seq += 1) {
        await Promise.all(handles.map((handle, index) => handle.append([notice(ids[index] ?? '', seq)], seq)));
      }
      await Promise.all(handles.map((handle) => handle.close()));
      for (const id of ids) assert.deepEqual(await stored(store, id), notices(id, 0, 3));
    },
  ],
  [
    'closing one conversation leaves the others open',
    async (store) => {
      const [first, second] = [await store.open('first'), await store.open('second')];
      await first.close();
      await second.append([notice('second', 0)], 0);
      await refused('session_busy', () => store.open('second'));
      await second.close();
      assert.deepEqual(await stored(store, 'second'), [notice('second', 0)]);
    },
  ],
];

/** Opens, appends one entry behind what is there, closes; again and again, and waits where it is busy. */
async function takeTurns(store: LogStore, turns: number): Promise<void> {
  for (let taken = 0; taken < turns; ) {
    try {
      await opened(store, 'c', async (handle) => {
        const { length } = await all(handle);
        await handle.append([notice('c', length)], length);
      });
      taken += 1;
    } catch (error) {
      if (!RunchartError.isRunchartError(error) || error.code !== 'session_busy') throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}
