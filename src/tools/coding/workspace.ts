/**
 * The boundary of the working directory, and the walk through its files. Rule: a path is inside only if its real target
 * is. Spellings are literal (no `~`, variables, URLs or percent-decoding). Links are resolved before the check, and an
 * opened file is checked again. A refusal never reveals whether something outside exists. The walk skips hidden
 * entries, `.git`, `node_modules` and links, is bounded, and takes no pattern from a model.
 */
import { constants, type Dirent, type readdir as readdirOf, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path';
import { glob } from 'tinyglobby';
import { z } from 'zod';
import { type ToolContext, type ToolResult, toolResult } from '../tool.ts';
import { shownName } from './search/listing.ts';

export type RefusalCode =
  | 'invalid_arguments'
  | 'outside_workspace'
  | 'not_found'
  | 'not_a_file'
  | 'not_a_directory'
  | 'unreadable'
  | 'moved'
  | 'not_allowed'
  | 'binary'
  | 'too_large'
  | 'not_read'
  | 'stale_read'
  | 'no_match'
  | 'not_unique'
  | 'timeout'
  | 'unreachable';

export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  message: string;
}

/**
 * The target of a path, inside the root with all links resolved. For a place outside that permissions allow, the root is
 * only that place.
 */
export interface Place {
  kind: 'place';
  /**
   * The working directory with links resolved. For a place outside, the directory itself or the one that contains the
   * file.
   */
  root: string;
  /** Absolute, links resolved. If nothing exists there, the path below its nearest existing parent. */
  path: string;
  /**
   * Relative to the working directory, with `/` between the parts; `.` for the directory itself. Absolute for a place
   * outside.
   */
  name: string;
  type: 'file' | 'directory' | 'other' | 'missing';
}

export const refused = (code: RefusalCode, message: string): Refusal => ({ kind: 'refused', code, message });

export const refusal = ({ code, message }: Refusal): ToolResult => toolResult.error(message, code);

const PATH_BYTES_MAX = 4_096;
const LINKS_MAX = 40;
const WIN32_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)[ .]*(\..*)?$/i;

/** The fault in the spelling of a path; undefined if there is none. */
export function spellingFault(path: string, platform: string = process.platform): string | undefined {
  if (path === '') return 'is empty';
  if (path.includes('\0')) return 'holds a NUL character';
  if (/\p{Surrogate}/u.test(path)) return 'holds half of a character (a lone surrogate)';
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return `is longer than ${PATH_BYTES_MAX} bytes`;
  if (platform !== 'win32') return undefined;
  if (/^[\\/]{2}/.test(path)) return 'is a network or device path';
  if (path.replace(/^[a-z]:[\\/]/i, '').includes(':')) return 'names a drive-relative path or a stream';
  if (path.split(/[\\/]/).some((part) => WIN32_DEVICE.test(part))) return 'names a device';
  return undefined;
}

/** A path in a tool's arguments. An invalid path is refused before the permission question. */
export const pathArgument = z.string().superRefine((path, { addIssue }) => {
  const fault = spellingFault(path);
  if (fault !== undefined) addIssue(`the path ${fault}`);
});

export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

/** The target of `path` relative to `cwd`, or a refusal. `opened` is the one outside place that permissions opened. */
export async function placeOf(cwd: string, path: string, opened?: string): Promise<Place | Refusal> {
  const fault = spellingFault(path);
  if (fault !== undefined)
    return refused('invalid_arguments', `the path ${fault}; give one relative to the working directory`);
  const root = await realpath(cwd).catch(() => undefined);
  if (root === undefined) return refused('not_found', `the working directory ${shownName(cwd)} does not exist`);
  try {
    const target = await kernelPath(root, path);
    const isOutside = !isInside(root, target);
    if (isOutside && target !== opened) return outside(path);
    const type = await typeOf(target);
    if (isOutside)
      return { kind: 'place', root: type === 'directory' ? target : dirname(target), path: target, name: target, type };
    return { kind: 'place', root, path: target, name: relative(root, target).split(sep).join('/') || '.', type };
  } catch (error) {
    // A more precise error would reveal what exists outside, such as a loop or a closed directory.
    return codeOf(error) === 'ENAMETOOLONG' ? failure(error, path) : outside(path);
  }
}

/**
 * The place of a call's path. Fails with `moved` if permissions judged another place. `isOwn` accepts files that the
 * library itself wrote.
 */
export async function grantedPlace(
  { cwd, outside, grant }: ToolContext,
  path: string,
  isOwn = false,
): Promise<Place | Refusal> {
  const place = await placeOf(cwd, path, isOwn ? path : outside);
  if (place.kind === 'refused' || grant?.place === undefined || grant.place === place.path) return place;
  return refused('moved', `${shownName(path)} leads elsewhere than when it was allowed; look again`);
}

/** A file that the walk found below a directory; `openFile` checks its target. */
export const placeBelow = ({ root, path, name }: Place, below: string): Place => ({
  kind: 'place',
  root,
  path: join(path, below),
  name: name === '.' ? below : `${name}/${below}`,
  type: 'file',
});

/**
 * Opens a regular file for reading. It never blocks on a pipe, and the opened file must be at the place that was
 * checked.
 */
export async function openFile(place: Place): Promise<{ kind: 'opened'; file: FileHandle } | Refusal> {
  if (place.type !== 'file') return notAFile(place);
  let file: FileHandle | undefined;
  try {
    file = await open(place.path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    const fault = await faultOf(file, place);
    if (fault === undefined) return { kind: 'opened', file };
    await file.close();
    return fault;
  } catch (error) {
    await file?.close();
    return failure(error, place.name);
  }
}

/**
 * Calls `use` with a path that reaches the directory even if it is renamed. Returns undefined if a link has appeared on
 * the way. Expects a path with links resolved.
 */
export async function inDirectory<T>(path: string, use: (heldPath: string) => Promise<T>): Promise<T | undefined> {
  if (process.platform !== 'linux') return (await realpath(path)) === path ? use(path) : undefined;
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((error) => {
    if (['ELOOP', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  });
  try {
    const heldPath = `/proc/self/fd/${handle?.fd}`;
    if (!handle || (await readlink(heldPath)) !== path) return undefined;
    return await use(heldPath);
  } finally {
    await handle?.close();
  }
}

async function faultOf(file: FileHandle, place: Place): Promise<Refusal | undefined> {
  if (!(await file.stat()).isFile()) return notAFile({ ...place, type: 'other' });
  if (process.platform !== 'linux') return undefined;
  // O_NOFOLLOW protects only the last part of the path. This check detects a parent that became a link.
  const opened = await readlink(`/proc/self/fd/${file.fd}`);
  if (!isInside(place.root, opened)) return outside(place.name);
  if (opened === place.path) return undefined;
  return refused('unreadable', `${shownName(place.name)} was moved or removed while it was opened; look again`);
}

/** The target of a link; undefined if the path is no link or does not exist. Rejects with a file system error. */
export type LinkReader = (path: string) => Promise<string | undefined>;

/**
 * Resolves `path` from `cwd` as the kernel does: part by part, following a link before the `..` after it. Missing parts
 * are kept as written. Throws file system errors such as ELOOP.
 */
export async function kernelPath(from: string, path: string, linkAt: LinkReader = readLinkAt): Promise<string> {
  let current = isAbsolute(path) ? parse(path).root : await kernelPath(parse(from).root, from, linkAt);
  let links = 0;
  const rest = partsOf(path).reverse();
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      current = dirname(current);
      continue;
    }
    const next = join(current, part);
    const link = await linkAt(next);
    if (link === undefined) {
      current = next;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) throw Object.assign(new Error('too many links'), { code: 'ELOOP' });
    if (isAbsolute(link)) current = parse(link).root;
    rest.push(...partsOf(link).reverse());
  }
  return current;
}

const partsOf = (path: string): string[] => path.slice(parse(path).root.length).split(sep === '/' ? '/' : /[\\/]/);

/** Reads each link once, for paths that are resolved together and share their first parts. */
export function linksReadOnce(): LinkReader {
  const cachedLinks = new Map<string, Promise<string | undefined>>();
  return (path) => {
    const linkTarget = cachedLinks.get(path) ?? readLinkAt(path);
    cachedLinks.set(path, linkTarget);
    return linkTarget;
  };
}

async function readLinkAt(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (['EINVAL', 'ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  }
}

async function typeOf(path: string): Promise<Place['type']> {
  const stats: Stats | undefined = await lstat(path).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (stats === undefined) return 'missing';
  if (stats.isFile()) return 'file';
  return stats.isDirectory() ? 'directory' : 'other';
}

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? 'unknown');

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(codeOf(error));

const outside = (path: string): Refusal =>
  refused('outside_workspace', `${shownName(path)} does not lead to a place inside the working directory`);

function notAFile({ type, name }: Place): Refusal {
  const shown = shownName(name);
  if (type === 'missing') return refused('not_found', `there is no ${shown}; look with Ls or Glob`);
  if (type === 'directory') return refused('not_a_file', `${shown} is a directory; list it with Ls`);
  return refused('not_a_file', `${shown} is not a regular file (a pipe, device or socket) and is not opened`);
}

/** A link has replaced the directory or a part of the path to it. */
export const movedDirectory = ({ name }: Place): Refusal =>
  refused('moved', `${shownName(name)} was moved while it was opened; look again`);

export function notADirectory({ type, name }: Place): Refusal {
  const shown = shownName(name);
  if (type === 'missing') return refused('not_found', `there is no ${shown}; look with Ls or Glob`);
  return refused('not_a_directory', `${shown} is not a directory`);
}

/** Converts a file system error to a refusal. */
export function failure(error: unknown, path: string, act: 'read' | 'written' = 'read'): Refusal {
  const code = codeOf(error);
  const shown = shownName(path);
  if (code === 'ELOOP') return outside(path);
  if (code === 'ENAMETOOLONG')
    return refused('invalid_arguments', `${shown} has a part that is too long for a file name`);
  if (act === 'written' && code === 'ENOTDIR')
    return refused('not_a_directory', `${shown} cannot be written: a directory of its path is a file`);
  if (act === 'read' && isMissing(error)) return refused('not_found', `there is no ${shown}`);
  return refused('unreadable', `${shown} cannot be ${act} (${code})`);
}

const ENTRIES_MAX = 200_000;

interface Walk {
  /** Relative to the directory, with `/` between the parts, sorted by code unit. */
  names: string[];
  /** The walk did not visit everything. */
  cut: boolean;
}

type Listed = (error: Error | null, entries: Dirent[]) => void;

/** Leaves entries of a directory out of the walk. `heldPath` reaches the directory even if it is renamed. */
export type EntryFilter = (directory: string, heldPath: string, entries: Dirent[]) => Promise<Dirent[]>;

/** Throws the signal's reason on abort. Directories that cannot be read count as empty. */
export async function filesBelow(
  directory: string,
  signal: AbortSignal,
  entriesMax = ENTRIES_MAX,
  filter?: EntryFilter,
): Promise<Walk> {
  let entryCount = 0;
  let cut = false;
  const boundedReaddir = (path: string, options: { withFileTypes: true }, done: Listed): void => {
    if (entryCount >= entriesMax) {
      cut = true;
      done(null, []);
      return;
    }
    // A directory that became a link in between is skipped like any link.
    const absolute = resolve(directory, `.${path.slice(path.indexOf('/'))}`);
    void inDirectory(absolute, async (heldPath) => {
      const entries = await readdir(heldPath, options);
      entryCount += entries.length;
      return filter ? filter(absolute, heldPath, entries) : entries;
    }).then(
      (entries = []) => done(null, entries),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
  const names = await glob('**/*', {
    // The walk library treats the directory as its root, because in any other base it reads a backslash as a separator.
    cwd: '/',
    fs: { readdir: boundedReaddir as unknown as typeof readdirOf },
    dot: false,
    followSymbolicLinks: false,
    expandDirectories: false,
    ignore: ['**/node_modules', '**/.git'],
    signal,
  });
  signal.throwIfAborted();
  return { names: names.sort(), cut };
}
