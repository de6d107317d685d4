/**
 * Replaces or creates a whole file. Rule: the directory is opened and checked before anything is created in it. The
 * content is complete under a temporary name before it is renamed, so readers see the old file or the new one.
 * Permissions are kept. `write-file-atomic` is not used: it follows links and does not check that the file is
 * unchanged.
 */
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, parse, relative, sep } from 'node:path';
import { shownName } from './search/listing.ts';
import { failure, isInside, openFile, type Place, type Refusal, refused } from './workspace.ts';

/** Larger files are neither written nor read for a change. */
export const FILE_BYTES_MAX = 10 * 1_048_576;
const PERMISSIONS = 0o7777;

/** The content of a file, or why it cannot be changed. */
export type Current = ({ kind: 'content'; bytes: Buffer } & Replaced) | { kind: 'missing' } | Refusal;

/** The file that is replaced. */
export interface Replaced {
  mode: number;
  /** Changes whenever the file changes. */
  stamp: string;
}

export async function currentContent(place: Place): Promise<Current> {
  if (place.type === 'missing') return { kind: 'missing' };
  const opened = await openFile(place);
  if (opened.kind === 'refused') return opened;
  try {
    const stats = await opened.file.stat();
    const { size, mode } = stats;
    if (size > FILE_BYTES_MAX) {
      return refused(
        'too_large',
        `${shownName(place.name)} is larger than ${FILE_BYTES_MAX} bytes, and is not changed`,
      );
    }
    return { kind: 'content', bytes: await opened.file.readFile(), mode: mode & PERMISSIONS, stamp: stampOf(stats) };
  } catch (error) {
    return failure(error, place.name);
  } finally {
    await opened.file.close();
  }
}

const stampOf = ({ ino, size, mtimeMs }: Stats): string => `${ino}/${size}/${mtimeMs}`;

/** Returns undefined on success. */
export async function putFile(place: Place, bytes: Uint8Array, replaced?: Replaced): Promise<Refusal | undefined> {
  if (bytes.length > FILE_BYTES_MAX) {
    return refused('too_large', `${shownName(place.name)} would be larger than ${FILE_BYTES_MAX} bytes: write less`);
  }
  const directory = dirname(place.path);
  let opened: { handle: FileHandle | undefined; path: string } | undefined;
  try {
    opened = await openDirectory(directory, place.root);
    if (!opened) return moved(place);
    return await replace(opened.path, place, bytes, replaced);
  } catch (error) {
    return failure(error, place.name, 'written');
  } finally {
    await opened?.handle?.close();
  }
}

/**
 * A handle through which files of a directory are reached even if its path changes; undefined if the directory is not
 * where it should be.
 */
async function openDirectory(directory: string, root: string) {
  if (process.platform !== 'linux') {
    await mkdir(directory, { recursive: true });
    const real = await realpath(directory);
    return real === directory && isInside(root, real) ? { handle: undefined, path: directory } : undefined;
  }
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  // A place outside may have no directory yet; then the path is opened from the file system root.
  const top = (await lstat(root).catch(() => undefined)) ? root : parse(root).root;
  let handle = await open(top, flags);
  try {
    // Opens one part at a time below an open directory, so that no link is followed and none can redirect the path.
    for (const part of relative(top, directory).split(sep)) {
      if (part === '') continue;
      const next = `${pathOf(handle)}/${part}`;
      const below = await open(next, flags).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
        // Another call may have made it in between.
        await mkdir(next).catch((made: NodeJS.ErrnoException) => {
          if (made.code !== 'EEXIST') throw made;
        });
        return open(next, flags);
      });
      await handle.close();
      handle = below;
    }
    if ((await readlink(pathOf(handle))) === directory) return { handle, path: pathOf(handle) };
  } catch (error) {
    await handle.close();
    if (['ELOOP', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '') && !(await isFileOnWay(directory)))
      return undefined;
    throw error;
  }
  await handle.close();
  return undefined;
}

const pathOf = ({ fd }: FileHandle): string => `/proc/self/fd/${fd}`;

/** True if a file is in the way of a directory. It is no link, so nothing was moved. */
async function isFileOnWay(directory: string): Promise<boolean> {
  const stats = await lstat(directory).catch(() => undefined);
  return stats === undefined ? dirname(directory) !== directory && isFileOnWay(dirname(directory)) : stats.isFile();
}

async function replace(directory: string, place: Place, bytes: Uint8Array, replaced: Replaced | undefined) {
  const mode = replaced?.mode;
  const name = basename(place.path);
  const made = join(directory, `.runchart-${randomBytes(8).toString('hex')}.tmp`);
  const file = await open(made, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode ?? 0o666);
  try {
    await file.writeFile(bytes);
    // Restores the permission bits that the process's umask removed.
    if (mode !== undefined) await file.chmod(mode);
    await file.sync();
    const fault = await changed(join(directory, name), place, replaced);
    if (fault) throw fault;
    await rename(made, join(directory, name));
    return undefined;
  } catch (error) {
    await unlink(made).catch(() => undefined);
    if (isRefusal(error)) return error;
    throw error;
  } finally {
    await file.close();
  }
}

/** Refuses if another program changed the file since it was read. */
async function changed(path: string, place: Place, replaced: Replaced | undefined): Promise<Refusal | undefined> {
  const stats = await stat(path).catch(() => undefined);
  if ((stats && stampOf(stats)) === replaced?.stamp) return undefined;
  return refused('stale_read', `${shownName(place.name)} was changed meanwhile: read it again, then change it`);
}

const isRefusal = (value: unknown): value is Refusal => (value as Refusal | null)?.kind === 'refused';

const moved = ({ name }: Place): Refusal =>
  refused('moved', `the directory of ${shownName(name)} was moved while it was opened; look again`);
