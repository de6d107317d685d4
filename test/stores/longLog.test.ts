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

test('entries after characters of several bytes are found by their seq', async () => {
  const { store } = await place();
  const written = entries.map((entry, seq) => (seq % 2 ? notice('c', seq, 'Grüße 👋 '.repeat(seq % 40)) : entry));
  await write(store, 'c', written);
  await opened(store, 'c', async (handle) => {
    for (const from of [1, 700, COUNT - 1]) expect(await all(handle, from)).toEqual(written.slice(from));
    await handle.append([notice('c', COUNT)], COUNT);
    expect(await all(handle, COUNT - 2)).toEqual([...written.slice(-2), notice('c', COUNT)]);
  });
});

test('a closed log refuses the reader of entries that opening parsed', async () => {
  const { store } = await place();
  await write(store, 'c', entries);
  const handle = await store.open('c');
  const reader = handle.read()[Symbol.asyncIterator]();
  expect(await reader.next()).toEqual({ value: entries[0], done: false });
  await handle.close();
  await expect(reader.next()).rejects.toMatchObject({ code: 'closed' });
});

test('a reader that returned yields no more of the entries that opening parsed', async () => {
  const { store } = await place();
  await write(store, 'c', entries);
  await opened(store, 'c', async (handle) => {
    const reader = handle.read()[Symbol.asyncIterator]();
    await reader.next();
    const end = { value: undefined, done: true };
    expect([await reader.return?.(), await reader.next()]).toEqual([end, end]);
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
