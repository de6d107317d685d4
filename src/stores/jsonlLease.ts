/**
 * The lease of one log: a folder with a file a lease, named by a number that only grows (the fencing token). Rule: a
 * file counts while the process named in it lives; an empty file is a lease given back. Who wants the log creates the
 * next number, which only one can, writes its name into it, then looks again, and keeps it only if no other living
 * lease is there and, asked last, its own file still is. So a dead holder is followed at once, and of any number of
 * takers at most one holds. Only a holder deletes files, and does so before it gives its own lease back.
 */
import { constants, statSync } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SessionBusyError } from '../errors.ts';
import { codeOf, storeError } from './jsonlDisk.ts';
import { isSameProcess, lives, ownIdentity, type ProcessIdentity } from './processIdentity.ts';
import type { Holder } from './summary.ts';

const MAX_LEASE_BYTES = 4096;
const ATTEMPTS = 20;

export interface Lease {
  readonly token: number;
  /** Cheap: asked before every append. */
  holds(): boolean;
  release(): Promise<void>;
  /** Gives it back and leaves nothing behind; for a log that is deleted. */
  remove(): Promise<void>;
}

/** Throws SessionBusyError while another holder lives. `what` names the log in messages. */
export async function takeLease(folder: string, what: string): Promise<Lease> {
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // Two takers that met have both stepped back.
      if (attempt > 0) await pause(attempt);
      const lease = await tryTake(folder, what);
      if (lease) return lease;
    }
  } catch (cause) {
    throw storeError(`cannot take the lease ${folder}`, cause);
  }
  throw new SessionBusyError(`${what} is being opened by several at once: try again`);
}

/** Who holds it now; takes nothing. */
export async function holderOf(folder: string): Promise<Holder> {
  const living = (await leasesIn(folder)).filter((lease) => lease.living !== null);
  const own = ownIdentity();
  if (living.length === 0) return 'nobody';
  return living.every(({ living: held }) => held && isSameProcess(held, own)) ? 'self' : 'other';
}

/** Null where takers met, or the folder was removed meanwhile: to be tried again. */
async function tryTake(folder: string, what: string): Promise<Lease | null> {
  const before = await leasesIn(folder);
  const holder = before.find((lease) => lease.living !== null)?.living;
  if (holder) {
    const where = isSameProcess(holder, ownIdentity()) ? 'this process' : `process ${holder.pid} on ${holder.host}`;
    throw new SessionBusyError(`${what} is open in ${where}: close it there, or wait for that process to end`);
  }
  const token = 1 + Math.max(0, ...before.map((lease) => lease.token));
  const path = join(folder, String(token));
  const file = await create(folder, path);
  if (file === null) return null;
  let lease: Lease | null = null;
  try {
    await file.write(JSON.stringify({ ...ownIdentity(), token }));
    const { ino } = await file.stat();
    const alone = (await leasesIn(folder)).every((other) => other.token === token || other.living === null);
    // A holder that took this file for an empty one deleted it before it gave its own lease back, so this is asked last.
    if (alone && isAt(path, ino)) {
      await clear(folder, token);
      lease = heldLease(folder, path, token, file, ino);
    }
  } finally {
    if (lease === null) await giveBack(file);
  }
  return lease;
}

async function create(folder: string, path: string): Promise<FileHandle | null> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return null;
    throw cause;
  }
  try {
    return await open(path, 'wx', 0o600);
  } catch (cause) {
    if (['EEXIST', 'ENOENT'].includes(codeOf(cause))) return null;
    throw cause;
  }
}

/** By handle, not by path: at the path there may be another lease by now. */
async function giveBack(file: FileHandle): Promise<void> {
  try {
    await file.truncate(0);
  } finally {
    await file.close();
  }
}

/** Deletes what is left of earlier leases. Only for a holder: a taker that is overtaken by this finds its file gone. */
async function clear(folder: string, token: number): Promise<void> {
  for (const other of await leasesIn(folder)) {
    if (other.token === token || other.living !== null) continue;
    await unlink(join(folder, String(other.token))).catch(() => {});
  }
}

/** The open handle keeps the inode from being used again, so the same inode at the path is the same lease. */
function isAt(path: string, inode: number): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino === inode;
}

function heldLease(folder: string, path: string, token: number, file: FileHandle, inode: number): Lease {
  return {
    token,
    holds: () => isAt(path, inode),
    release: () => giveBack(file),
    async remove() {
      await clear(folder, token);
      if (isAt(path, inode)) await unlink(path);
      await file.close();
      // Not empty where the next taker is there already.
      await rmdir(folder).catch(() => {});
    },
  };
}

async function leasesIn(folder: string): Promise<{ token: number; living: ProcessIdentity | null }[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw cause;
  }
  const tokens = names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number);
  return Promise.all(
    tokens.map(async (token) => {
      const holder = await holderIn(join(folder, String(token)));
      return { token, living: holder && lives(holder) ? holder : null };
    }),
  );
}

/** Null for an empty file (given back) and for one that cannot be read as a lease (lost with the power). */
async function holderIn(path: string): Promise<ProcessIdentity | null> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_LEASE_BYTES), 0, MAX_LEASE_BYTES, 0);
    return identityIn(JSON.parse(buffer.toString('utf8', 0, bytesRead)));
  } catch (cause) {
    if (cause instanceof SyntaxError || ['ENOENT', 'EISDIR'].includes(codeOf(cause))) return null;
    throw cause;
  } finally {
    await file?.close();
  }
}

function identityIn(found: unknown): ProcessIdentity | null {
  if (typeof found !== 'object' || found === null) return null;
  const { pid, started = null, space, host } = found as { [key: string]: unknown };
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return null;
  if (typeof space !== 'string' || typeof host !== 'string') return null;
  return { pid, started: typeof started === 'string' ? started : null, space, host };
}
