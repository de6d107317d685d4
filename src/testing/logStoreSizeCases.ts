/** Cases of the store suite about long logs and large entries. Rule: see storeCase.ts; times leave room for slow machines. */
import assert from 'node:assert/strict';
import type { LogHandle } from '../stores/store.ts';
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
    'a log of a hundred thousand entries comes back to its end, from its beginning and from any place',
    async (store) => {
      const length = 100_001;
      const group = 20_001;
      await opened(store, 'c', async (handle) => {
        for (let seq = 0; seq < length; seq += group) {
          await handle.append(notices('c', seq, Math.min(group, length - seq)), seq);
        }
      });
      await opened(store, 'c', async (handle) => {
        for (const from of [0, 65_537, length - 1]) await goesOn(handle, from, length);
        await handle.append([notice('c', length)], length);
        await goesOn(handle, length, length + 1);
      });
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

/** What is read from there on is every entry up to the end, one by one: no second list of them is held. */
async function goesOn(handle: LogHandle, from: number, end: number): Promise<void> {
  let next = from;
  for await (const { seq, ...rest } of handle.read(from)) {
    if (seq !== next || !('text' in rest) || rest.text !== `entry ${seq}`)
      assert.fail(`expected entry ${next}, got ${seq}`);
    next += 1;
  }
  assert.equal(next, end, `reading from ${from} ended before entry ${next} of ${end}`);
}
