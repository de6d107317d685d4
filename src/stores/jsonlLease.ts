/**
 * The lease of one log: a folder with a file a lease, named by a number that only grows (the fencing token). Rule: a
 * file counts while the process named in it lives; an empty file is a lease given back. Who wants the log creates the
 * next number, which only one can, writes its name into it, then looks again, and keeps it only if no other living
 * lease is there and, asked last, its own file still is. So a dead holder is followed at once, and of any number of
 * takers at most one holds. Only a holder deletes files, and does so before it gives its own lease back.
 */
import { type FileHandle, mkdir, open, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RunchartError, SessionBusyError } from '../errors.ts';
import { codeOf, statNow, storeError, writeAll } from './jsonlDisk.ts';
import { LAST_TOKEN, leasesIn } from './jsonlLeaseFolder.ts';
import { isSameProcess, ownIdentity } from './processIdentity.ts';
import type { Holder } from './summary.ts';

const ATTEMPTS = 20;
/** What gives back the leases of this process that the system did not take back, with the folder of each. */
const owed = new Map<() => Promise<void>, string>();

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
  for (const [release, where] of owed) if (where === folder) await release();
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
      owed.set(release, folder);
      throw storeError(`cannot give the lease ${path} back`, cause);
    }
    owed.delete(release);
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
