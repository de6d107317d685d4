/**
 * The file system for the JSONL store. Invariant: only regular files are opened, opening never blocks, and new files
 * are readable by their owner alone. Nothing outside the store is written or deleted. Every failure is a
 * RunchartError.
 */
import { constants, lstatSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { CorruptLogError, RunchartError } from '../../errors.ts';

/** Neither blocks nor follows a link. Windows has neither flag. */
export const SAFE_FLAGS = (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** New files get mode 0600. Throws CorruptLogError `not_a_file`, and RunchartError `store` if the system refuses. */
export async function openRegular(path: string, flags: number): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(path, flags | SAFE_FLAGS, 0o600);
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
 * Returns the target of a symbolic link, or the path itself if nothing exists yet. Opens nothing. Throws
 * CorruptLogError `not_a_file` for a directory, pipe, socket, device or dangling link. `names`: the number of hard
 * links.
 */
export async function resolveRegular(path: string): Promise<{ path: string; exists: boolean; names: number }> {
  try {
    const real = await realpath(path);
    const stats = await stat(real);
    refuseOther(stats, path);
    return { path: real, exists: true, names: stats.nlink };
  } catch (cause) {
    if (cause instanceof RunchartError) throw cause;
    if (codeOf(cause) === 'ELOOP') throw notAFile(path);
    if (codeOf(cause) !== 'ENOENT') throw storeError(`cannot look at ${path}`, cause);
    const stats = await lstat(path).catch(() => null);
    if (stats === null) return { path, exists: false, names: 0 };
    if (stats.isSymbolicLink()) throw notAFile(path);
    // Another process has created it in the meantime.
    return resolveRegular(path);
  }
}

function refuseOther(stats: Stats, path: string): void {
  if (!stats.isFile()) throw notAFile(path);
}

/** A lease protects one name, so a file with two names could have two writers. Throws CorruptLogError `not_a_file`. */
export function refuseNames(path: string, names: number): void {
  if (names <= 1) return;
  const what = `expected one name for the file ${path}, it has ${names} names (hard links)`;
  throw new CorruptLogError('not_a_file', `${what}: remove the others, or put a copy in its place`);
}

/**
 * Lease and blobs are stored beside the log, so a link out of the store would move them too. `root` is the directory
 * of the store; its own path may contain links. Throws CorruptLogError `not_a_file`.
 */
export async function refuseOutside(root: string, path: string): Promise<void> {
  const inside = relative(await realpath(root), path);
  if (inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return;
  const what = `expected a log within ${root}, a link leads to ${path}`;
  throw new CorruptLogError('not_a_file', `${what}: put the file itself in place of the link`);
}

/** The target of a link may belong to somebody else. Throws RunchartError `store` for anything but a directory. */
export function refuseNoFolder(folder: string): void {
  let stats: Stats | undefined;
  try {
    stats = lstatSync(folder, { throwIfNoEntry: false });
  } catch (cause) {
    throw storeError(`cannot look at ${folder}`, cause);
  }
  if (!stats || stats.isDirectory()) return;
  const what = stats.isSymbolicLink() ? 'a link' : 'no directory';
  throw new RunchartError('store', `expected a directory of the store's own at ${folder}, it is ${what}: move it away`);
}

function notAFile(path: string): CorruptLogError {
  return new CorruptLogError('not_a_file', `expected a regular file at ${path}: move what is there away`);
}

/** Returns the status of the path, or null if nothing is there. Throws RunchartError `store` if the system refuses. */
export function statNow(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (cause) {
    // A parent directory was replaced by something else.
    if (['ENOTDIR', 'ELOOP'].includes(codeOf(cause))) return null;
    throw storeError(`cannot look at ${path}`, cause);
  }
}

/** New directories get mode 0700. `durable`: their names survive a power loss. */
export async function makeDirectory(path: string, durable: boolean): Promise<void> {
  try {
    const made = await makeMissing(path);
    if (!durable) return;
    // An existing directory may have been made without durability.
    for (const folder of new Set([...made, path])) await syncDirectory(dirname(folder));
  } catch (cause) {
    throw storeError(`cannot create the directory ${path}`, cause);
  }
}

/** Returns the new directories, parents first. `recursive` would report every refusal as ENOENT. */
async function makeMissing(path: string): Promise<string[]> {
  if (await isDirectory(path)) return [];
  const above = dirname(path) === path ? [] : await makeMissing(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (cause) {
    // Another process has made it in the meantime.
    if (codeOf(cause) !== 'EEXIST' || !(await isDirectory(path))) throw cause;
  }
  return [...above, path];
}

async function isDirectory(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => null);
  return stats?.isDirectory() ?? false;
}

/** Makes the names in a directory durable. Does nothing on systems without this function (Windows). */
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

/** Writes all bytes at the offset, or at the end of the file, in one call if the system accepts them at once. */
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
