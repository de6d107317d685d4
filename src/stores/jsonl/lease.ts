/**
 * The lease of one log: a directory with one file for each lease, named by an increasing number (the fencing token). A
 * file counts while its process is alive; an empty or unreadable file counts as released. A process takes a lease in
 * three steps: it creates the next file, which only one can, writes its identity into it, and keeps the lease only if
 * no other living lease exists and its own file is still there. Invariant: at most one process has the lease, and the
 * lease of a dead process is free at once. Only a holder deletes files. Links are not followed.
 */

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RunchartError, SessionBusyError } from '../../errors.ts';
import type { Holder } from '../conversationRow.ts';
import { codeOf, refuseNoFolder, SAFE_FLAGS, statNow, storeError, writeAll } from './fileSystem.ts';
import { identityIn, isAlive, isSameProcess, ownIdentity, type ProcessIdentity } from './processIdentity.ts';

const ATTEMPTS = 20;
/** The release functions of this process that failed, with the directory of each. They run again before a new lease. */
const unreleased = new Map<() => Promise<void>, string>();

export interface Lease {
  readonly token: number;
  /** Called before every append. Throws RunchartError `store` if the system refuses. */
  holds(): boolean;
  /** Closes its file until `resume`, which finds out whether the lease is still held. */
  suspend(): Promise<void>;
  /** Rejects with RunchartError `store` if the system refuses. */
  resume(): Promise<void>;
  /** Rejects with RunchartError `store` if the system refuses. It can be called again. */
  release(): Promise<void>;
  /** Releases the lease and removes its directory. For a log that is deleted. */
  remove(): Promise<void>;
}

/** Throws SessionBusyError while another holder is alive, and RunchartError `store`. `what` names the log in messages. */
export async function takeLease(folder: string, what: string): Promise<Lease> {
  for (const [release, where] of unreleased) if (where === folder) await release();
  const missing: unknown[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // Two processes that tried at once have both released their files.
    if (attempt > 0) await pause(attempt);
    try {
      const lease = await tryTake(folder, what);
      if (lease) return lease;
    } catch (cause) {
      // The directory was removed with a deleted log, or cannot exist.
      if (codeOf(cause) !== 'ENOENT') throw storeError(`cannot take the lease ${folder}`, cause);
      missing.push(cause);
    }
  }
  if (missing.length === ATTEMPTS) throw storeError(`cannot take the lease ${folder}`, missing[0]);
  throw new SessionBusyError(`${what} is being opened by several at once: try again`);
}

/** Returns the current holder without taking the lease. */
export async function holderOf(folder: string): Promise<Holder> {
  const living = (await leasesIn(folder)).filter((lease) => lease.living !== null);
  const own = ownIdentity();
  if (living.length === 0) return 'nobody';
  return living.every(({ living: holder }) => holder && isSameProcess(holder, own)) ? 'self' : 'other';
}

/** Resolves to null after a collision, and rejects with ENOENT without a directory. Both are tried again. */
async function tryTake(folder: string, what: string): Promise<Lease | null> {
  const before = await leasesIn(folder);
  const holder = before.find((lease) => lease.living !== null)?.living;
  if (holder) {
    const where = isSameProcess(holder, ownIdentity()) ? 'this process' : `process ${holder.pid} on ${holder.host}`;
    throw new SessionBusyError(`${what} is open in ${where}: close it there, or wait for that process to end`);
  }
  const token = 1 + Math.max(0, ...before.map((lease) => lease.token));
  if (token > LAST_TOKEN) {
    const expected = `expected the leases in ${folder} to be numbered below ${LAST_TOKEN}`;
    throw new RunchartError('store', `${expected}: move ${folder} away when ${what} is open nowhere`);
  }
  const path = join(folder, String(token));
  const file = await create(folder, path);
  return file && (await keep(folder, path, token, file));
}

/** Releases the lease and resolves to null if it cannot be kept. */
async function keep(folder: string, path: string, token: number, file: FileHandle): Promise<Lease | null> {
  let lease: Lease | null = null;
  let kept: Lease | null = null;
  try {
    // The key distinguishes this lease from a later one of the same process.
    const text = JSON.stringify({ ...ownIdentity(), token, key: randomUUID() });
    lease = heldLease({ folder, path, token, inode: (await file.stat()).ino, text }, file);
    await writeAll(file, Buffer.from(text));
    const alone = (await leasesIn(folder, token)).every(({ living }) => living === null);
    // A holder that read this file while it was empty has deleted it before its own release, so this is checked last.
    if (alone && lease.holds()) {
      await deleteEnded(folder, token);
      kept = lease;
    }
  } finally {
    if (kept === null) await (lease?.release() ?? file.close());
  }
  return kept;
}

/** Resolves to null if another process was first. */
async function create(folder: string, path: string): Promise<FileHandle | null> {
  try {
    // Not recursive, because Node would report every refusal as ENOENT.
    await mkdir(folder, { mode: 0o700 });
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause;
  }
  try {
    return await open(path, 'wx', 0o600);
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return null;
    throw cause;
  }
}

/** Empties the file by its handle if possible, because the path may belong to another lease now. */
async function emptyFile(path: string, file: FileHandle, inode: number): Promise<void> {
  try {
    await file.truncate(0);
  } catch (cause) {
    // While the handle is open, the inode identifies the lease.
    if (isAt(path, inode)) await unlink(path).catch(() => Promise.reject(cause));
  }
}

/** Deletes earlier leases. Only for a holder: a process that is taking a lease meanwhile loses its file. */
async function deleteEnded(folder: string, token: number): Promise<void> {
  for (const other of await leasesIn(folder, token)) {
    if (other.living === null) await unlink(join(folder, String(other.token))).catch(() => {});
  }
}

/** The open handle prevents reuse of the inode, so the same inode is the same lease. */
function isAt(path: string, inode: number): boolean {
  return statNow(path)?.ino === inode;
}

interface LeaseFile {
  folder: string;
  path: string;
  token: number;
  inode: number;
  text: string;
}

function heldLease(own: LeaseFile, opened: FileHandle): Lease {
  const { folder, path, token, inode } = own;
  let file: FileHandle | null = opened;
  let isLost = false;
  let released: Promise<void> | null = null;
  const suspend = async () => {
    const closing = file;
    file = null;
    // Nothing is written to it, so a failure loses nothing.
    await closing?.close().catch(() => {});
  };
  const resume = async () => {
    if (file || isLost) return;
    file = await reopened(own);
    isLost = file === null;
  };
  const release = () => {
    released ??= releaseNow();
    return released;
  };
  const releaseNow = async () => {
    try {
      await resume();
      if (file) await emptyFile(path, file, inode);
    } catch (cause) {
      released = null;
      unreleased.set(release, folder);
      throw storeError(`cannot give the lease ${path} back`, cause);
    }
    unreleased.delete(release);
    // Closed last, because the inode identifies the lease only while the file is open.
    await suspend();
  };
  return {
    token,
    holds: () => !isLost && isAt(path, inode),
    suspend,
    resume,
    release,
    async remove() {
      try {
        await resume();
        await deleteEnded(folder, token);
        if (file && isAt(path, inode)) await unlink(path);
      } catch (cause) {
        await release();
        throw storeError(`cannot remove the lease ${path}`, cause);
      }
      released = Promise.resolve();
      await suspend();
      // The directory is not empty if another process has begun to take a lease.
      await rmdir(folder).catch(() => {});
    },
  };
}

/** Resolves to null if the file is that of another lease, or is gone. */
async function reopened({ path, text }: LeaseFile): Promise<FileHandle | null> {
  let file: FileHandle | null = null;
  try {
    file = await open(path, constants.O_RDWR | SAFE_FLAGS);
    if ((await readBegin(file)) === text) return file;
  } catch (cause) {
    if (!NO_LEASE.includes(codeOf(cause))) {
      await file?.close();
      throw storeError(`cannot look at the lease ${path}`, cause);
    }
  }
  await file?.close();
  return null;
}

async function readBegin(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_LEASE_BYTES), 0, MAX_LEASE_BYTES, 0);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Numbers of up to 15 digits are exact. Greater ones are ignored. */
const LAST_TOKEN = 999_999_999_999_999;
const TOKEN = /^[1-9]\d{0,14}$/;
const MAX_LEASE_BYTES = 4096;

interface FoundLease {
  token: number;
  /** Null for a released lease and for a dead process. */
  living: ProcessIdentity | null;
}

/** Reads all leases but the caller's own. Throws RunchartError `store` if the path is not a directory. */
async function leasesIn(folder: string, own?: number): Promise<FoundLease[]> {
  refuseNoFolder(folder);
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw cause;
  }
  const tokens = names
    .filter((name) => TOKEN.test(name))
    .map(Number)
    .filter((token) => token !== own);
  return Promise.all(
    tokens.map(async (token) => {
      const holder = await holderIn(join(folder, String(token)));
      return { token, living: holder && isAlive(holder) ? holder : null };
    }),
  );
}

/** Error codes for a missing file, a directory, a pipe, a socket and a link. */
const NO_LEASE = ['ENOENT', 'EISDIR', 'ESPIPE', 'ENXIO', 'ELOOP'];

/** Resolves to null for an empty file (released) and an unreadable one (after a power loss). */
async function holderIn(path: string): Promise<ProcessIdentity | null> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | SAFE_FLAGS);
    return identityIn(JSON.parse(await readBegin(file)));
  } catch (cause) {
    if (cause instanceof SyntaxError || NO_LEASE.includes(codeOf(cause))) return null;
    throw cause;
  } finally {
    await file?.close();
  }
}
