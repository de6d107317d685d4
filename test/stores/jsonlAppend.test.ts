/** What an append of the JSONL store does to its file, and what it refuses to do. */
import { copyFile, type FileHandle, open, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl.ts';
import {
  all,
  conversation,
  notice,
  notices,
  opened,
  refused,
  stamped,
  stored,
  write,
} from '../../src/testing/storeCase.ts';
import { contentOf, noticeCodes, place } from './place.ts';

/** What every FileHandle inherits its methods from, to watch the calls a store makes. */
const probe = await open(process.execPath);
type Write = (bytes: Uint8Array, offset: number, length: number, position: null) => Promise<{ bytesWritten: number }>;
const fileHandle = Object.getPrototypeOf(probe) as {
  write: Write;
  truncate(): Promise<void>;
  datasync(): Promise<void>;
};
await probe.close();

afterEach(() => {
  vi.restoreAllMocks();
});

describe('what is written', () => {
  test('CKPT-3 CKPT-5 an append is one write of whole lines, as large as what is new', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      await handle.append(notices('c', 0, 50), 0);
      const writes = vi.spyOn(fileHandle, 'write');
      await handle.append(notices('c', 50, 3), 50);
      await handle.append([notice('c', 53)], 53);
      const written = writes.mock.calls.map(([bytes]) => String(bytes));
      expect(written.map((text) => text.split('\n').length - 1)).toEqual([3, 1]);
      expect(written.every((text) => text.endsWith('\n') && text.length < 400)).toBe(true);
    });
  });

  test('a line leaves out what the header says and a run id of null', async () => {
    const found = await place();
    await write(found.store, 'c', [notice('c', 0, 'x'), stamped('c', 1, { type: 'run-started', runId: 'r' })]);
    expect((await contentOf(found)).split('\n').map((line) => line && JSON.parse(line))).toEqual([
      { format: 'runchart-log', version: 1, conversationId: 'c' },
      { seq: 0, at: 1_700_000_000_000, type: 'notice', code: 'case', text: 'x' },
      { seq: 1, at: 1_700_000_001_000, runId: 'r', type: 'run-started' },
      '',
    ]);
  });

  test("an entry of another conversation keeps that conversation's id", async () => {
    const { store } = await place();
    await write(store, 'c', [conversation('c'), notice('other', 1)]);
    expect(await stored(store, 'c')).toEqual([conversation('c'), notice('other', 1)]);
  });

  test("an append is acknowledged after the disk has it with durability 'power', after the write with 'process'", async () => {
    const { directory } = await place();
    const sync = vi.spyOn(fileHandle, 'datasync');
    await write(jsonlStore(directory), 'c', [notice('c', 0)]);
    expect(sync).not.toHaveBeenCalled();
    await opened(jsonlStore(directory, { durability: 'power' }), 'c', async (handle) => {
      await handle.append([notice('c', 1)], 1);
      await handle.append([notice('c', 2)], 2);
    });
    expect(sync).toHaveBeenCalledTimes(2);
  });
});

describe('a disk that refuses', () => {
  test('H-152 a disk that is full at any byte of a record leaves no half record, and the same append works later', async () => {
    const entry = notice('c', 1, 'short');
    const length = JSON.stringify(entry).length;
    for (let room = 0; room < length; room += 1) {
      const found = await place();
      await opened(found.store, 'c', async (handle) => {
        await handle.append([notice('c', 0)], 0);
        const before = await contentOf(found);
        fillAfter(room);
        await refused('store', () => handle.append([entry], 1));
        vi.restoreAllMocks();
        expect(await contentOf(found)).toBe(before);
        await handle.append([entry], 1);
      });
      expect(await stored(found.store, 'c')).toEqual([notice('c', 0), entry]);
    }
  });

  test('CKPT-4 where not even cutting back works, the next append or the next opening does it', async () => {
    for (const reopen of [false, true]) {
      const { store } = await place();
      let handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      fillAfter(20);
      vi.spyOn(fileHandle, 'truncate').mockRejectedValueOnce(new Error('EIO'));
      await refused('store', () => handle.append([notice('c', 1)], 1));
      vi.restoreAllMocks();
      if (reopen) {
        await handle.close();
        handle = await store.open('c');
        expect(noticeCodes(handle)).toEqual(['torn-tail']);
      }
      await handle.append([notice('c', 1)], 1);
      await handle.close();
      expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
    }
  });

  test('an append the disk did not confirm is taken back', async () => {
    const found = await place();
    await opened(jsonlStore(found.directory, { durability: 'power' }), 'c', async (handle) => {
      await handle.append([notice('c', 0)], 0);
      vi.spyOn(fileHandle, 'datasync').mockRejectedValueOnce(new Error('EIO'));
      await refused('store', () => handle.append([notice('c', 1)], 1));
      expect(await all(handle)).toEqual([notice('c', 0)]);
      await handle.append([notice('c', 1)], 1);
    });
    expect(await stored(found.store, 'c')).toEqual(notices('c', 0, 2));
  });

  test('a write the system takes in pieces is finished', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      const write = fileHandle.write;
      vi.spyOn(fileHandle, 'write').mockImplementation(function (this: FileHandle, bytes, offset, length) {
        return write.call(this, bytes, offset, Math.min(length, 7), null);
      });
      await handle.append(notices('c', 0, 3), 0);
    });
    vi.restoreAllMocks();
    expect(await stored(store, 'c')).toEqual(notices('c', 0, 3));
  });
});

describe('a file that changed underneath', () => {
  const changes: [name: string, change: (path: string) => Promise<unknown>][] = [
    ['deleted', (path) => rm(path)],
    ['replaced by another', (path) => writeFile(`${path}.new`, 'x').then(() => rename(`${path}.new`, path))],
    [
      'moved away and replaced by a copy',
      (path) => rename(path, `${path}.old`).then(() => copyFile(`${path}.old`, path)),
    ],
    ['longer', (path) => writeFile(path, 'x\n', { flag: 'a' })],
    ['shorter', (path) => truncate(path, 10)],
  ];
  for (const [name, change] of changes) {
    test(`H-156 an append to a file that was ${name} is a store conflict, and changes nothing`, async () => {
      const { store, path } = await place();
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      await change(path('c.jsonl'));
      const before = await readFile(path('c.jsonl'), 'utf8').catch(() => 'deleted');
      await expect(handle.append([notice('c', 1)], 1)).rejects.toThrow('the store changed');
      await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
      await handle.close();
      expect(await readFile(path('c.jsonl'), 'utf8').catch(() => 'deleted')).toBe(before);
    });
  }
});

/** The next write takes this many bytes, then the disk is full. */
function fillAfter(room: number): void {
  const write = fileHandle.write;
  vi.spyOn(fileHandle, 'write').mockImplementationOnce(async function (this: FileHandle, bytes, offset) {
    if (room > 0) await write.call(this, bytes, offset, room, null);
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  });
}
