/**
 * Cases of the store suite for appends: order, groups, the writer's expected seq, and the ownership of appended
 * entries. The rules are in storeCase.ts.
 */
import assert from 'node:assert/strict';
import { deepFreeze } from '../../../machines/internal.ts';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { LogStore } from '../../stores/logStore.ts';
import {
  all,
  extension,
  notice,
  notices,
  opened,
  refused,
  type StoreCase,
  sameEntries,
  stored,
  write,
} from './storeCase.ts';

export const appendCases: readonly StoreCase[] = [
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
    'how entries were grouped into appends cannot be told from the log',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        for (let size = 1, seq = 0; size <= 9; seq += size, size += 1)
          await handle.append(notices('c', seq, size), seq);
      });
      await write(store, 'one', notices('c', 0, 45));
      assert.deepEqual(await stored(store, 'c'), await stored(store, 'one'));
    },
  ],
  [
    'a thousand and one entries are one append',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 1001), 0);
        await refused('store_conflict', () => handle.append([notice('c', 1000)], 1000));
        sameEntries(await all(handle, 999), notices('c', 999, 2));
        assert.equal((await all(handle, 1001)).length, 0);
      });
    },
  ],
  [
    'entries that are equal but for their seq are all kept',
    async (store) => {
      const same = Array.from({ length: 6 }, (_, seq): LogEntry => ({ ...notice('c', 0, 'again'), seq }));
      await opened(store, 'c', async (handle) => {
        await handle.append(same.slice(0, 4), 0);
        await handle.append(same.slice(4), 4);
      });
      assert.deepEqual(await stored(store, 'c'), same);
    },
  ],
  [
    'the seq says the order, not the time: clocks may go back',
    async (store) => {
      const log = [5000, 3000, 4000, 0, -1].map((at, seq): LogEntry => ({ ...notice('c', seq), at }));
      await write(store, 'c', log);
      assert.deepEqual(await stored(store, 'c'), log);
    },
  ],
  ['an expected seq behind the end is a store conflict and stores nothing', (store) => conflicts(store, 1)],
  ['an expected seq beyond the end is a store conflict and stores nothing', (store) => conflicts(store, 3)],
  [
    'an expected seq that is no seq is a store conflict',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        for (const expected of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '0', null, undefined] as number[]) {
          await refused('store_conflict', () => handle.append([notice('c', 0)], expected));
        }
        assert.deepEqual(await all(handle), []);
      });
    },
  ],
  [
    'the first entry must have the expected seq',
    (store) => refusesBatch(store, [notice('c', 2), notice('c', 3)], [notice('c', 0, 'again')]),
  ],
  [
    'a group that leaves out a seq is refused whole, whichever it is',
    (store) => {
      const omittedSeqs = [[1], [2], [3], [4], [1, 2], [3, 4], [2, 4]];
      const groups = omittedSeqs.map((seqs) => notices('c', 1, 5).filter(({ seq }) => !seqs.includes(seq)));
      return refusesBatch(store, ...groups);
    },
  ],
  [
    'a group that repeats a seq is refused whole',
    (store) => refusesBatch(store, [notice('c', 1), notice('c', 1, 'again'), notice('c', 2)]),
  ],
  [
    'a group that is out of order is refused, not sorted',
    (store) => refusesBatch(store, [notice('c', 1), notice('c', 3), notice('c', 2)]),
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
    'a log that was opened again refuses what it holds already',
    async (store) => {
      await write(store, 'c', notices('c', 0, 3));
      await opened(store, 'c', async (handle) => {
        await refused('store_conflict', () => handle.append([notice('c', 0, 'new')], 0));
        await refused('store_conflict', () => handle.append([notice('c', 2, 'new')], 2));
        await handle.append([notice('c', 3)], 3);
      });
      assert.deepEqual(await stored(store, 'c'), notices('c', 0, 4));
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
        const second = refused('store_conflict', () => handle.append([notice('c', 0, 'second')], 0));
        await Promise.all([first, second]);
        await handle.append([notice('c', 1)], 1);
        assert.deepEqual(await all(handle), [notice('c', 0, 'first'), notice('c', 1)]);
      });
    },
  ],
  [
    'a refused append holds up none of those asked for after it',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        const asked = [0, 7, 1, 1, 2].map((seq) => handle.append([notice('c', seq)], seq));
        const settled = await Promise.allSettled(asked);
        const done = settled.map(({ status }) => status === 'fulfilled');
        assert.deepEqual(done, [true, false, true, false, true]);
        assert.deepEqual(await all(handle), notices('c', 0, 3));
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

/** Appends after one entry. No entry of the group remains, neither now nor after a reopening. */
async function refusesBatch(store: LogStore, ...batches: readonly LogEntry[][]): Promise<void> {
  await opened(store, 'c', async (handle) => {
    await handle.append([notice('c', 0)], 0);
    for (const batch of batches) await refused('store_conflict', () => handle.append(batch, 1));
    assert.deepEqual(await all(handle), [notice('c', 0)]);
    await handle.append([notice('c', 1)], 1);
  });
  assert.deepEqual(await stored(store, 'c'), notices('c', 0, 2));
}

/** Changes an entry at the top level and inside. A frozen entry is unchanged. */
function tamper(entry: LogEntry | undefined): void {
  if (entry === undefined) return;
  Reflect.set(entry, 'seq', 77);
  Reflect.set(entry, 'type', 'tampered');
  if (entry.type === 'extension') Reflect.set(entry.value as object, 'in', ['tampered']);
}
const nested = (seq: number): LogEntry => extension(seq, { in: ['a', { b: 'c' }] });

export const ownershipCases: readonly StoreCase[] = [
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
    'an entry that its caller changes after the append is stored as it was',
    async (store) => {
      const entries = [notice('c', 0), nested(1)];
      await opened(store, 'c', async (handle) => {
        await handle.append(entries, 0);
        for (const entry of entries) tamper(entry);
        assert.deepEqual(await all(handle), [notice('c', 0), nested(1)]);
      });
      assert.deepEqual(await stored(store, 'c'), [notice('c', 0), nested(1)]);
    },
  ],
  [
    'an append stores what it was given when it was called, not what became of it meanwhile',
    async (store) => {
      const entries = [notice('c', 1), nested(2)];
      await opened(store, 'c', async (handle) => {
        const first = handle.append([notice('c', 0)], 0);
        const second = handle.append(entries, 1);
        for (const entry of entries.splice(0)) tamper(entry);
        await Promise.all([first, second]);
      });
      assert.deepEqual(await stored(store, 'c'), [notice('c', 0), notice('c', 1), nested(2)]);
    },
  ],
  [
    'what a reader does to the entries it was given changes nothing that is stored',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([nested(0), nested(1)], 0);
        for await (const entry of handle.read()) tamper(entry);
        for (const entry of await all(handle)) tamper(entry);
        assert.deepEqual(await all(handle), [nested(0), nested(1)]);
      });
      assert.deepEqual(await stored(store, 'c'), [nested(0), nested(1)]);
    },
  ],
  [
    'an append leaves the list and the entries it was given as they were',
    async (store) => {
      const appended = [notice('c', 0), nested(1)];
      const [first, second] = appended;
      await opened(store, 'c', (handle) => handle.append(appended, 0));
      assert.deepEqual(appended, [notice('c', 0), nested(1)]);
      assert.deepEqual([appended[0] === first, appended[1] === second, Object.isFrozen(appended)], [true, true, false]);
    },
  ],
  [
    'frozen entries in a frozen list are taken',
    async (store) => {
      const frozen = deepFreeze([...notices('c', 0, 2), nested(2)]);
      await opened(store, 'c', async (handle) => {
        await handle.append(frozen, 0);
        if (handle.appendNow) handle.appendNow(deepFreeze([notice('c', 3)]), 3);
        else await handle.append([notice('c', 3)], 3);
      });
      assert.deepEqual(await stored(store, 'c'), [...frozen, notice('c', 3)]);
    },
  ],
];
