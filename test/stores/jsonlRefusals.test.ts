/** Tests refusals of the system: a typed error contains the reason of the system. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import {
  conversation,
  notice,
  notices,
  opened,
  refused,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { children } from './childProcess.ts';
import { fileHandle } from './failingDisk.ts';
import { refuseWhile } from './refusingFileSystem.ts';
import { type Place, place } from './storeDirectory.ts';

vi.mock('node:fs', (original) => import('./refusingFileSystem.ts').then(({ refusing }) => refusing(original)));
vi.mock('node:fs/promises', (original) => import('./refusingFileSystem.ts').then(({ refusing }) => refusing(original)));

const run = children();
afterEach(() => {
  vi.restoreAllMocks();
});

/** A program to which the directory is a disk of its own, with these options. */
const asRoot = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
const within = (directory: string, options: string) => {
  const mount = `mount -t tmpfs -o ${options} none "$0" && exec "$@"`;
  return ['unshare', ...asRoot, '--mount', 'sh', '-c', mount, directory];
};
const [command = '', ...args] = within(tmpdir(), 'size=64k');
const possible = spawnSync(command, [...args, 'true']).status === 0;

describe.skipIf(!possible)('a disk that allows no new file', () => {
  const TRY = `
    const tried = async (within, id) => {
      await jsonlStore(within).open(id).then(() => say('open'), (error) => say(error.code + ' ' + error.message));
    };
    await tried(directory, 'new');
    await tried(directory + '/deep/er', 'c');
  `;

  test('H-152 a new conversation on a read-only disk is refused with that reason, not as busy', async () => {
    const { directory } = await place();
    const script = `
      import { execFileSync } from 'node:child_process';
      execFileSync('mount', ['-o', 'remount,ro', directory]);
      ${TRY}`;
    const child = run(directory, script, within(directory, 'size=64k'));
    expect(await child.line()).toMatch(/^store cannot take the lease .*EROFS/);
    expect(await child.line()).toMatch(/^store cannot create the directory .*EROFS/);
  });

  test('H-152 a new conversation on a disk without free inodes is refused with that reason, not as busy', async () => {
    const { directory } = await place();
    const script = `
      import { writeFileSync } from 'node:fs';
      try { for (let number = 0; ; number += 1) writeFileSync(directory + '/' + number, ''); } catch {}
      ${TRY}`;
    const child = run(directory, script, within(directory, 'size=64k,nr_inodes=20'));
    expect(await child.line()).toMatch(/^store cannot take the lease .*ENOSPC/);
    expect(await child.line()).toMatch(/^store cannot create the directory .*ENOSPC/);
  });
});

describe('a lease that cannot be taken', () => {
  test('a lease directory that is a dangling link is a failure of the store, not a busy conversation', async () => {
    const { store, path } = await place();
    await symlink(path('nowhere'), path('c.jsonl.lock'));
    await refused('store', () => store.open('c'));
    await rm(path('c.jsonl.lock'));
    await write(store, 'c', [notice('c', 0)]);
  });

  test('the next opener after the lease with the greatest number is refused', async () => {
    const { store, path } = await place();
    await write(store, 'c', [notice('c', 0)]);
    for (const last of ['999999999999998', '999999999999999']) {
      await writeFile(path(`c.jsonl.lock/${last}`), '');
      if (last.endsWith('9')) await expect(store.open('c')).rejects.toThrow('c.jsonl.lock away');
      else await opened(store, 'c', () => refused('session_busy', () => store.open('c')));
    }
    await refused('store', () => store.open('c'));
    await rm(path('c.jsonl.lock'), { recursive: true });
    expect(await stored(store, 'c')).toEqual([notice('c', 0)]);
  });

  test('a lease is written completely, even if the system splits the write', async () => {
    const { directory, store, path } = await place();
    const real = fileHandle.write;
    vi.spyOn(fileHandle, 'write').mockImplementation(function (this: unknown, data, offset = 0) {
      const bytes = typeof data === 'string' ? Buffer.from(data) : data;
      return real.call(this as never, bytes, offset, Math.min(bytes.length - offset, 7), null);
    });
    await opened(store, 'c', async () => {
      expect(JSON.parse(await readFile(path('c.jsonl.lock/1'), 'utf8'))).toMatchObject({ pid: process.pid, token: 1 });
      await refused('session_busy', () => jsonlStore(directory).open('c'));
    });
  });
});

describe('a list', () => {
  test('a conversation with an unreadable lease is listed as active', async () => {
    const { store, path } = await place();
    await write(store, 'c', [conversation('c')]);
    await rm(path('c.jsonl.lock'), { recursive: true });
    await writeFile(path('c.jsonl.lock'), '');
    expect((await store.list()).map(({ id, status }) => [id, status])).toEqual([['c', 'active']]);
  });

  test('a pipe among the leases is ignored, and the conversation opens and is listed', async () => {
    const { store, path } = await place();
    await write(store, 'c', [conversation('c')]);
    execFileSync('mkfifo', [path('c.jsonl.lock/2')]);
    expect((await store.list()).map(({ id, status }) => [id, status])).toEqual([['c', 'idle']]);
    await opened(store, 'c', (handle) => handle.append([notice('c', 1)], 1));
  });
});

describe('an append that cannot check its file', () => {
  const changes: [name: string, change: (found: Place) => Promise<unknown>][] = [
    ['a file', ({ directory }) => writeFile(directory, '')],
    ['a link to itself', ({ directory }) => symlink(directory, directory)],
  ];
  for (const [name, change] of changes) {
    test(`H-156 if ${name} has replaced the directory, an append is a store conflict`, async () => {
      const found = await place();
      const handle = await found.store.open('c');
      await handle.append([notice('c', 0)], 0);
      await rename(found.directory, `${found.directory}.moved`);
      await change(found);
      await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
      await rm(found.directory);
      await rename(`${found.directory}.moved`, found.directory);
      await handle.append([notice('c', 1)], 1);
      await handle.close();
      expect(await stored(found.store, 'c')).toEqual(notices('c', 0, 2));
    });
  }

  test('H-156 an append that may not check its lease or log is refused with code store, and succeeds later', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      await handle.append([notice('c', 0)], 0);
      for (const end of ['/c.jsonl.lock/1', '/c.jsonl']) {
        await refuseWhile('statSync', end, 'EACCES', () => refused('store', () => handle.append([notice('c', 1)], 1)));
      }
      await handle.append([notice('c', 1)], 1);
    });
    expect(await stored(store, 'c')).toEqual(notices('c', 0, 2));
  });
});

describe('a close that fails', () => {
  test('a lease file that cannot be emptied is deleted', async () => {
    const { store, path } = await place();
    const handle = await store.open('c');
    vi.spyOn(fileHandle, 'truncate').mockRejectedValueOnce(new Error('EPERM'));
    await handle.close();
    expect(await readdir(path('c.jsonl.lock'))).toEqual([]);
    await opened(store, 'c', async () => {});
  });

  test('the lease is released even if the file cannot be closed: another agent opens the conversation', async () => {
    const { directory, store } = await place();
    const [mine, other] = [store, jsonlStore(directory)].map((of) =>
      createAgent({ model: scriptedModel(['yes']), store: of, cwd: '/' }),
    );
    await mine?.open('c');
    await refuseWhile('close', '/c.jsonl', 'EIO', () => refused('store', () => mine?.close()));
    const conversation = await other?.open('c');
    expect(await conversation?.send('go on').text).toBe('yes');
    await other?.close();
  });

  for (const again of ['called again', 'not called again']) {
    test(`a close that cannot release the lease rejects; after the release the conversation opens, close ${again}`, async () => {
      const { store } = await place();
      const handle = await store.open('c');
      vi.spyOn(fileHandle, 'truncate').mockRejectedValue(new Error('EPERM'));
      await refuseWhile('unlink', '/c.jsonl.lock/1', 'EPERM', async () => {
        for (let time = 0; time < 2; time += 1) await refused('store', () => handle.close());
        await refused('closed', () => handle.append([notice('c', 0)], 0));
        await refused('store', () => store.open('c'));
        await refused('store', () => store.delete('c'));
      });
      vi.restoreAllMocks();
      if (again === 'called again') await handle.close();
      await opened(store, 'c', (next) => next.append([notice('c', 0)], 0));
      await handle.close();
      await refused('closed', () => handle.append([notice('c', 1)], 1));
    });
  }
});

describe("durability 'power'", () => {
  test('bytes and their name are durable before putBlob resolves to their reference', async () => {
    const { directory } = await place();
    const synced: number[] = [];
    for (const name of ['datasync', 'sync'] as const) {
      const real = fileHandle[name];
      vi.spyOn(fileHandle, name).mockImplementation(async function (this: { stat(): Promise<{ ino: number }> }) {
        synced.push((await this.stat()).ino);
        return real.call(this);
      });
    }
    await opened(jsonlStore(directory), 'c', async (handle) => {
      await handle.putBlob?.(new Uint8Array([1]), 'image/png');
    });
    expect(synced).toEqual([]);
    await opened(jsonlStore(directory, { durability: 'power' }), 'c', async (handle) => {
      synced.length = 0;
      const reference = await handle.putBlob?.(new Uint8Array([2]), 'image/png');
      const folder = join(directory, 'c.blobs');
      const file = join(folder, reference?.split(':')[1] ?? '');
      expect(synced.slice(-2)).toEqual([(await stat(file)).ino, (await stat(folder)).ino]);
    });
  });

  test("a log that was begun with durability 'process' has its name and its directory's made durable when it is opened with 'power'", async () => {
    const { directory, store } = await place();
    await write(store, 'c', [notice('c', 0)]);
    const synced: number[] = [];
    const real = fileHandle.sync;
    vi.spyOn(fileHandle, 'sync').mockImplementation(async function (this: { stat(): Promise<{ ino: number }> }) {
      synced.push((await this.stat()).ino);
      return real.call(this);
    });
    await opened(jsonlStore(directory, { durability: 'power' }), 'c', async () => {
      expect(synced).toEqual(
        expect.arrayContaining([(await stat(directory)).ino, (await stat(dirname(directory))).ino]),
      );
    });
  });
});
