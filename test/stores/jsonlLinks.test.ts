/** Logs of the JSONL store that have a second name, and conversations that are deleted in several goes. */
import { link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl.ts';
import { readDamagedLog } from '../../src/stores/jsonlLenient.ts';
import type { LogStore } from '../../src/stores/store.ts';
import { conversation, notice, opened, refused, write } from '../../src/testing/storeCase.ts';
import { place } from './place.ts';
import { refuseWhile } from './refusing.ts';

vi.mock('node:fs/promises', (original) => import('./refusing.ts').then(({ refusing }) => refusing(original)));

const bytes = (text: string) => new TextEncoder().encode(text);

async function put(store: LogStore, id: string, text: string): Promise<string> {
  let reference = '';
  await opened(store, id, async (handle) => {
    reference = (await handle.putBlob?.(bytes(text), 'text/plain')) ?? '';
  });
  return reference;
}

async function get(store: LogStore, id: string, reference: string): Promise<string> {
  let text = '';
  await opened(store, id, async (handle) => {
    text = new TextDecoder().decode(await handle.getBlob?.(reference));
  });
  return text;
}

describe('a log behind a symbolic link', () => {
  test('has one place for its blobs, whichever name it is opened by', async () => {
    const { store, path } = await place();
    await write(store, 'c', [conversation('c')]);
    await symlink('c.jsonl', path('l.jsonl'));
    const one = await put(store, 'c', 'one');
    const two = await put(store, 'l', 'two');
    expect(await get(store, 'l', one)).toBe('one');
    expect(await get(store, 'c', two)).toBe('two');
    await store.delete('l');
    expect(await readdir(path('.'))).toEqual([]);
  });

  test('keeps blobs beside the file itself, also where that is no .jsonl', async () => {
    const { store, directory, path } = await place();
    await mkdir(path('elsewhere'));
    await writeFile(path('elsewhere/log'), '');
    await symlink(path('elsewhere/log'), path('l.jsonl'));
    const reference = await put(store, 'l', 'one');
    expect(await readdir(path('elsewhere'))).toEqual(['log', 'log.blobs', 'log.lock']);
    expect(await get(jsonlStore(directory), 'l', reference)).toBe('one');
    await store.delete('l');
    expect([await readdir(path('elsewhere')), await readdir(directory)]).toEqual([[], ['elsewhere']]);
  });

  test('still gives the blobs that lie under the name of the link, and deletes them with the log', async () => {
    const { store, directory, path } = await place();
    await write(store, 'c', [conversation('c')]);
    const reference = await put(store, 'c', 'one');
    await rename(path('c.blobs'), path('l.blobs'));
    await symlink('c.jsonl', path('l.jsonl'));
    expect(await get(store, 'l', reference)).toBe('one');
    await put(store, 'l', 'two');
    expect(await get(store, 'l', reference)).toBe('one');
    await store.delete('l');
    expect(await readdir(directory)).toEqual([]);
  });
});

describe('a log with a hard link', () => {
  test('INV-5 is not opened for writing by either name, busy or not, and is listed and read by both', async () => {
    const { store, directory, path } = await place();
    await write(store, 'c', [conversation('c'), notice('c', 1)]);
    const handle = await store.open('c');
    await link(path('c.jsonl'), path('h.jsonl'));
    await refused('not_a_file', () => store.open('h'));
    await handle.append([notice('c', 2)], 2);
    for (const id of ['c', 'h']) await expect(store.open(id)).rejects.toThrow('2 names');
    await handle.close();
    for (const id of ['c', 'h']) await refused('not_a_file', () => store.open(id));
    expect((await store.list()).map(({ id }) => id).sort()).toEqual(['c', 'h']);
    const read = [];
    for await (const { seq } of readDamagedLog(directory, 'h')) read.push(seq);
    expect(read).toEqual([0, 1, 2]);
    await store.delete('h');
    await opened(store, 'c', (last) => last.append([notice('c', 3)], 3));
    expect(await readdir(directory)).toEqual(['c.jsonl', 'c.jsonl.lock']);
  });
});

describe('a delete that fails half-way', () => {
  for (const end of ['/c.blobs', '/c.jsonl']) {
    test(`where ${end.slice(1)} cannot be removed, the conversation stays listed, and the next delete finishes it`, async () => {
      const { store, directory } = await place();
      await write(store, 'c', [conversation('c')]);
      await put(store, 'c', 'secret');
      await refuseWhile('rm', end, 'EACCES', () => refused('store', () => store.delete('c')));
      expect((await store.list()).map(({ id, status }) => [id, status])).toEqual([['c', 'idle']]);
      await store.delete('c');
      expect(await readdir(directory)).toEqual([]);
    });
  }

  test('where the lease cannot be removed, nothing but an empty lease is left, and the next delete takes it', async () => {
    const { store, directory, path } = await place();
    await write(store, 'c', [conversation('c')]);
    await put(store, 'c', 'secret');
    await refuseWhile('unlink', '/c.jsonl.lock/3', 'EACCES', () => refused('store', () => store.delete('c')));
    expect(await readdir(directory)).toEqual(['c.jsonl.lock']);
    expect(await readFile(path('c.jsonl.lock/3'), 'utf8')).toBe('');
    await store.delete('c');
    expect(await readdir(directory)).toEqual([]);
  });

  test('blobs and a lease without a log are removed, and no new conversation reads them', async () => {
    const { store, directory, path } = await place();
    let reference = '';
    for (const parts of [['c.jsonl'], ['c.jsonl', 'c.jsonl.lock'], ['c.jsonl', 'c.blobs']]) {
      await write(store, 'c', [conversation('c')]);
      reference = await put(store, 'c', 'secret');
      for (const part of parts) await rm(path(part), { recursive: true });
      await store.delete('c');
      expect(await readdir(directory)).toEqual([]);
    }
    await opened(store, 'c', (handle) => refused('store', () => handle.getBlob?.(reference)));
  });

  test('a conversation another one is about to begin is busy, and one that never was is nothing', async () => {
    const { store, directory, path } = await place();
    await store.delete('c');
    await jsonlStore(path('none')).delete('c');
    expect(await readdir(directory)).toEqual([]);
    const handle = await store.open('c');
    await rm(path('c.jsonl'));
    await refused('session_busy', () => store.delete('c'));
    await handle.close();
  });
});
