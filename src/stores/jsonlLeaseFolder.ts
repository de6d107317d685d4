/**
 * The leases found in a log's lease folder. Rule: what is named by a number is a lease, and whoever its text names has
 * it while that process lives; what cannot be read as a lease is nobody's. No link is followed: neither the folder nor a
 * lease in it may be one.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, refuseNoFolder } from './jsonlDisk.ts';
import { lives, type ProcessIdentity } from './processIdentity.ts';

/** Of at most 15 digits, which a number holds exactly: what is larger is not looked at. */
export const LAST_TOKEN = 999_999_999_999_999;
const TOKEN = /^[1-9]\d{0,14}$/;
const MAX_LEASE_BYTES = 4096;

export interface FoundLease {
  token: number;
  /** Null for one that was given back, and for one whose process is gone. */
  living: ProcessIdentity | null;
}

/** Throws RunchartError `store` where the folder is none. */
export async function leasesIn(folder: string): Promise<FoundLease[]> {
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
      return { token, living: holder && lives(holder) ? holder : null };
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
