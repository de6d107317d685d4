/** Tests the JSONL store: the contract of stores, directory, file names, blobs and options. */
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { fileNameOf, idOf } from '../../src/stores/jsonl/fileName.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { mayExist } from '../../src/stores/logStore.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import {
  all,
  conversation,
  notice,
  notices,
  opened,
  refused,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { children } from './childProcess.ts';
import { place } from './storeDirectory.ts';

const run = children();

/** The first tier writes ten thousand entries, and a hundred thousand only into memory. */
const alsoLong = (name: string, body: () => Promise<void>): void =>
  test.skipIf(!proves && name.includes('hundred thousand'))(name, body);

describe("jsonlStore with durability 'process'", () => {
  logStoreSuite(async () => (await place()).store, { describe, test: alsoLong });
});

describe("jsonlStore with durability 'power'", () => {
  const makeStore = async () => jsonlStore((await place()).directory, { durability: 'power' });
  // The cases are those above, and each entry waits for the disk.
  const names: string[] = [];
  logStoreSuite(makeStore, { describe: (_, body) => body(), test: (name) => void names.push(name) });
  const taken = new Set(sampled(names, volume.storeCaseOf));
  logStoreSuite(makeStore, {
    describe,
    test: (name, body) => (taken.has(name) ? alsoLong(name, body) : test.skip(name, body)),
  });
});

describe('files', () => {
  test('H-157 files are created 0600 and directories 0700, whatever the umask', async () => {
    const { path } = await place();
    const script = `
      process.umask(0);
      const handle = await jsonlStore(directory, { durability: 'power' }).open('c');
      await handle.append([entry(0)], 0);
      await handle.putBlob(new Uint8Array(3), 'image/png');
      say('done');
    `;
    expect(await run(path('deep/er'), script).line()).toBe('done');
    const mode = async (name: string) => ((await stat(path(name))).mode & 0o777).toString(8);
    for (const name of ['deep', 'deep/er', 'deep/er/c.jsonl.lock', 'deep/er/c.blobs'])
      expect(await mode(name)).toBe('700');
    const [blob] = await readdir(path('deep/er/c.blobs'));
    for (const name of ['c.jsonl', 'c.jsonl.lock/1', `c.blobs/${blob}`])
      expect(await mode(`deep/er/${name}`)).toBe('600');
  });

  test('H-148 a directory, a pipe, a device and a link to one of them are not logs', async () => {
    const { store, path } = await place();
    await mkdir(path('directory.jsonl'));
    execFileSync('mkfifo', [path('pipe.jsonl')]);
    await symlink('/dev/zero', path('device.jsonl'));
    await symlink(path('pipe.jsonl'), path('link.jsonl'));
    await symlink(path('loop.jsonl'), path('loop.jsonl'));
    await symlink(path('nowhere'), path('dangling.jsonl'));
    for (const id of ['directory', 'pipe', 'device', 'link', 'loop', 'dangling']) {
      await refused('not_a_file', () => store.open(id));
      await refused('not_a_file', () => store.delete(id));
    }
    expect(await store.list()).toEqual([]);
    expect(await readdir(path('.'))).not.toContain('nowhere');
  });

  test('H-148 a link to a log is followed once and its target checked', async () => {
    const { store, path } = await place();
    await write(store, 'real', [notice('real', 0)]);
    await symlink(path('real.jsonl'), path('link.jsonl'));
    await opened(store, 'link', (handle) => handle.append([notice('real', 1)], 1));
    expect(await stored(store, 'real')).toEqual(notices('real', 0, 2));
  });

  test('a path that is not a file is reported before a busy lease, and a busy lease before damage', async () => {
    const { store, path } = await place();
    const handle = await store.open('c');
    await writeFile(path('c.jsonl'), 'damaged\n');
    await refused('session_busy', () => store.open('c'));
    await handle.close();
    await refused('no_header', () => store.open('c'));
  });

  test('a delete removes the log, the blobs and the lease', async () => {
    const { store, path } = await place();
    await opened(store, 'c', async (handle) => {
      await handle.append([conversation('c')], 0);
      await handle.putBlob?.(new Uint8Array(9), 'image/png');
    });
    expect((await readdir(path('.'))).sort()).toEqual(['c.blobs', 'c.jsonl', 'c.jsonl.lock']);
    await store.delete('c');
    expect(await readdir(path('.'))).toEqual([]);
  });

  test('a list skips other files, reads damaged logs as far as possible, and creates nothing', async () => {
    const { store, directory, path } = await place();
    await write(store, 'c', [conversation('c'), notice('c', 1)]);
    await truncate(path('c.jsonl'), (await stat(path('c.jsonl'))).size - 5);
    await writeFile(path('notes.txt'), 'x');
    await writeFile(path('a b.jsonl'), 'x');
    await writeFile(path('%zz.jsonl'), 'x');
    expect((await store.list()).map((found) => [found.id, found.cwd])).toEqual([['c', '/home/case']]);
    expect(await jsonlStore(`${directory}/none`).list()).toEqual([]);
    await expect(stat(`${directory}/none`)).rejects.toThrow('ENOENT');
  });
});

describe('names', () => {
  test('an id and its file name correspond, and no name leaves the directory or is hidden', () => {
    const ids = ['a', 'A-1_2.3', '.hidden', '...', 'a b', '%41', 'ä', '日本', "!'()*~", 'a.jsonl', 'con:1', '-x'];
    for (const id of ids) {
      expect(idOf(fileNameOf(id))).toBe(id);
      expect(fileNameOf(id)).toMatch(/^[A-Za-z0-9_%-][A-Za-z0-9_.%-]*\.jsonl$/);
    }
    expect(fileNameOf('3f2a-b')).toBe('3f2a-b.jsonl');
    expect(new Set(ids.map((id) => fileNameOf(id))).size).toBe(ids.length);
  });

  test('an id with separators or control characters, a very long one and an empty one are refused', async () => {
    const { store, path } = await place();
    const ids = ['', '.', '..', '../x', 'a/b', 'a\\b', '/etc/passwd', 'a\0b', 'a\nb', '\ud800', 'a'.repeat(201)];
    const none = [7, 5n, Symbol('a'), null, undefined, {}, { toJSON: () => 5n }];
    for (const id of [...ids, ...none] as string[]) {
      await refused('configuration', () => store.open(id));
      await refused('configuration', () => store.delete(id));
    }
    expect(await readdir(path('.'))).toEqual([]);
    await opened(store, 'a'.repeat(200), (handle) => handle.append([notice('c', 0)], 0));
  });

  test('an id that no file can have is that of a missing conversation, where it must exist', async () => {
    const { store, path } = await place();
    for (const id of ['', '..', '../x', 'a/b', 'a\\b', 'a\0b', '\ud800', 'ü'.repeat(40)]) {
      await refused('not_found', () => store.open(id, { existing: true }));
      await refused('not_found', () => store.open(id, { existing: true, owner: 'ann' }));
      expect(await mayExist(store, id)).toBe(false);
    }
    expect(await readdir(path('.'))).toEqual([]);
  });

  test('an unknown option and an invalid directory are refused', () => {
    for (const options of [{ durability: 'disk' }, { durabilty: 'power' }, { durability: null }]) {
      expect(() => jsonlStore('x', options as never)).toThrow(expect.objectContaining({ code: 'configuration' }));
    }
    for (const directory of ['', 5n, null] as string[]) {
      expect(() => jsonlStore(directory)).toThrow(expect.objectContaining({ code: 'configuration' }));
    }
  });
});

describe('blobs', () => {
  test('a reference contains the hash and the media type of its bytes', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      const reference = await handle.putBlob?.(new TextEncoder().encode('abc'), 'text/plain; charset=utf-8');
      // The SHA-256 of "abc" as FIPS 180 gives it.
      const hash = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
      expect(reference).toBe(`blob:${hash}:text/plain; charset=utf-8`);
    });
    await opened(store, 'c', async (handle) => {
      const bytes = await handle.getBlob?.('blob:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad:x/y');
      expect(new TextDecoder().decode(bytes)).toBe('abc');
    });
  });

  test('invalid references and media types are refused', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      const hash = 'a'.repeat(64);
      for (const bad of [
        '',
        'blob:',
        `blob:${hash}`,
        `blob:../${hash}:a/b`,
        `blob:${hash.toUpperCase()}:a/b`,
        `blob:${hash}:a/b\n`,
      ]) {
        await refused('store', () => handle.getBlob?.(bad));
      }
      await refused('store', () => handle.getBlob?.(`blob:${hash}:image/png`));
      for (const bad of ['', 'png', 'a/b/c', 'a/b\nx', `${'a'.repeat(65)}/b`]) {
        await refused('configuration', () => handle.putBlob?.(new Uint8Array(1), bad));
      }
    });
  });

  test('bytes that do not match their hash, and paths that are not files, are not returned', async () => {
    const { store, path } = await place();
    await opened(store, 'c', async (handle) => {
      const reference = (await handle.putBlob?.(new Uint8Array(4), 'image/png')) ?? '';
      const [name] = await readdir(path('c.blobs'));
      await writeFile(path(`c.blobs/${name}`), 'evil');
      await refused('corrupt', () => handle.getBlob?.(reference));
      execFileSync('mkfifo', [path(`c.blobs/${'b'.repeat(64)}`)]);
      await refused('not_a_file', () => handle.getBlob?.(`blob:${'b'.repeat(64)}:image/png`));
      expect(await all(handle)).toEqual([]);
    });
    const closed = await store.open('c');
    await closed.close();
    await refused('closed', () => closed.putBlob?.(new Uint8Array(1), 'image/png'));
  });
});
