/** Cases of the store suite about all conversations of a store. Rule: see storeCase.ts. */
import assert from 'node:assert/strict';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { ConversationInfo, LogStore } from '../stores/store.ts';
import {
  conversation,
  modelReply,
  notice,
  opened,
  refused,
  type StoreCase,
  stamped,
  stored,
  write,
} from './storeCase.ts';

const STARTED = 1_700_000_000_000;

export const listCases: readonly StoreCase[] = [
  ['a new store lists nothing', async (store) => assert.deepEqual(await store.list(), [])],
  [
    'a conversation is listed with its place, times, turns and cost',
    async (store) => {
      await write(store, 'c', [conversation('c'), modelReply('c', 1, 0.5), modelReply('c', 2, 0.25)]);
      assert.deepEqual(await store.list(), [
        {
          id: 'c',
          cwd: '/home/case',
          createdAt: STARTED,
          updatedAt: STARTED + 2000,
          turns: 2,
          costUsd: 0.75,
          status: 'idle',
        },
      ]);
    },
  ],
  [
    'one reply of unknown price makes the cost unknown',
    async (store) => {
      await write(store, 'c', [conversation('c'), modelReply('c', 1, null), modelReply('c', 2, 0.25)]);
      assert.equal((await onlyListed(store)).costUsd, null);
    },
  ],
  [
    'a conversation whose last cycle is suspended waits, until its stop or its resumption',
    async (store) => {
      const log = [conversation('c'), started(1), suspended(2)];
      await grown(store, log, 'waiting');
      await grown(store, [...log, notice('c', 3)], 'waiting');
      await grown(store, [...log, notice('c', 3), stamped('c', 4, { type: 'run-resumed', of: 'run' })], 'idle');
    },
  ],
  [
    'a suspended cycle that was stopped is idle',
    async (store) => {
      await write(store, 'c', [conversation('c'), started(1), suspended(2), stopped(3, 'cancelled')]);
      assert.equal((await onlyListed(store)).status, 'idle');
    },
  ],
  [
    'the cause of the last stop is listed, and only that one',
    async (store) => {
      await write(store, 'c', [conversation('c'), stopped(1, 'cancelled'), stopped(2, 'end_turn')]);
      assert.equal((await onlyListed(store)).lastCause, 'end_turn');
      await opened(store, 'c', (handle) => handle.append([stopped(3)], 3));
      assert.equal('lastCause' in (await onlyListed(store)), false);
    },
  ],
  [
    'a run that goes on in an open handle is active, and idle once nobody holds it',
    async (store) => {
      const handle = await store.open('c');
      await handle.append([conversation('c'), started(1)], 0);
      assert.equal((await onlyListed(store)).status, 'active');
      await handle.close();
      assert.equal((await onlyListed(store)).status, 'idle');
    },
  ],
  [
    "sub-agents' conversations and empty ones are not listed",
    async (store) => {
      await write(store, 'sub', [conversation('sub', { conversationId: 'c', callId: 'call' })]);
      await opened(store, 'empty', async () => {});
      await write(store, 'c', [conversation('c')]);
      assert.equal((await onlyListed(store)).id, 'c');
    },
  ],
  [
    'every conversation is listed once, under the id it is opened by',
    async (store) => {
      const ids = ['a', 'b c', '.d', 'ä%'];
      for (const id of ids) await write(store, id, [conversation(id)]);
      const listed = (await store.list()).map((found) => found.id);
      assert.deepEqual(listed.sort(), ids.sort());
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
    'deleting a conversation there is not does nothing',
    async (store) => {
      await store.delete('c');
      assert.deepEqual(await store.list(), []);
    },
  ],
];

async function onlyListed(store: LogStore): Promise<ConversationInfo> {
  const [found, ...more] = await store.list();
  assert.deepEqual(more, []);
  assert.ok(found, 'expected one conversation in the list');
  return found;
}

/** Appends what the log does not hold yet and looks at the status. */
async function grown(store: LogStore, log: readonly LogEntry[], status: string): Promise<void> {
  const { length } = await stored(store, 'c');
  await opened(store, 'c', (handle) => handle.append(log.slice(length), length));
  assert.equal((await onlyListed(store)).status, status);
}

function started(seq: number): LogEntry {
  return stamped('c', seq, { type: 'run-started', runId: 'run' });
}

function suspended(seq: number): LogEntry {
  return stamped('c', seq, { type: 'run-suspended', runId: 'run', waiting: ['call'] });
}

function stopped(seq: number, cause?: string): LogEntry {
  const stop = { type: 'run-stop', runId: 'run', reason: 'completed' } as const;
  return stamped('c', seq, cause === undefined ? stop : { ...stop, cause });
}
