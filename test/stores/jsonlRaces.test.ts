/** Tests races of several openers at their exact moment. Invariant: the real store acts as the other opener. */
import { type FileHandle, link, mkdir, open, readdir, realpath, rm } from 'node:fs/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { takeLease } from '../../src/stores/jsonl/lease.ts';
import { notice, opened, stored, write } from '../../src/testing/storeSuite/storeCase.ts';
import { place } from './storeDirectory.ts';

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  return { ...real, realpath: vi.fn(real.realpath), mkdir: vi.fn(real.mkdir) };
});

const probe = await open(process.execPath);
const fileHandle = Object.getPrototypeOf(probe) as { write(...rest: unknown[]): Promise<unknown> };
await probe.close();

afterEach(() => {
  vi.restoreAllMocks();
});

/** Calls the function after a taker has created its lease file and before it writes its name into it. */
function beforeTheNameIsWritten(happens: () => Promise<void>): void {
  const real = fileHandle.write;
  vi.spyOn(fileHandle, 'write').mockImplementationOnce(async function (this: FileHandle, ...rest) {
    await happens();
    return real.apply(this, rest);
  });
}

function moment(): { come: Promise<void>; arrive(): void } {
  let arrive = () => {};
  const come = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return { come, arrive: () => arrive() };
}

test('a process whose lease file was deleted by a former holder takes another one', async () => {
  const { path } = await place();
  const folder = path('lock');
  beforeTheNameIsWritten(async () => {
    const passing = await takeLease(folder, 'it');
    expect(await readdir(folder)).toEqual(['2']);
    await passing.release();
  });
  const lease = await takeLease(folder, 'it');
  expect(lease.holds()).toBe(true);
  expect(await readdir(folder)).toEqual(['3']);
  await expect(takeLease(folder, 'it')).rejects.toMatchObject({ code: 'session_busy' });
  await lease.release();
});

test('a process that finds another holder releases its file and keeps that lease intact', async () => {
  const { path } = await place();
  const folder = path('lock');
  const held: { holds(): boolean; release(): Promise<void> }[] = [];
  beforeTheNameIsWritten(async () => {
    held.push(await takeLease(folder, 'it'));
  });
  await expect(takeLease(folder, 'it')).rejects.toMatchObject({ code: 'session_busy' });
  expect(held.map((lease) => lease.holds())).toEqual([true]);
  for (const lease of held) await lease.release();
});

test('exactly one of two processes that write their identities at once gets the lease', async () => {
  const { path } = await place();
  const folder = path('lock');
  const [secondThere, firstWritten, secondWritten] = [moment(), moment(), moment()];
  const real = fileHandle.write;
  let second: Promise<unknown> = Promise.resolve();
  const writes = vi.spyOn(fileHandle, 'write');
  writes.mockImplementationOnce(async function (this: FileHandle, ...rest) {
    second = takeLease(folder, 'it');
    await secondThere.come;
    const written = await real.apply(this, rest);
    firstWritten.arrive();
    await secondWritten.come;
    return written;
  });
  writes.mockImplementationOnce(async function (this: FileHandle, ...rest) {
    secondThere.arrive();
    await firstWritten.come;
    const written = await real.apply(this, rest);
    secondWritten.arrive();
    return written;
  });
  const first = takeLease(folder, 'it');
  const results = await Promise.allSettled([first, secondThere.come.then(() => second)]);
  expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
  const refusal = results.find((result) => result.status === 'rejected');
  expect(refusal).toMatchObject({ reason: { code: 'session_busy' } });
});

test('a process whose lease directory was deleted with the log tries again', async () => {
  const { path } = await place();
  const folder = path('lock');
  beforeTheNameIsWritten(async () => {
    await (await takeLease(folder, 'it')).remove();
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
  });
  const lease = await takeLease(folder, 'it');
  expect(lease.holds()).toBe(true);
  await lease.release();
  vi.mocked(mkdir).mockImplementationOnce(async () => {
    throw Object.assign(new Error('removed meanwhile'), { code: 'ENOENT' });
  });
  const next = await takeLease(folder, 'it');
  expect(next.holds()).toBe(true);
  await next.release();
});

test('INV-5 a log that gets a hard link during opening is refused, and the lease is released', async () => {
  const { store, path } = await place();
  await write(store, 'c', [notice('c', 0)]);
  const real = (await vi.importActual<typeof import('node:fs/promises')>('node:fs/promises')).mkdir;
  vi.mocked(mkdir).mockImplementationOnce(async (folder, options) => {
    await link(path('c.jsonl'), path('h.jsonl'));
    return real(folder, options);
  });
  await expect(store.open('c')).rejects.toMatchObject({ code: 'not_a_file' });
  await rm(path('h.jsonl'));
  expect(await stored(store, 'c')).toEqual([notice('c', 0)]);
});

test('a log that another process creates during opening is opened', async () => {
  const { store } = await place();
  const real = (await vi.importActual<typeof import('node:fs/promises')>('node:fs/promises')).realpath;
  vi.mocked(realpath).mockImplementationOnce(async (path) => {
    const missing = await real(path).catch((error: unknown) => error);
    await write(store, 'c', [notice('c', 0)]);
    throw missing;
  });
  await opened(store, 'c', (handle) => handle.append([notice('c', 1)], 1));
  expect(await stored(store, 'c')).toEqual([notice('c', 0), notice('c', 1)]);
});
