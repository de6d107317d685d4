/** Tests logs with several names, directories that are links, and deletes in several attempts. */
import { link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { readDamagedLog } from '../../src/stores/jsonl/readDamagedLog.ts';
import type { LogStore } from '../../src/stores/logStore.ts';
import { conversation, notice, opened, refused, write } from '../../src/testing/storeSuite/storeCase.ts';
import { refuseWhile } from './refusingFileSystem.ts';
import { place } from './storeDirectory.ts';

vi.mock('node:fs/promises', (original) => import('./refusingFileSystem.ts').then(({ refusing }) => refusing(original)));

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
  test('has one directory of blobs for every name', async () => {
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

  test('has its blobs beside the target file, even without the ending .jsonl', async () => {
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
});

describe('a log with a hard link', () => {
  test('INV-5 cannot be opened for writing by either name, and is listed and read by both', async () => {
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

describe('the target of a link is not touched', () => {
  const NUMBERED = ['1', '2', '77'];

  /** A store, and a directory beside it with files that are named like leases. */
  async function beside() {
    const { directory, path } = await place();
    const store = jsonlStore(path('store'));
    const elsewhere = path('elsewhere');
    await mkdir(elsewhere);
    for (const name of NUMBERED) await writeFile(path(`elsewhere/${name}`), name);
    const untouched = async () => {
      expect((await readdir(elsewhere)).sort()).toEqual([...NUMBERED].sort());
      for (const name of NUMBERED) expect(await readFile(path(`elsewhere/${name}`), 'utf8')).toBe(name);
    };
    return { directory, path, store, elsewhere, untouched };
  }

  for (const [folder, what] of [
    ['c.jsonl.lock', 'leases'],
    ['c.blobs', 'blobs'],
  ] as const) {
    test(`a directory of ${what} that is a link is refused by every method, and its target is not touched`, async () => {
      const { store, path, elsewhere, untouched } = await beside();
      await write(store, 'c', [conversation('c')]);
      await rm(path(`store/${folder}`), { recursive: true, force: true });
      await symlink(elsewhere, path(`store/${folder}`));
      await expect(store.open('c')).rejects.toThrow(`${folder}, it is a link: move it away`);
      await refused('store', () => store.open('c'));
      await refused('store', () => store.delete('c'));
      expect((await store.list()).map(({ id }) => id)).toEqual(['c']);
      await untouched();
      await rm(path(`store/${folder}`));
      await opened(store, 'c', (handle) => handle.append([notice('c', 1)], 1));
    });
  }

  test('a directory that becomes a link while a conversation is open is refused at its next use', async () => {
    const { store, path, elsewhere, untouched } = await beside();
    const handle = await store.open('c');
    const reference = (await handle.putBlob?.(bytes('one'), 'text/plain')) ?? '';
    await rename(path('store/c.blobs'), path('blobs'));
    await symlink(path('blobs'), path('store/c.blobs'));
    await refused('store', () => handle.getBlob?.(reference));
    await rm(path('store/c.blobs'));
    await symlink(elsewhere, path('store/c.blobs'));
    await refused('store', () => handle.putBlob?.(bytes('two'), 'text/plain'));
    await rm(path('store/c.jsonl.lock'), { recursive: true });
    await symlink(elsewhere, path('store/c.jsonl.lock'));
    await refused('store_conflict', () => handle.append([notice('c', 0)], 0));
    await handle.close();
    await untouched();
  });

  test("a link among the leases is nobody's, is not read, and goes without what it leads to", async () => {
    const { store, path, untouched } = await beside();
    await write(store, 'c', [conversation('c')]);
    const own = await store.open('other');
    await symlink(path('store/other.jsonl.lock/1'), path('store/c.jsonl.lock/4'));
    await symlink(path('elsewhere/77'), path('store/c.jsonl.lock/5'));
    await opened(store, 'c', (handle) => handle.append([notice('c', 1)], 1));
    expect(await readdir(path('store/c.jsonl.lock'))).toEqual(['6']);
    await own.append([notice('other', 0)], 0);
    await own.close();
    await untouched();
  });

  for (const [name, link] of [
    ['the log is a link out of the store', 'c.jsonl'],
    ['a directory on the way is one', 'way'],
  ] as const) {
    test(`if ${name}, the log cannot be opened or deleted, and is still listed`, async () => {
      const { store, path } = await beside();
      const other = jsonlStore(path('other'));
      await write(other, 'c', [conversation('c')]);
      await put(other, 'c', 'theirs');
      await write(store, 'd', [conversation('d')]);
      await symlink(link === 'way' ? path('other') : path('other/c.jsonl'), path(`store/${link}`));
      if (link === 'way') await symlink('way/c.jsonl', path('store/c.jsonl'));
      const before = await readdir(path('other'), { recursive: true });
      await refused('not_a_file', () => store.open('c'));
      await expect(store.open('c')).rejects.toThrow('put the file itself in place of the link');
      await refused('not_a_file', () => store.delete('c'));
      expect(await readdir(path('other'), { recursive: true })).toEqual(before);
      expect((await store.list()).map(({ id }) => id)).toContain('c');
    });
  }

  test('a store works if its own directory is reached through a link', async () => {
    const { store, path } = await beside();
    await write(store, 'c', [conversation('c')]);
    await symlink(path('store'), path('name'));
    const named = jsonlStore(path('name'));
    await opened(named, 'c', async (handle) => {
      await handle.append([notice('c', 1)], 1);
      await refused('session_busy', () => store.open('c'));
    });
    await write(named, 'd', [conversation('d')]);
    await named.delete('c');
    expect((await store.list()).map(({ id }) => id)).toEqual(['d']);
  });
});

describe('a delete that fails half-way', () => {
  for (const end of ['/c.blobs', '/c.jsonl']) {
    test(`if ${end.slice(1)} cannot be removed, the conversation stays listed, and the next delete completes`, async () => {
      const { store, directory } = await place();
      await write(store, 'c', [conversation('c')]);
      await put(store, 'c', 'secret');
      await refuseWhile('rm', end, 'EACCES', () => refused('store', () => store.delete('c')));
      expect((await store.list()).map(({ id, status }) => [id, status])).toEqual([['c', 'idle']]);
      await store.delete('c');
      expect(await readdir(directory)).toEqual([]);
    });
  }

  test('if the lease cannot be removed, only an empty lease remains, and the next delete removes it', async () => {
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

  test('a conversation that another process is opening is busy, and an unknown one is ignored', async () => {
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
