/** Cases of the store suite about whose an entry is once it was handed over. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { deepFreeze } from '../freeze.ts';
import { all, extension, notice, notices, opened, type StoreCase, stored } from './storeCase.ts';

/** Changes an entry at the top and inside; one that is frozen stays as it is. */
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
      const given = [notice('c', 0), nested(1)];
      const [first, second] = given;
      await opened(store, 'c', (handle) => handle.append(given, 0));
      assert.deepEqual(given, [notice('c', 0), nested(1)]);
      assert.deepEqual([given[0] === first, given[1] === second, Object.isFrozen(given)], [true, true, false]);
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
