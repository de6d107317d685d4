/**
 * The file system as the JSONL store uses it. Rule: only regular files are opened, nothing that opens can block, what
 * is created belongs to its owner alone, and a failing call leaves as a RunchartError.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CorruptLogError, RunchartError } from '../errors.ts';

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
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * The path behind a symbolic link, or the path itself where nothing is yet. Opens nothing. Throws CorruptLogError
 * `not_a_file` for a directory, pipe, socket, device, and for a link that leads nowhere.
 */
export async function resolveRegular(path: string): Promise<{ path: string; exists: boolean }> {
  try {
    const real = await realpath(path);
    refuseOther(await stat(real), path);
    return { path: real, exists: true };
  } catch (cause) {
    if (cause instanceof RunchartError) throw cause;
    if (codeOf(cause) === 'ELOOP') throw notAFile(path);
    if (codeOf(cause) !== 'ENOENT') throw storeError(`cannot look at ${path}`, cause);
    const found = await lstat(path).catch(() => null);
    if (found === null) return { path, exists: false };
    if (found.isSymbolicLink()) throw notAFile(path);
    // Another opener created it since.
    return resolveRegular(path);
  }
}

function refuseOther(found: Stats, path: string): void {
  if (!found.isFile()) throw notAFile(path);
}

function notAFile(path: string): CorruptLogError {
  return new CorruptLogError('not_a_file', `expected a regular file at ${path}: move what is there away`);
}

/** Mode 0700 for what it creates; what exists keeps its mode. `durable`: the names survive a loss of power. */
export async function makeDirectory(path: string, durable: boolean): Promise<void> {
  try {
    const first = await mkdir(path, { recursive: true, mode: 0o700 });
    if (!durable || first === undefined) return;
    for (let made = path; ; made = dirname(made)) {
      await syncDirectory(dirname(made));
      if (made === first || made === dirname(made)) return;
    }
  } catch (cause) {
    throw storeError(`cannot create the directory ${path}`, cause);
  }
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

/** Writes all of it at the file's end, in one call where the system takes it in one. */
export async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, null);
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
