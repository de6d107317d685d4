/**
 * Cases of the store suite for reads: their start, their size, appends during a read, long logs and large entries. The
 * rules are in storeCase.ts. Time limits allow for slow machines.
 */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { LogHandle } from '../../stores/logStore.ts';
import {
  all,
  comesBack,
  notice,
  notices,
  opened,
  type StoreCase,
  sameEntries,
  stored,
  turn,
  write,
} from './storeCase.ts';

export const readCases: readonly StoreCase[] = [
  ['a new conversation reads as empty', async (store) => assert.deepEqual(await stored(store, 'c'), [])],
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
  [
    'reading from before the start gives everything',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        for (const from of [-1, -2.5, -0, Number.NEGATIVE_INFINITY]) {
          assert.deepEqual(await all(handle, from), notices('c', 0, 3), String(from));
        }
      });
    },
  ],
  [
    'reading from between two seqs begins with the later one',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 4), 0);
        assert.deepEqual(await all(handle, 0.1), notices('c', 1, 3));
        assert.deepEqual(await all(handle, 2.9), notices('c', 3, 1));
        assert.deepEqual(await all(handle, 3.5), []);
      });
    },
  ],
  [
    'reading from where no seq can be gives nothing',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 3), 0);
        for (const from of [Number.POSITIVE_INFINITY, Number.NaN, Number.MAX_SAFE_INTEGER, 2 ** 32]) {
          assert.deepEqual(await all(handle, from), [], String(from));
        }
      });
    },
  ],
  [
    'an opened log reads from each of its seqs, and so it does after more was appended',
    async (store) => {
      await write(store, 'c', notices('c', 0, 6));
      await opened(store, 'c', async (handle) => {
        for (let from = 0; from < 6; from += 1) assert.deepEqual(await all(handle, from), notices('c', from, 6 - from));
        await handle.append(notices('c', 6, 3), 6);
        for (let from = 0; from < 9; from += 1) assert.deepEqual(await all(handle, from), notices('c', from, 9 - from));
      });
    },
  ],
  [
    'a reader gets the entries there were when it began, while others are appended',
    async (store) => {
      // A store may read a long log in pieces.
      for (const [id, length] of Object.entries({ short: 3, long: 2_001 })) {
        await opened(store, id, async (handle) => {
          await handle.append(notices(id, 0, length), 0);
          const seen: LogEntry[] = [];
          for await (const entry of handle.read()) {
            seen.push(entry);
            if (seen.length === 1) await handle.append([notice(id, length)], length);
          }
          assert.deepEqual(seen, notices(id, 0, length));
          assert.deepEqual(await all(handle), notices(id, 0, length + 1));
        });
      }
    },
  ],
  [
    'two readers that take turns each get everything they asked for',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 8), 0);
        const seen: LogEntry[][] = [];
        for await (const entry of handle.read(2)) {
          if (entry.seq === 4) seen.push(await all(handle), await all(handle, 7));
          else seen.push([entry]);
        }
        const expected = [2, 3, null, 5, 6, 7].flatMap((seq) =>
          seq === null ? [notices('c', 0, 8), notices('c', 7, 1)] : [[notice('c', seq)]],
        );
        assert.deepEqual(seen, expected);
      });
    },
  ],
  [
    'a reader that is left half-way disturbs neither the next reader nor an append',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append(notices('c', 0, 5), 0);
        for await (const entry of handle.read()) if (entry.seq === 1) break;
        await handle.append([notice('c', 5)], 5);
        assert.deepEqual(await all(handle), notices('c', 0, 6));
      });
      assert.deepEqual(await stored(store, 'c'), notices('c', 0, 6));
    },
  ],
  [
    'of appends under way a reader sees whole ones only, in order, and all that were acknowledged',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        let acknowledged = 0;
        let settled = 0;
        const append = async (_: unknown, number: number) => {
          try {
            await handle.append(notices('c', number * 5, 5), number * 5);
            // Later appends may be acknowledged earlier.
            acknowledged = Math.max(acknowledged, (number + 1) * 5);
          } finally {
            settled += 1;
          }
        };
        const read = async () => {
          for (let isLast = false; !isLast; await turn()) {
            isLast = settled === 12;
            const least = acknowledged;
            const seen = await all(handle);
            assert.deepEqual(seen, notices('c', 0, seen.length));
            assert.equal(seen.length % 5, 0, `${seen.length} entries of groups of 5`);
            assert.ok(seen.length >= least, `${seen.length} entries read, ${least} were acknowledged`);
          }
        };
        await Promise.all([...Array.from({ length: 12 }, append), read()]);
      });
    },
  ],
  [
    'no entry is missing from a log that is opened again, first, last or between, however it was appended',
    async (store) => {
      for (let next = 0, size = 1; next < 40; next += size, size = (size % 4) + 1) {
        await opened(store, 'c', (handle) => handle.append(notices('c', next, size), next));
        // The library refuses to open a conversation whose log has a gap.
        const seqs = (await stored(store, 'c')).map(({ seq }) => seq);
        assert.deepEqual(seqs, [...Array(next + size).keys()], 'an entry is missing or comes twice');
      }
    },
  ],
  [
    'a log that nothing happened to opens without notices',
    async (store) => {
      await write(store, 'c', notices('c', 0, 3));
      await opened(store, 'c', async (handle) => assert.deepEqual(handle.notices ?? [], []));
    },
  ],
];

/** For a store that takes longer than this, the suite checks whether its time grows faster than the log. */
const SECONDS = 15;
/** The most that the second half of a log may take, as a multiple of the first. Where each append reads the whole log, it is three. */
const SECOND_HALF_MOST = 2;

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
    `ten thousand entries come back, in batches and one by one, within ${SECONDS} seconds or in a time that grows with their number`,
    async (store) => {
      const began = performance.now();
      const halves: number[] = [];
      await opened(store, 'c', async (handle) => {
        for (const from of [0, 5000]) {
          const halfBegan = performance.now();
          for (let seq = from; seq < from + 4950; seq += 99) await handle.append(notices('c', seq, 99), seq);
          for (let seq = from + 4950; seq < from + 5000; seq += 1) await handle.append([notice('c', seq)], seq);
          halves.push(performance.now() - halfBegan);
        }
      });
      sameEntries(await stored(store, 'c'), notices('c', 0, 10_000));
      const isFast = performance.now() - began < SECONDS * 1000;
      const [first = 0, second = 0] = halves;
      const took = `the first half of the log took ${Math.round(first)} ms, and the second one ${Math.round(second)} ms`;
      assert.ok(isFast || second <= SECOND_HALF_MOST * first, took);
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

/**
 * Asserts that a read from an entry yields every entry up to the end. It compares one by one, without a second list.
 */
async function goesOn(handle: LogHandle, from: number, end: number): Promise<void> {
  let next = from;
  for await (const { seq, ...rest } of handle.read(from)) {
    if (seq !== next || !('text' in rest) || rest.text !== `entry ${seq}`)
      assert.fail(`expected entry ${next}, got ${seq}`);
    next += 1;
  }
  assert.equal(next, end, `reading from ${from} ended before entry ${next} of ${end}`);
}
