/**
 * Tests the browser store with an in-memory browser and the whole store suite. `test/browser/` runs a part in a
 * browser.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { indexedDbStore } from '../../src/browser.ts';
import type { LogStore } from '../../src/index.ts';
import { mayExist } from '../../src/stores/logStore.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import {
  all,
  conversation,
  modelReply,
  notice,
  onlyListed,
  stamped,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { fakeBrowser } from '../support/fakeBrowser.ts';
import { codeOf, STORE_ACTS } from '../support/secondTimesOfStores.ts';

let browser: ReturnType<typeof fakeBrowser>;
beforeEach(() => {
  browser = fakeBrowser();
});
afterEach(() => vi.unstubAllGlobals());

/** The tasks that are due, and those that they make. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 9; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};
const opens = (store: LogStore, id = 'c'): Promise<string> =>
  codeOf(async () => {
    const handle = await store.open(id);
    await handle.close();
    await settled();
  });
const log = [conversation('c'), stamped('c', 1, { type: 'run-started', runId: 'run' })];

describe('indexedDbStore', () => {
  logStoreSuite(async () => indexedDbStore('suite'), { describe, test });

  test.each(STORE_ACTS)('is the same three times: it $act', async ({ same, run }) => {
    const another = () => indexedDbStore('second');
    const holder = { store: another(), another };
    for (const time of [0, 1, 2]) expect(await run(holder, time)).toEqual(same);
  });

  test('one store object of a name has an open log, and none has it after close', async () => {
    const [here, there] = [indexedDbStore('one'), indexedDbStore('one')];
    const handle = await here.open('c');
    await handle.append(log, 0);
    expect([(await onlyListed(here)).status, (await onlyListed(there)).status]).toEqual(['active', 'active']);
    expect([await opens(here), await opens(there), await codeOf(() => there.delete('c'))]).toEqual(
      Array(3).fill('session_busy'),
    );
    await Promise.all([handle.close(), handle.close()]);
    await settled();
    expect([(await onlyListed(here)).status, (await onlyListed(there)).status]).toEqual(['idle', 'idle']);
    expect([await opens(there), await opens(here)]).toEqual(['done', 'done']);
  });

  test.each([
    ['of another id', 'one', 'd'],
    ['of another name', 'two', 'c'],
    ['whose name and id read the same together', 'one:c', 'd'],
    ['whose name is a part of the name', 'on', 'e:c'],
  ])('a log is not held by who holds one %s', async (_, name, id) => {
    await indexedDbStore(name).open(id);
    expect(await opens(indexedDbStore('one'))).toBe('done');
    expect(await opens(indexedDbStore('one'), 'c:d')).toBe('done');
    expect(await opens(indexedDbStore(name), id)).toBe('session_busy');
  });

  test('close releases the log after all requested appends are stored', async () => {
    const store = indexedDbStore('one');
    const handle = await store.open('c');
    const appends = [handle.append([conversation('c')], 0), handle.append([notice('c', 1)], 1)];
    const put = handle.putBlob?.(new Uint8Array([1]), 'image/png');
    const closed = handle.close();
    expect(await opens(store)).toBe('session_busy');
    await Promise.all([...appends, put, closed]);
    await settled();
    expect(await stored(store, 'c')).toHaveLength(2);
    const again = await store.open('c');
    expect(await again.getBlob?.((await put) ?? '')).toEqual(new Uint8Array([1]));
  });

  test('a delete removes the conversation and its blobs', async () => {
    const store = indexedDbStore('one');
    await write(store, 'c', log);
    await write(store, 'd', [conversation('d')]);
    const handle = await store.open('c');
    const reference = (await handle.putBlob?.(new Uint8Array([7, 0, 255]), 'image/png')) ?? '';
    expect(reference).toMatch(/^blob:[0-9a-f]{64}:image\/png$/);
    await handle.close();
    await settled();
    await store.delete('c');
    const again = await store.open('c');
    expect([await all(again), await codeOf(() => again.getBlob?.(reference))]).toEqual([[], 'store']);
    expect((await onlyListed(store)).id).toBe('d');
  });
});

describe('an opening that another tab overtakes', () => {
  const free = async (act: Promise<unknown>): Promise<void> => {
    await act;
    await settled();
  };
  /** Runs the act of the other tab before the next lock is granted. */
  function overtaken(act: () => Promise<void>): void {
    const { locks } = navigator;
    const request = locks.request.bind(locks) as (...args: unknown[]) => Promise<unknown>;
    let isFirst = true;
    vi.spyOn(locks, 'request').mockImplementation((async (...args: unknown[]) => {
      if (!isFirst) return request(...args);
      isFirst = false;
      await act();
      return request(...args);
    }) as never);
  }

  test('finds no conversation that has another owner now, and leaves it free', async () => {
    const [here, there] = [indexedDbStore('one'), indexedDbStore('one')];
    overtaken(() => free(write(there, 'c', [{ ...conversation('c'), owner: 'bob' } as never])));
    expect(await codeOf(() => here.open('c', { owner: 'ann' }))).toBe('not_found');
    await settled();
    expect(await opens(there)).toBe('done');
  });

  test('finds no conversation that is deleted now', async () => {
    const [here, there] = [indexedDbStore('one'), indexedDbStore('one')];
    await free(write(there, 'c', log));
    overtaken(() => free(there.delete('c')));
    expect(await codeOf(() => here.open('c', { existing: true }))).toBe('not_found');
  });
});

describe('a database of the first version', () => {
  test('gets the rows of its logs when it is opened', async () => {
    const child = conversation('sub', { conversationId: 'd', callId: 'call' });
    const entries = [...log, conversation('d'), notice('d', 1), child, conversation('z')];
    const records = entries.map((value) => ({ key: [value.conversationId, value.seq], value }));
    browser.addDatabase('one', 1, { entries: records, blobs: [] });
    const store = indexedDbStore('one');
    expect((await store.list()).map(({ id, updatedAt }) => [id, updatedAt])).toEqual([
      ['c', log[1]?.at],
      ['d', notice('d', 1).at],
      ['z', log[0]?.at],
    ]);
    const handle = await store.open('c');
    await handle.append([notice('c', 2)], 2);
    expect((await store.list())[0]).toMatchObject({ id: 'c', status: 'active', updatedAt: notice('c', 2).at });
  });
});

test('each change is durable when it resolves: the transactions ask for strict durability', async () => {
  const store = indexedDbStore('one');
  const handle = await store.open('c');
  await handle.append(log, 0);
  await handle.putBlob?.(new Uint8Array([1]), 'image/png');
  await handle.close();
  await settled();
  await store.delete('c');
  expect(browser.durabilities).toEqual(Array(3).fill('strict'));
});

/** Every act of a store that needs the browser. */
const ACTS: readonly ((store: LogStore) => Promise<unknown>)[] = [
  (store) => store.open('c'),
  (store) => store.open('c', { existing: true }),
  (store) => store.open('c', { owner: 'ann' }),
  (store) => store.list(),
  (store) => store.delete('c'),
  (store) => mayExist(store, 'c'),
];

describe('a browser that fails', () => {
  test('to open the database: open rejects without a lock, and the next open succeeds', async () => {
    const store = indexedDbStore('one');
    for (const act of [() => store.open('c'), () => store.list(), () => store.delete('c')]) {
      browser.closeConnections();
      browser.refusedOpenings.push(new DOMException('the disk is full', 'QuotaExceededError'));
      await expect(act()).rejects.toMatchObject({
        code: 'store',
        message: expect.stringContaining('the disk is full'),
      });
      await settled();
      expect(await opens(store)).toBe('done');
    }
  });

  test.each([
    ['for a reason', new DOMException('the disk is full', 'QuotaExceededError'), 'the disk is full'],
    ['for none', undefined, 'the transaction was aborted'],
  ])('to store, %s: nothing of it is stored, and the same can be stored again', async (_, reason, message) => {
    const store = indexedDbStore('one');
    const handle = await store.open('c');
    await handle.append([conversation('c')], 0);
    const bytes = new Uint8Array([1]);
    for (const act of [() => handle.append([notice('c', 1)], 1), () => handle.putBlob?.(bytes, 'image/png')]) {
      browser.refusedChanges.push(reason);
      await expect(act()).rejects.toMatchObject({ code: 'store', message: expect.stringContaining(message) });
    }
    expect(await all(handle)).toEqual([conversation('c')]);
    await handle.append([notice('c', 1), notice('c', 2)], 1);
    expect(await all(handle)).toHaveLength(3);
    await handle.close();
    await settled();
    browser.refusedChanges.push(reason);
    expect(await codeOf(() => store.delete('c'))).toBe('store');
    await settled();
    expect(await stored(store, 'c')).toHaveLength(3);
  });

  test.each([1, 2, 3])(
    'to store, %i in a row: the row of the list counts what is stored, now and after the next opening',
    async (failures) => {
      const priced = (seq: number) => modelReply('c', seq, 0.25);
      const [store, never] = [indexedDbStore('one'), indexedDbStore('another')];
      const handle = await store.open('c');
      await handle.append(log, 0);
      for (const seq of [2, 3]) {
        for (let failure = 0; failure < failures; failure += 1) {
          browser.refusedChanges.push(undefined);
          await expect(handle.append([priced(seq)], seq)).rejects.toMatchObject({ code: 'store' });
        }
        await handle.append([priced(seq)], seq);
      }
      const holder = await never.open('c');
      await holder.append([...log, priced(2), priced(3)], 0);
      expect(await store.list()).toEqual(await never.list());
      for (const each of [handle, holder]) await each.close();
      await settled();
      expect(await onlyListed(store)).toMatchObject({ turns: 2, costUsd: 0.5 });
      expect(await store.list()).toEqual(await never.list());
    },
  );

  test('to keep its connection: the next call makes another one, and the handle continues', async () => {
    const store = indexedDbStore('one');
    const handle = await store.open('c');
    for (let seq = 0; seq < 3; seq += 1) {
      await handle.append([notice('c', seq)], seq);
      browser.closeConnections();
    }
    expect(await all(handle)).toHaveLength(3);
  });

  test('does not block the deletion of the database: the store starts with an empty one', async () => {
    const store = indexedDbStore('one');
    await write(store, 'c', log);
    await settled();
    for (const _ of [1, 2]) {
      expect(browser.deleteDatabases()).toBe(true);
      expect([await store.list(), await stored(store, 'c')]).toEqual([[], []]);
      await settled();
    }
  });

  test('without a database or locks is reported as an invalid configuration', async () => {
    for (const name of ['', undefined, 5] as string[])
      expect(() => indexedDbStore(name)).toThrow(expect.objectContaining({ code: 'configuration' }));
    for (const [missing, value] of [
      ['navigator', {}],
      ['indexedDB', undefined],
      ['navigator', undefined],
    ] as const) {
      for (const act of ACTS) {
        vi.stubGlobal(missing, value);
        expect([String(act), await codeOf(() => act(indexedDbStore('one')))]).toEqual([String(act), 'configuration']);
        fakeBrowser();
      }
    }
  });

  test('to give a lock: open and delete reject, and the next ones succeed', async () => {
    const store = indexedDbStore('one');
    await write(store, 'c', log);
    await settled();
    for (const act of [() => store.open('c'), () => store.delete('c')]) {
      browser.refusedLocks.push(new DOMException('not on this page', 'SecurityError'));
      await expect(act()).rejects.toMatchObject({
        code: 'store',
        message: expect.stringContaining('not on this page'),
      });
      expect(await opens(store)).toBe('done');
    }
    expect(await stored(store, 'c')).toEqual(log);
  });
});
