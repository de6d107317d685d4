/** Cases of the store suite about closing a handle, and what an old one may still do. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import { RunchartError } from '../errors.ts';
import { all, conversation, notice, notices, opened, refused, type StoreCase, stored, write } from './storeCase.ts';

export const closeCases: readonly StoreCase[] = [
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
    'opening and closing without an append changes nothing',
    async (store) => {
      await write(store, 'c', [conversation('c'), notice('c', 1)]);
      const listed = await store.list();
      for (let time = 0; time < 5; time += 1) await opened(store, 'c', async () => {});
      assert.deepEqual(await store.list(), listed);
      assert.deepEqual(await stored(store, 'c'), [conversation('c'), notice('c', 1)]);
    },
  ],
  [
    'closing waits for the appends asked for and may be done twice',
    async (store) => {
      const handle = await store.open('c');
      const append = handle.append([notice('c', 0)], 0);
      await Promise.all([handle.close(), handle.close(), append]);
      assert.deepEqual(await stored(store, 'c'), [notice('c', 0)]);
    },
  ],
  [
    'from the call of close on a handle takes no more appends',
    async (store) => {
      const handle = await store.open('c');
      const before = handle.append([notice('c', 0)], 0);
      const closing = handle.close();
      const after = refused('closed', () => handle.append([notice('c', 1)], 1));
      await Promise.all([before, closing, after]);
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
      if (handle.appendNow) await refused('closed', () => handle.appendNow?.([notice('c', 0)], 0));
      assert.deepEqual(await stored(store, 'c'), []);
    },
  ],
  [
    'a handle that is closed once more does not take the log from who holds it now',
    async (store) => {
      const old = await store.open('c');
      await old.close();
      await opened(store, 'c', async (handle) => {
        await old.close();
        await refused('session_busy', () => store.open('c'));
        await handle.append([notice('c', 0)], 0);
      });
    },
  ],
  [
    'an old handle writes nothing into the log that another has open, not even the right seq',
    async (store) => {
      const old = await store.open('c');
      await old.append([notice('c', 0)], 0);
      await old.close();
      await opened(store, 'c', async (handle) => {
        await refused('closed', () => old.append([notice('c', 1, 'old')], 1));
        await handle.append([notice('c', 1)], 1);
        await refused('closed', () => old.append([notice('c', 2, 'old')], 2));
        assert.deepEqual(await all(handle), notices('c', 0, 2));
      });
    },
  ],
  [
    'a reader whose handle is closed meanwhile goes on rightly or is refused',
    async (store) => {
      await write(store, 'c', notices('c', 0, 4));
      const handle = await store.open('c');
      let next = 0;
      try {
        for await (const entry of handle.read()) {
          assert.deepEqual(entry, notice('c', next));
          next += 1;
          if (next === 2) await handle.close();
        }
        assert.equal(next, 4);
      } catch (error) {
        if (!RunchartError.isRunchartError(error)) throw error;
        assert.deepEqual([error.code, next], ['closed', 2]);
      }
    },
  ],
  [
    'a reader that nobody finishes does not hold up closing',
    async (store) => {
      await write(store, 'c', notices('c', 0, 4));
      const handle = await store.open('c');
      const reader = handle.read()[Symbol.asyncIterator]();
      assert.deepEqual((await reader.next()).value, notice('c', 0));
      await handle.close();
      assert.deepEqual(await stored(store, 'c'), notices('c', 0, 4));
    },
  ],
  [
    'a handle whose append was refused still holds its log, and gives it back',
    async (store) => {
      const handle = await store.open('c');
      await refused('store_conflict', () => handle.append([notice('c', 5)], 5));
      await refused('session_busy', () => store.open('c'));
      await handle.close();
      await write(store, 'c', [notice('c', 0)]);
    },
  ],
];
