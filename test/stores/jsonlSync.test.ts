/** Tests how appends of the JSONL store that wait for each other share a write and a sync. */
import { afterEach, expect, test, vi } from 'vitest';
import { StoreConflictError } from '../../src/errors.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { all, notice, notices, opened, stored } from '../../src/testing/storeSuite/storeCase.ts';
import { fileHandle } from './failingDisk.ts';
import { place } from './storeDirectory.ts';

const durableStore = async () => jsonlStore((await place()).directory, { durability: 'power' });

afterEach(() => {
  vi.restoreAllMocks();
});

test('fifty queued appends are stored in their order with one sync, and none resolves before it', async () => {
  const store = await durableStore();
  await opened(store, 'c', async (handle) => {
    let synced = false;
    const sync = vi.spyOn(fileHandle, 'datasync').mockImplementation(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      synced = true;
    });
    const order: number[] = [];
    const appends = notices('c', 0, 50).map(async (entry) => {
      await handle.append([entry], entry.seq);
      order.push(synced ? entry.seq : -1);
    });
    await Promise.all(appends);
    expect(order).toEqual(notices('c', 0, 50).map(({ seq }) => seq));
    expect(sync).toHaveBeenCalledTimes(1);
  });
  expect(await stored(store, 'c')).toEqual(notices('c', 0, 50));
});

test('appends that arrive during a sync share the next one', async () => {
  const store = await durableStore();
  await opened(store, 'c', async (handle) => {
    const sync = fileHandle.datasync;
    let more: Promise<unknown> = Promise.resolve();
    const spy = vi.spyOn(fileHandle, 'datasync').mockImplementationOnce(async function (this: object) {
      more = Promise.all([handle.append([notice('c', 1)], 1), handle.append([notice('c', 2)], 2)]);
      return sync.call(this);
    });
    await handle.append([notice('c', 0)], 0);
    await more;
    expect(spy).toHaveBeenCalledTimes(2);
  });
  expect(await stored(store, 'c')).toEqual(notices('c', 0, 3));
});

test('a sync that fails rejects every append that it covers, and they can be repeated', async () => {
  const store = await durableStore();
  await opened(store, 'c', async (handle) => {
    await handle.append([notice('c', 0)], 0);
    vi.spyOn(fileHandle, 'datasync').mockRejectedValueOnce(new Error('the disk failed'));
    const appends = () => [1, 2, 3].map((seq) => handle.append([notice('c', seq)], seq));
    const failed = await Promise.allSettled(appends());
    expect(failed.map((append) => append.status === 'rejected' && append.reason.code)).toEqual(Array(3).fill('store'));
    expect(await all(handle)).toEqual([notice('c', 0)]);
    await Promise.all(appends());
  });
  expect(await stored(store, 'c')).toEqual(notices('c', 0, 4));
});

test('a queued append with another seq is rejected alone', async () => {
  const store = await durableStore();
  await opened(store, 'c', async (handle) => {
    const [first, odd, last] = await Promise.allSettled([
      handle.append([notice('c', 0)], 0),
      handle.append([notice('c', 5)], 5),
      handle.append([notice('c', 1)], 1),
    ]);
    expect([first?.status, last?.status]).toEqual(['fulfilled', 'fulfilled']);
    expect(odd).toMatchObject({ status: 'rejected', reason: expect.any(StoreConflictError) });
  });
  expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
});
