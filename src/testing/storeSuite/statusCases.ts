/**
 * Cases of the store suite for the listed facts of a conversation: its status, turns and cost. The rules are in
 * storeCase.ts.
 */
import assert from 'node:assert/strict';
import { subAgentEntries } from '../../../machines/internal.ts';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import type { LogStore } from '../../stores/logStore.ts';
import {
  conversation,
  modelReply,
  notice,
  onlyListed,
  opened,
  type StoreCase,
  stamped,
  stored,
  write,
} from './storeCase.ts';

export const statusCases: readonly StoreCase[] = [
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
    'a conversation that is only held open is idle, or waits as before',
    async (store) => {
      await write(store, 'c', [conversation('c'), started(1), stopped(2, 'end_turn')]);
      await opened(store, 'c', async (handle) => {
        assert.equal((await onlyListed(store)).status, 'idle');
        await handle.append([started(3), suspended(4)], 3);
        assert.equal((await onlyListed(store)).status, 'waiting');
      });
    },
  ],
  [
    'a run that is resumed in an open handle is active until it stops',
    async (store) => {
      await write(store, 'c', [conversation('c'), started(1), suspended(2)]);
      await opened(store, 'c', async (handle) => {
        await handle.append([stamped('c', 3, { type: 'run-resumed', runId: 'next', of: 'run' })], 3);
        assert.equal((await onlyListed(store)).status, 'active');
        await handle.append([stopped(4, 'end_turn')], 4);
        assert.equal((await onlyListed(store)).status, 'idle');
      });
    },
  ],
  [
    'what a sub-agent cost counts in the conversation that asked for it, its turns do not',
    async (store) => {
      const usage = { inputTokens: 9, outputTokens: 3, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
      const spent = { usage, costUsd: 0.5, upTo: 7 };
      const change = { type: 'sub-agent.changed', callId: 'call', conversationId: 'sub', spent } as const;
      const subAgentLog = subAgentEntries('run', change).map((entry, index) => stamped('c', 2 + index, entry));
      await write(store, 'c', [conversation('c'), modelReply('c', 1, 0.25), ...subAgentLog]);
      const { costUsd, turns } = await onlyListed(store);
      assert.deepEqual({ costUsd, turns }, { costUsd: 0.75, turns: 1 });
    },
  ],
  [
    'a price of nothing is a price',
    async (store) => {
      await write(store, 'c', [conversation('c'), modelReply('c', 1, 0)]);
      assert.equal((await onlyListed(store)).costUsd, 0);
    },
  ],
];

/** Appends the entries that the log does not contain yet, and checks the status. */
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
