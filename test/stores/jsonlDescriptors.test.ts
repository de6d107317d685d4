/** Tests how many files the JSONL store keeps open, and the effects on a conversation whose files were closed. */
import { readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FileOwner, OpenFiles } from '../../src/stores/jsonl/openFiles.ts';
import type { LogHandle } from '../../src/stores/logStore.ts';
import { notice, notices, refused, stored } from '../../src/testing/storeSuite/storeCase.ts';
import { type Place, place } from './storeDirectory.ts';

/** Enough for the first conversations to be closed by the last ones. */
const MANY = 230;

class Owner implements FileOwner {
  hasOpenFiles = true;
  async suspend() {
    this.hasOpenFiles = false;
  }
}

const ids = Array.from({ length: MANY }, (_, number) => `c${number}`);

/** The first two are opened before the others, so that their files are the first to be closed. */
async function openMany({ store }: Place): Promise<LogHandle[]> {
  const [first = '', second = '', ...others] = ids;
  const early = [await store.open(first), await store.open(second)];
  return [...early, ...(await Promise.all(others.map((id) => store.open(id))))];
}

/** The open files of this process within a directory. */
async function openFilesIn(directory: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd');
  const paths = await Promise.all(descriptors.map((number) => readlink(`/proc/self/fd/${number}`).catch(() => '')));
  return paths.filter((path) => path.startsWith(directory)).length;
}

const closeAll = (handles: readonly LogHandle[]) => Promise.all(handles.map((handle) => handle.close()));

test('files that were used last stay open, and work waits while too many are in use', async () => {
  const files = new OpenFiles(2);
  const [first, second, third] = [new Owner(), new Owner(), new Owner()];
  for (const owner of [first, second]) files.keep(owner);
  await files.use(async () => {}, first);
  await files.use(async () => {}, third);
  expect([first, second, third].map((owner) => owner.hasOpenFiles)).toEqual([true, false, true]);
  let running = 0;
  let most = 0;
  const work = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
  };
  await Promise.all(Array.from({ length: 9 }, () => files.use(work)));
  expect([most, running]).toEqual([2, 0]);
});

test('work that fails gives its place back', async () => {
  const files = new OpenFiles(1);
  await expect(files.use(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(await files.use(async () => 'done')).toBe('done');
});

test.runIf(process.platform === 'linux')('open conversations have a bounded number of files, at work too', async () => {
  const found = await place();
  const handles = await openMany(found);
  expect(await openFilesIn(found.directory)).toBeLessThanOrEqual(400);
  await Promise.all(ids.map((id, index) => handles[index]?.append(notices(id, 0, 2), 0)));
  expect(await openFilesIn(found.directory)).toBeLessThanOrEqual(400);
  await refused('session_busy', () => found.store.open('c0'));
  await closeAll(handles);
  expect(await openFilesIn(found.directory)).toBe(0);
  for (const id of ['c0', `c${MANY - 1}`]) expect(await stored(found.store, id)).toEqual(notices(id, 0, 2));
  const reopened = await found.store.open('c0');
  await reopened.close();
});

test('an append is refused where the log was replaced or deleted while its file was closed', async () => {
  const found = await place();
  const handles = await openMany(found);
  const text = await readFile(found.path('c9.jsonl'));
  await rm(found.path('c0.jsonl'));
  await rm(found.path('c1.jsonl'));
  await writeFile(found.path('c1.jsonl'), `${text}{"seq":0,"at":1,"type":"notice","code":"n"}\n`);
  for (const index of [0, 1]) {
    await refused('store_conflict', () => handles[index]?.append([notice(`c${index}`, 0)], 0));
  }
  await closeAll(handles);
});

test('an append is refused where the lease was removed or taken over while its file was closed', async () => {
  const found = await place();
  const handles = await openMany(found);
  const leaseOf = (id: string) => found.path(`${id}.jsonl.lock`);
  await rm(leaseOf('c0'), { recursive: true });
  // Written in place, so that even the inode is the same.
  const [name = ''] = await readdir(leaseOf('c1'));
  const lease = JSON.parse(await readFile(join(leaseOf('c1'), name), 'utf8'));
  await writeFile(join(leaseOf('c1'), name), JSON.stringify({ ...lease, key: 'another' }));
  for (const index of [0, 1]) {
    await refused('store_conflict', () => handles[index]?.append([notice(`c${index}`, 0)], 0));
  }
  await closeAll(handles);
  // A lease that another holder took over is not changed.
  expect(JSON.parse(await readFile(join(leaseOf('c1'), name), 'utf8'))).toMatchObject({ key: 'another' });
});
