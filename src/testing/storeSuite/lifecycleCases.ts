/**
 * Cases of the store suite for the life of a log: leases, closed and outdated handles, deleted conversations. The rules
 * are in storeCase.ts.
 */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import type { LogStore } from '../../stores/logStore.ts';
import {
  all,
  conversation,
  notice,
  notices,
  onlyListed,
  opened,
  refused,
  type StoreCase,
  stamped,
  stored,
  write,
} from './storeCase.ts';

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

/** The longest time that an opener waits for its turn. */
const BUSY_MS = 30_000;

/** Repeatedly opens the log, appends one entry and closes it. Waits while the log is busy. */
async function takeTurns(store: LogStore, turns: number): Promise<void> {
  let since = performance.now();
  for (let taken = 0; taken < turns; ) {
    try {
      await opened(store, 'c', async (handle) => {
        const { length } = await all(handle);
        await handle.append([notice('c', length)], length);
      });
      taken += 1;
      since = performance.now();
    } catch (error) {
      if (!RunchartError.isRunchartError(error) || error.code !== 'session_busy') throw error;
      if (performance.now() - since > BUSY_MS)
        assert.fail('the conversation stayed busy for 30 s, although every handle was closed');
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

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

export const deleteCases: readonly StoreCase[] = [
  [
    'a deleted conversation is gone, and its id is free for a new one',
    async (store) => {
      await write(store, 'c', [conversation('c'), notice('c', 1)]);
      await write(store, 'other', [conversation('other')]);
      await store.delete('c');
      assert.equal((await onlyListed(store)).id, 'other');
      assert.deepEqual(await stored(store, 'c'), []);
      await write(store, 'c', [conversation('c')]);
      assert.deepEqual(await stored(store, 'c'), [conversation('c')]);
    },
  ],
  [
    'an open conversation is not deleted',
    async (store) => {
      await opened(store, 'c', async (handle) => {
        await handle.append([conversation('c')], 0);
        await refused('session_busy', () => store.delete('c'));
        await handle.append([notice('c', 1)], 1);
      });
      assert.deepEqual(await stored(store, 'c'), [conversation('c'), notice('c', 1)]);
    },
  ],
  [
    'deleting a conversation deletes its sub-agents, and theirs',
    async (store) => {
      await family(store);
      await store.delete('c');
      for (const id of ['sub', 'inner']) assert.deepEqual(await stored(store, id), []);
      assert.deepEqual(await stored(store, 'other'), [conversation('other')]);
      assert.deepEqual(await stored(store, 'claimed'), [conversation('claimed')]);
    },
  ],
  [
    'a conversation with an open sub-agent is not deleted, nor any of its sub-agents',
    async (store) => {
      await family(store);
      await opened(store, 'inner', () => refused('session_busy', () => store.delete('c')));
      for (const id of ['c', 'sub', 'inner']) assert.ok((await stored(store, id)).length > 0);
      await store.delete('c');
      assert.deepEqual(await stored(store, 'inner'), []);
    },
  ],
  [
    'deleting a conversation there is not does nothing',
    async (store) => {
      await write(store, 'c', [conversation('c')]);
      await store.delete('never');
      await store.delete('c');
      await store.delete('c');
      assert.deepEqual(await store.list(), []);
    },
  ],
  [
    'deleting takes the id as it is, not as a pattern or a beginning',
    async (store) => {
      const [goes, stays] = [
        ['d%', 'd_', 'd*', 'd', 'd?'],
        ['dd', 'da', 'D', 'd.d', '%'],
      ];
      for (const id of [...goes, ...stays]) await write(store, id, [conversation(id)]);
      for (const id of goes) await store.delete(id);
      assert.deepEqual((await store.list()).map(({ id }) => id).sort(), [...stays].sort());
      for (const id of stays) assert.deepEqual(await stored(store, id), [conversation(id)]);
    },
  ],
  [
    "a sub-agent's conversation, which no list shows, is deleted like any other",
    async (store) => {
      await write(store, 'sub', [conversation('sub', { conversationId: 'c', callId: 'call' })]);
      await store.delete('sub');
      assert.deepEqual(await stored(store, 'sub'), []);
    },
  ],
  [
    'of several deletes at once none fails otherwise than as busy, and the conversation is gone',
    async (store) => {
      await write(store, 'c', [conversation('c')]);
      const settled = await Promise.allSettled(Array.from({ length: 4 }, () => store.delete('c')));
      for (const result of settled) {
        if (result.status === 'rejected') await refused('session_busy', () => Promise.reject(result.reason));
      }
      assert.ok(settled.some((result) => result.status === 'fulfilled'));
      assert.deepEqual([await store.list(), await stored(store, 'c')], [[], []]);
    },
  ],
  [
    'an open and a delete at once leave the whole conversation or nothing of it',
    async (store) => {
      await write(store, 'c', [conversation('c'), notice('c', 1)]);
      const [deleting, opening] = await Promise.allSettled([store.delete('c'), store.open('c')]);
      if (deleting.status === 'rejected') await refused('session_busy', () => Promise.reject(deleting.reason));
      if (opening.status === 'rejected') return refused('session_busy', () => Promise.reject(opening.reason));
      const handle = opening.value;
      const { length } = await all(handle);
      assert.equal(length, deleting.status === 'fulfilled' ? 0 : 2);
      await handle.append([notice('c', length)], length);
      await handle.close();
      assert.equal((await stored(store, 'c')).length, length + 1);
    },
  ],
  [
    'a handle of before brings nothing of a deleted conversation back',
    async (store) => {
      const old = await store.open('c');
      await old.append([conversation('c')], 0);
      await old.close();
      await store.delete('c');
      await refused('closed', () => old.append([notice('c', 1)], 1));
      await refused('closed', () => old.append([conversation('c')], 0));
      await old.close().catch((error: unknown) => assert.ok(RunchartError.isRunchartError(error)));
      assert.deepEqual([await store.list(), await stored(store, 'c')], [[], []]);
    },
  ],
];

/** A conversation with a sub-agent that has one itself. Its log also names a conversation that is no sub-agent of it. */
async function family(store: LogStore): Promise<void> {
  const started = (id: string, seq: number, child: string): LogEntry =>
    stamped(id, seq, { type: 'sub-agent', callId: 'call', child, phase: 'started' });
  const parent = (conversationId: string) => ({ conversationId, callId: 'call' });
  await write(store, 'other', [conversation('other')]);
  await write(store, 'claimed', [conversation('claimed')]);
  await write(store, 'inner', [conversation('inner', parent('sub'))]);
  await write(store, 'sub', [conversation('sub', parent('c')), started('sub', 1, 'inner')]);
  await write(store, 'c', [conversation('c'), started('c', 1, 'sub'), started('c', 2, 'claimed')]);
}
