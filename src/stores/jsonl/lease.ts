/**
 * The lease of one log: a folder with one file a lease, named by a number that only grows (the fencing token). Rule: a
 * file counts while the process it names lives; an empty or unreadable file is nobody's; no link is followed. A taker
 * creates the next number, which only one can, writes its name into it, looks again, and keeps the lease only if no
 * other living lease is there and its own file, asked last, still is. So a dead holder is followed at once, and of any
 * number of takers at most one holds. Only a holder deletes files, and does so before it gives its own lease back.
 */

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RunchartError, SessionBusyError } from '../../errors.ts';
import type { Holder } from '../conversationSummary.ts';
import { codeOf, refuseNoFolder, statNow, storeError, writeAll } from './disk.ts';
import { isAlive, isSameProcess, ownIdentity, type ProcessIdentity } from './processIdentity.ts';

const ATTEMPTS = 20;
/** What gives back the leases of this process that the system did not take back, with the folder of each. */
const unreleased = new Map<() => Promise<void>, string>();

export interface Lease {
  readonly token: number;
  /** Cheap: asked before every append. Throws RunchartError `store` where the system does not tell. */
  holds(): boolean;
  /** Rejects with RunchartError `store` where the system refuses; may be called again, and is before the next is taken. */
  release(): Promise<void>;
  /** Gives it back and leaves nothing behind; for a log that is deleted. */
  remove(): Promise<void>;
}

/** Throws SessionBusyError while another holder lives, and RunchartError `store`. `what` names the log in messages. */
export async function takeLease(folder: string, what: string): Promise<Lease> {
  for (const [release, where] of unreleased) if (where === folder) await release();
  const missing: unknown[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // Two takers that met have both stepped back.
    if (attempt > 0) await pause(attempt);
    try {
      const lease = await tryTake(folder, what);
      if (lease) return lease;
    } catch (cause) {
      // The folder was removed meanwhile, with a log that was deleted, or can never be there.
      if (codeOf(cause) !== 'ENOENT') throw storeError(`cannot take the lease ${folder}`, cause);
      missing.push(cause);
    }
  }
  if (missing.length === ATTEMPTS) throw storeError(`cannot take the lease ${folder}`, missing[0]);
  throw new SessionBusyError(`${what} is being opened by several at once: try again`);
}

/** Who holds it now; takes nothing. */
export async function holderOf(folder: string): Promise<Holder> {
  const living = (await leasesIn(folder)).filter((lease) => lease.living !== null);
  const own = ownIdentity();
  if (living.length === 0) return 'nobody';
  return living.every(({ living: held }) => held && isSameProcess(held, own)) ? 'self' : 'other';
}

/** Null where takers met, ENOENT where the folder is not there: to be tried again. */
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

/** Null, having given it back, where it cannot be kept. */
async function keep(folder: string, path: string, token: number, file: FileHandle): Promise<Lease | null> {
  let lease: Lease | null = null;
  let kept: Lease | null = null;
  try {
    lease = heldLease(folder, path, token, file, (await file.stat()).ino);
    await writeAll(file, Buffer.from(JSON.stringify({ ...ownIdentity(), token })));
    const alone = (await leasesIn(folder)).every((other) => other.token === token || other.living === null);
    // A holder that took this file for an empty one deleted it before it gave its own lease back, so this is asked last.
    if (alone && lease.holds()) {
      await clear(folder, token);
      kept = lease;
    }
  } finally {
    if (kept === null) await (lease?.release() ?? file.close());
  }
  return kept;
}

/** Null where another taker was there first. */
async function create(folder: string, path: string): Promise<FileHandle | null> {
  try {
    // Not with what is missing above: asked for that, Node calls whatever the system refuses ENOENT.
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

/** By handle, not by path, where the system lets it: at the path there may be another lease by now. */
async function giveBack(path: string, file: FileHandle, inode: number): Promise<void> {
  try {
    await file.truncate(0);
  } catch (cause) {
    // As long as the handle is open the inode tells whose lease is at the path.
    if (isAt(path, inode)) await unlink(path).catch(() => Promise.reject(cause));
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
  return statNow(path)?.ino === inode;
}

function heldLease(folder: string, path: string, token: number, file: FileHandle, inode: number): Lease {
  let given: Promise<void> | null = null;
  const release = () => {
    given ??= give();
    return given;
  };
  const give = async () => {
    try {
      await giveBack(path, file, inode);
    } catch (cause) {
      given = null;
      unreleased.set(release, folder);
      throw storeError(`cannot give the lease ${path} back`, cause);
    }
    unreleased.delete(release);
    // Closed last: without the open handle the inode does not prove whose the file is.
    await file.close().catch(() => {});
  };
  return {
    token,
    holds: () => isAt(path, inode),
    release,
    async remove() {
      try {
        await clear(folder, token);
        if (isAt(path, inode)) await unlink(path);
      } catch (cause) {
        await release();
        throw storeError(`cannot remove the lease ${path}`, cause);
      }
      given = Promise.resolve();
      await file.close().catch(() => {});
      // Not empty where the next taker is there already.
      await rmdir(folder).catch(() => {});
    },
  };
}

/** Of at most 15 digits, which a number holds exactly: what is larger is not looked at. */
const LAST_TOKEN = 999_999_999_999_999;
const TOKEN = /^[1-9]\d{0,14}$/;
const MAX_LEASE_BYTES = 4096;

interface FoundLease {
  token: number;
  /** Null for one that was given back, and for one whose process is gone. */
  living: ProcessIdentity | null;
}

/** Throws RunchartError `store` where the folder is none. */
async function leasesIn(folder: string): Promise<FoundLease[]> {
  refuseNoFolder(folder);
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw cause;
  }
  const tokens = names.filter((name) => TOKEN.test(name)).map(Number);
  return Promise.all(
    tokens.map(async (token) => {
      const holder = await holderIn(join(folder, String(token)));
      return { token, living: holder && isAlive(holder) ? holder : null };
    }),
  );
}

/** What neither a file that is read from its beginning nor a missing one answers: a directory, a pipe, a socket, a link. */
const NO_LEASE = ['ENOENT', 'EISDIR', 'ESPIPE', 'ENXIO', 'ELOOP'];
const CAREFULLY = (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** Null for an empty file (given back) and for one that cannot be read as a lease (lost with the power). */
async function holderIn(path: string): Promise<ProcessIdentity | null> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | CAREFULLY);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_LEASE_BYTES), 0, MAX_LEASE_BYTES, 0);
    return identityIn(JSON.parse(buffer.toString('utf8', 0, bytesRead)));
  } catch (cause) {
    if (cause instanceof SyntaxError || NO_LEASE.includes(codeOf(cause))) return null;
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
