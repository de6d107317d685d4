/**
 * Files that a project or its user keeps for the agent. Rule: what lies in a workspace is not trusted: a file counts only where it
 * really lies in its tree, is a regular file, is text and is bounded; whatever else stands there is as if nothing did.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { shownName } from '../tools/coding/search/listing.ts';
import { openFile, placeOf } from '../tools/coding/workspace.ts';

/** The directories whose files are about a working directory. */
export interface Tree {
  /** The root of the repository that it lies in; undefined where it lies in none. */
  repository: string | undefined;
  /** Of the repository; without one the working directory alone. The outermost first. */
  own: readonly string[];
  /** Above a working directory that lies in no repository, the outermost first. */
  above: readonly string[];
}

export interface ProjectFile {
  /** Links resolved. */
  path: string;
  text: string;
  /** There is more of it. */
  cut: boolean;
}

const DEPTH_MAX = 64;

/** Throws ConfigurationError where the directory is none. */
export async function treeOf(cwd: string): Promise<Tree> {
  const here = await realpath(cwd).catch((cause) => {
    throw new ConfigurationError(`the working directory ${shownName(cwd)} cannot be used: give one that exists`, {
      cause,
    });
  });
  const up: string[] = [here];
  for (let directory = here; dirname(directory) !== directory && up.length < DEPTH_MAX; ) {
    directory = dirname(directory);
    up.push(directory);
  }
  const marks = await Promise.all(up.map((directory) => exists(join(directory, '.git'))));
  const root = marks.indexOf(true);
  if (root === -1) return { repository: undefined, own: [here], above: up.slice(1).reverse() };
  return { repository: up[root], own: up.slice(0, root + 1).reverse(), above: [] };
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/** A file that must lie in `root`, whatever links lead to it; undefined where it does not, or is none to be read. */
export async function fileInTree(root: string, path: string, bytesMax: number): Promise<ProjectFile | undefined> {
  const place = await placeOf(root, path);
  if (place.kind === 'refused' || place.type !== 'file') return undefined;
  const opened = await openFile(place);
  return opened.kind === 'refused' ? undefined : textOf(opened.file, place.path, bytesMax);
}

/** The same, where another user of the machine could have put it: it must be this user's or root's. */
export async function ownFileIn(directory: string, name: string, bytesMax: number): Promise<ProjectFile | undefined> {
  const found = await lstat(join(directory, name)).catch(() => undefined);
  const user = process.getuid?.();
  if (!found || (user !== undefined && found.uid !== user && found.uid !== 0)) return undefined;
  return fileInTree(directory, name, bytesMax);
}

/** A file that the host or the user names: links count, and it may lie anywhere. */
export async function namedFile(path: string, bytesMax: number): Promise<ProjectFile | undefined> {
  // It never waits for who writes to a pipe.
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
    // Half a character at the cut is left out.
    const text = new TextDecoder().decode(buffer.subarray(0, cut ? bytesMax : size), { stream: cut });
    return { path, text, cut };
  } finally {
    await file.close();
  }
}
