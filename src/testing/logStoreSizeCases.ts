/** Cases of the store suite about long logs and large entries. Rule: see storeCase.ts; times leave room for slow machines. */
import assert from 'node:assert/strict';
import { all, comesBack, notice, notices, opened, type StoreCase, sameEntries, stored } from './storeCase.ts';

const SECONDS = 15;

export const sizeCases: readonly StoreCase[] = [
  ['a text of a mebibyte comes back', (store) => comesBack(store, [notice('c', 0, 'ä'.repeat(512 * 1024))])],
  [
    'a text that grows when it is written as JSON comes back',
    (store) => comesBack(store, [notice('c', 0, '\u0000"\n\\'.repeat(100_000))]),
  ],
  [
    'entries around a large one stay whole, in one append and in several',
    async (store) => {
      const large = notice('c', 2, 'x'.repeat(1024 * 1024));
      const log = [...notices('c', 0, 2), large, ...notices('c', 3, 3)];
      await opened(store, 'c', async (handle) => {
        await handle.append(log.slice(0, 4), 0);
        await handle.append(log.slice(4), 4);
        sameEntries(await all(handle, 1), log.slice(1));
      });
      await opened(store, 'c', async (handle) => assert.deepEqual(await all(handle, 3), log.slice(3)));
    },
  ],
  [
    `ten thousand entries come back, in batches and one by one, within ${SECONDS} seconds`,
    async (store) => {
      const began = performance.now();
      await opened(store, 'c', async (handle) => {
        for (let seq = 0; seq < 9900; seq += 99) await handle.append(notices('c', seq, 99), seq);
        for (let seq = 9900; seq < 10_000; seq += 1) await handle.append([notice('c', seq)], seq);
      });
      sameEntries(await stored(store, 'c'), notices('c', 0, 10_000));
      assert.ok(performance.now() - began < SECONDS * 1000, `it took ${Math.round(performance.now() - began)} ms`);
    },
  ],
  [
    'reading the end of a long log a hundred times gives that end each time',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        for (let seq = 0; seq < 2000; seq += 500) await handle.append(notices('c', seq, 500), seq);
        for (let count = 1; count <= 100; count += 1) {
          const end = await all(handle, 2000 - count);
          assert.deepEqual([end.length, end[0]?.seq, end.at(-1)?.seq], [count, 2000 - count, 1999]);
        }
      });
    },
  ],
];
