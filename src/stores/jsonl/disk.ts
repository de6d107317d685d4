/**
 * The file system as the JSONL store uses it. Rule: it opens regular files only, an opening never blocks, what it
 * creates belongs to its owner alone, it writes and deletes nothing outside the store, and every failure is a
 * RunchartError.
 */
import { constants, lstatSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { CorruptLogError, RunchartError } from '../../errors.ts';

/** Windows knows neither flag. */
const CAREFULLY = (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** Creates with mode 0600. Throws CorruptLogError `not_a_file`, and RunchartError `store` where the system refuses. */
export async function openRegular(path: string, flags: number): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, flags | CAREFULLY, 0o600);
  } catch (cause) {
    if (['ELOOP', 'EISDIR', 'ENXIO', 'ENODEV'].includes(codeOf(cause))) throw notAFile(path);
    throw storeError(`cannot open ${path}`, cause);
  }
  try {
    refuseOther(await file.stat(), path);
    return file;
  } catch (cause) {
    await file.close().catch(() => {});
    throw storeError(`cannot look at ${path}`, cause);
  }
}

/**
 * The path behind a symbolic link, or the path itself where nothing is yet. Opens nothing. Throws CorruptLogError
 * `not_a_file` for a directory, pipe, socket, device, and for a link that leads nowhere. `names`: how many the file has.
 */
export async function resolveRegular(path: string): Promise<{ path: string; exists: boolean; names: number }> {
  try {
    const real = await realpath(path);
    const found = await stat(real);
    refuseOther(found, path);
    return { path: real, exists: true, names: found.nlink };
  } catch (cause) {
    if (cause instanceof RunchartError) throw cause;
    if (codeOf(cause) === 'ELOOP') throw notAFile(path);
    if (codeOf(cause) !== 'ENOENT') throw storeError(`cannot look at ${path}`, cause);
    const found = await lstat(path).catch(() => null);
    if (found === null) return { path, exists: false, names: 0 };
    if (found.isSymbolicLink()) throw notAFile(path);
    // Another opener created it since.
    return resolveRegular(path);
  }
}

function refuseOther(found: Stats, path: string): void {
  if (!found.isFile()) throw notAFile(path);
}

/** A lease goes by one name, so under two names one file would have two writers. Throws CorruptLogError `not_a_file`. */
export function refuseNames(path: string, names: number): void {
  if (names <= 1) return;
  const what = `expected one name for the file ${path}, it has ${names} names (hard links)`;
  throw new CorruptLogError('not_a_file', `${what}: remove the others, or put a copy in its place`);
}

/**
 * Lease and blobs lie beside a log, so a log that a link leads out of the store would take them along. `root`: of the
 * store, links in its own path are its owner's. Throws CorruptLogError `not_a_file`.
 */
export async function refuseOutside(root: string, path: string): Promise<void> {
  const way = relative(await realpath(root), path);
  if (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)) return;
  const what = `expected a log within ${root}, a link leads to ${path}`;
  throw new CorruptLogError('not_a_file', `${what}: put the file itself in place of the link`);
}

/** What lies behind a link belongs to somebody else. Throws RunchartError `store` for what is there and no directory. */
export function refuseNoFolder(folder: string): void {
  let found: Stats | undefined;
  try {
    found = lstatSync(folder, { throwIfNoEntry: false });
  } catch (cause) {
    throw storeError(`cannot look at ${folder}`, cause);
  }
  if (!found || found.isDirectory()) return;
  const what = found.isSymbolicLink() ? 'a link' : 'no directory';
  throw new RunchartError('store', `expected a directory of the store's own at ${folder}, it is ${what}: move it away`);
}

function notAFile(path: string): CorruptLogError {
  return new CorruptLogError('not_a_file', `expected a regular file at ${path}: move what is there away`);
}

/** What is at the path now, or null. Throws RunchartError `store` where the system does not tell. */
export function statNow(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (cause) {
    // Something else has taken the place of a directory above.
    if (['ENOTDIR', 'ELOOP'].includes(codeOf(cause))) return null;
    throw storeError(`cannot look at ${path}`, cause);
  }
}

/** Mode 0700 for what it creates; what exists keeps its mode. `durable`: the names survive a loss of power. */
export async function makeDirectory(path: string, durable: boolean): Promise<void> {
  try {
    const made = await makeMissing(path);
    if (!durable) return;
    // The last one also where it was there: it may have been made with less.
    for (const folder of new Set([...made, path])) await syncDirectory(dirname(folder));
  } catch (cause) {
    throw storeError(`cannot create the directory ${path}`, cause);
  }
}

/** What was made, from above. One by one: asked for all of them, Node calls whatever the system refuses ENOENT. */
async function makeMissing(path: string): Promise<string[]> {
  if (await isDirectory(path)) return [];
  const above = dirname(path) === path ? [] : await makeMissing(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (cause) {
    // Another opener made it since.
    if (codeOf(cause) !== 'EEXIST' || !(await isDirectory(path))) throw cause;
  }
  return [...above, path];
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found?.isDirectory() ?? false;
}

/** Makes the names in a directory durable; does nothing where the system cannot (Windows). */
export async function syncDirectory(path: string): Promise<void> {
  let directory: FileHandle;
  try {
    directory = await open(path, constants.O_RDONLY);
  } catch (cause) {
    if (['EISDIR', 'EPERM', 'EACCES'].includes(codeOf(cause))) return;
    throw cause;
  }
  try {
    await directory.sync();
  } catch (cause) {
    if (!['EINVAL', 'EPERM', 'EISDIR', 'ENOTSUP'].includes(codeOf(cause))) throw cause;
  } finally {
    await directory.close();
  }
}

/** Writes all of it, at the offset or where the file goes on, in one call where the system takes it in one. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, at: number | null = null): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at === null ? null : at + done);
    done += bytesWritten;
  }
}

export function codeOf(cause: unknown): string {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  return code ?? '';
}

export function storeError(what: string, cause: unknown): RunchartError {
  if (cause instanceof RunchartError) return cause;
  return new RunchartError('store', `${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}
