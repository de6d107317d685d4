/** Tests how the entries of a long log are read when it is opened: once, and in several turns of the event loop. */
import { afterEach, expect, test, vi } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { readLog } from '../../src/conversation/open.ts';
import { all, conversation, notice, notices, opened, write } from '../../src/testing/storeSuite/storeCase.ts';
import { fileHandle } from './failingDisk.ts';
import { place } from './storeDirectory.ts';

const COUNT = 2500;
const entries = [conversation('c'), ...notices('c', 1, COUNT - 1)];

afterEach(() => {
  vi.restoreAllMocks();
});

test('the loop has its turn after every thousand entries that opening reads', async () => {
  const { store } = await place();
  await write(store, 'c', entries);
  await opened(store, 'c', async (handle) => {
    const taken: LogEntry[] = [];
    const turns: number[] = [];
    const giveWay = async () => void turns.push(taken.length);
    const log = await readLog(handle, 'c', (entry) => void taken.push(entry), giveWay);
    expect([log, taken, turns]).toEqual([entries, entries, [1000, 2000]]);
  });
});

test('the first reader gets the entries that opening parsed, later readers read the file', async () => {
  const { store } = await place();
  await write(store, 'c', entries);
  await opened(store, 'c', async (handle) => {
    const reads = vi.spyOn(fileHandle, 'read');
    expect(await all(handle)).toEqual(entries);
    expect(reads).not.toHaveBeenCalled();
    expect(await all(handle)).toEqual(entries);
    expect(reads).toHaveBeenCalled();
  });
});

test('a first reader after an append gets its entries too', async () => {
  const { store } = await place();
  await write(store, 'c', entries);
  await opened(store, 'c', async (handle) => {
    await handle.append([notice('c', COUNT)], COUNT);
    expect(await all(handle)).toEqual([...entries, notice('c', COUNT)]);
  });
});
