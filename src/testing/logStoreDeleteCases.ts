/** Cases of the store suite about deleting conversations. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import { RunchartError } from '../errors.ts';
import { all, conversation, notice, onlyListed, opened, refused, type StoreCase, stored, write } from './storeCase.ts';

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
