/**
 * Reads files that a project or user keeps for the agent. Rule: the workspace is not trusted. A file counts only if its
 * real path is in its tree and it is a regular, bounded text file. Anything else is treated as missing.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { shownName } from '../tools/coding/search/listing.ts';
import { openFile, placeOf } from '../tools/coding/workspace.ts';

/** The directories whose files apply to a working directory. */
export interface Tree {
  /** The root of the repository around it; undefined if there is none. */
  repository: string | undefined;
  /** The directories from the repository's root down to the working directory, or the working directory alone. */
  own: readonly string[];
  /** Without a repository, the directories above the working directory, the outermost first. */
  above: readonly string[];
}

export interface ProjectFile {
  /** Links resolved. */
  path: string;
  text: string;
  /** The file is longer than `text`. */
  cut: boolean;
}

const DEPTH_MAX = 64;

/** Throws ConfigurationError if the path is no directory. */
export async function treeOf(cwd: string): Promise<Tree> {
  const realDirectory = await realpath(cwd).catch((cause) => {
    throw new ConfigurationError(`the working directory ${shownName(cwd)} cannot be used: give one that exists`, {
      cause,
    });
  });
  const up: string[] = [realDirectory];
  for (let directory = realDirectory; dirname(directory) !== directory && up.length < DEPTH_MAX; ) {
    directory = dirname(directory);
    up.push(directory);
  }
  const marks = await Promise.all(up.map((directory) => exists(join(directory, '.git'))));
  const root = marks.indexOf(true);
  if (root === -1) return { repository: undefined, own: [realDirectory], above: up.slice(1).reverse() };
  return { repository: up[root], own: up.slice(0, root + 1).reverse(), above: [] };
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** A file whose real path must be below `root`; undefined if it is not, or cannot be read. */
export async function fileInTree(root: string, path: string, bytesMax: number): Promise<ProjectFile | undefined> {
  const place = await placeOf(root, path);
  if (place.kind === 'refused' || place.type !== 'file') return undefined;
  const opened = await openFile(place);
  return opened.kind === 'refused' ? undefined : textOf(opened.file, place.path, bytesMax);
}

/** Like `fileInTree`, but the file must belong to this user or root, because another user could have put it there. */
export async function ownFileIn(directory: string, name: string, bytesMax: number): Promise<ProjectFile | undefined> {
  const stats = await lstat(join(directory, name)).catch(() => undefined);
  const user = process.getuid?.();
  if (!stats || (user !== undefined && stats.uid !== user && stats.uid !== 0)) return undefined;
  return fileInTree(directory, name, bytesMax);
}

/** A file that the host or the user names. Links are followed, and it may lie anywhere. */
export async function namedFile(path: string, bytesMax: number): Promise<ProjectFile | undefined> {
  // Does not block on a pipe without a writer.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(() => undefined);
  return file && textOf(file, await realpath(path), bytesMax);
}

async function textOf(file: FileHandle, path: string, bytesMax: number): Promise<ProjectFile | undefined> {
  try {
    if (!(await file.stat()).isFile()) return undefined;
    const buffer = Buffer.alloc(bytesMax + 1);
    let size = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, size, buffer.length - size, size);
      size += bytesRead;
      if (bytesRead === 0 || size === buffer.length) break;
    }
    if (buffer.subarray(0, size).includes(0)) return undefined;
    const cut = size > bytesMax;
    // Leaves out an incomplete character at the cut.
    const text = new TextDecoder().decode(buffer.subarray(0, cut ? bytesMax : size), { stream: cut });
    return { path, text, cut };
  } finally {
    await file.close();
  }
}
