/** Tests the JSONL store on a full or failing disk. Invariant: an append is stored completely or not at all. */
import { type FileHandle, readdir } from 'node:fs/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createAgent, type Model } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import {
  all,
  conversation as begun,
  notice,
  notices,
  opened,
  refused,
  stored,
} from '../../src/testing/storeSuite/storeCase.ts';
import { volume } from '../support/tier.ts';
import { fileHandle, fillAfter } from './failingDisk.ts';
import { contentOf, linesFor, noticeCodes, place, placeWith } from './storeDirectory.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a disk that fails', () => {
  test('H-152 a disk that is full at any byte of a record keeps no part of it, and the same append succeeds later', async () => {
    const entry = notice('c', 1, 'short');
    const length = JSON.stringify(entry).length;
    for (let room = 0; room < length; room += volume.byteStep) {
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

  test('CKPT-4 if the part cannot be removed at once, the next append or opening removes it', async () => {
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
        expect(noticeCodes(handle)).toEqual(['torn_tail']);
      }
      await handle.append([notice('c', 1)], 1);
      await handle.close();
      expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
    }
  });

  test('an append that the disk did not confirm is removed', async () => {
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

  test('a write that the system splits is completed', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      const write = fileHandle.write;
      vi.spyOn(fileHandle, 'write').mockImplementation(function (this: FileHandle, bytes, offset, length = 0) {
        return write.call(this, bytes, offset, Math.min(length, 7), null);
      });
      await handle.append(notices('c', 0, 3), 0);
    });
    vi.restoreAllMocks();
    expect(await stored(store, 'c')).toEqual(notices('c', 0, 3));
  });

  test('H-134 all zero bytes before the last record are overwritten, even if the system splits the write', async () => {
    const [header, first, last] = await linesFor(notices('c', 0, 2));
    const found = await placeWith(`${header}\n${first}\n${'\0'.repeat(30)}${last}\n`);
    await opened(found.store, 'c', async (handle) => {
      const write = fileHandle.write;
      vi.spyOn(fileHandle, 'write').mockImplementation(function (this: FileHandle, bytes, offset, length = 0, at) {
        return write.call(this, bytes, offset, Math.min(length, 7), at ?? null);
      });
      await handle.append([notice('c', 2)], 2);
    });
    vi.restoreAllMocks();
    expect(await contentOf(found)).not.toContain('\0');
    expect(await stored(found.store, 'c')).toEqual(notices('c', 0, 3));
  });

  test('H-152 a disk that is full at any byte of the first append leaves an empty log, header and all', async () => {
    const [header = '', line = ''] = await linesFor([notice('c', 0)]);
    const found = await place();
    for (let room = 0; room <= header.length + line.length; room += volume.byteStep) {
      await opened(found.store, 'c', async (handle) => {
        fillAfter(room);
        await refused('store', () => handle.append([notice('c', 0)], 0));
        vi.restoreAllMocks();
        expect([await contentOf(found), await all(handle)]).toEqual(['', []]);
      });
    }
    await opened(found.store, 'c', (handle) => handle.append([notice('c', 0)], 0));
    expect(await contentOf(found)).toBe(`${header}\n${line}\n`);
  });

  test('H-152 a disk that is full at any byte of a group of entries stores none of them', async () => {
    const group = notices('c', 1, 3);
    const found = await place();
    await opened(found.store, 'c', async (handle) => {
      await handle.append([notice('c', 0)], 0);
      const before = await contentOf(found);
      const { length } = (await linesFor([notice('c', 0), ...group])).slice(2).join('\n');
      for (let room = 0; room <= length; room += volume.byteStep) {
        fillAfter(room);
        await refused('store', () => handle.append(group, 1));
        vi.restoreAllMocks();
        expect(await contentOf(found)).toBe(before);
      }
      await handle.append(group, 1);
    });
    expect(await stored(found.store, 'c')).toEqual(notices('c', 0, 4));
  });

  test('H-152 a disk that is full at any byte of a blob stores no part of it, and the same blob can be stored later', async () => {
    const found = await place();
    const bytes = new Uint8Array(20).fill(7);
    await opened(found.store, 'c', async (handle) => {
      for (let room = 0; room < bytes.length; room += volume.byteStep) {
        fillAfter(room);
        await refused('store', () => handle.putBlob?.(bytes, 'image/png'));
        vi.restoreAllMocks();
        expect(await readdir(found.path('c.blobs'))).toEqual([]);
      }
      const reference = (await handle.putBlob?.(bytes, 'image/png')) ?? '';
      expect(await handle.getBlob?.(reference)).toEqual(bytes);
    });
  });

  test('H-152 a disk that is full at any byte of a lease makes open reject without a lease', async () => {
    const found = await place();
    for (let room = 0; room < 60; room += volume.byteStep) {
      fillAfter(room);
      await refused('store', () => found.store.open('c'));
      vi.restoreAllMocks();
    }
    await opened(found.store, 'c', (handle) => handle.append([begun('c')], 0));
    expect((await found.store.list()).map(({ status }) => status)).toEqual(['idle']);
  });

  test('H-152 a run whose disk is full ends as Error, cause store, and its log opens whole', async () => {
    const found = await place();
    const model: Model = {
      id: 'scripted',
      async *stream() {
        yield { type: 'text-delta', text: 'hello' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    for (const [number, room] of [0, 1, 30, 90].entries()) {
      const agent = createAgent({ model, store: found.store });
      const conversation = await agent.open('c');
      const before = conversation.log().length;
      // The request is stored; the reply and the entries after it are not.
      fillAfter(room, 1);
      vi.mocked(fileHandle.write).mockRejectedValue(Object.assign(new Error('full'), { code: 'ENOSPC' }));
      const result = await conversation.send(`request ${number}`).result;
      expect(result).toMatchObject({ termination: 'Error', cause: 'store' });
      vi.restoreAllMocks();
      await agent.close();
      const log = await stored(found.store, 'c');
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq));
      expect(log.length).toBeGreaterThan(before);
      expect(log.at(-1)).toMatchObject({ type: 'checkpoint', boundary: 'UserMessage' });
    }
    const agent = createAgent({ model, store: found.store });
    expect(await (await agent.open('c')).send('again').text).toBe('hello');
    await agent.close();
  });
});
