/**
 * The boundary of the working directory, and the files below one. Rule: a path is inside only by where it really leads.
 * Spellings are taken literally (no `~`, no variables, no URLs, no percent decoding), links are resolved before the
 * check, and an opened file is checked once more; an answer never tells whether something outside exists. A walk leaves
 * out hidden entries, `.git`, `node_modules` and links, is bounded, and takes no pattern of a model.
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
  | 'timeout';

export interface Refusal {
  kind: 'refused';
  code: RefusalCode;
  message: string;
}

/** Where a path leads: always inside the root, with every link resolved. The root of a place that permissions opened is it alone. */
export interface Place {
  kind: 'place';
  /** The working directory, links resolved; of a place outside of it, the directory that is meant or holds the file. */
  root: string;
  /** Absolute, links resolved; where nothing is there yet, below the nearest parent that exists. */
  path: string;
  /** Relative to the working directory with `/` between its parts; `.` is that itself. Whole where it lies outside. */
  name: string;
  type: 'file' | 'directory' | 'other' | 'missing';
}

export const refused = (code: RefusalCode, message: string): Refusal => ({ kind: 'refused', code, message });

export const refusal = ({ code, message }: Refusal): ToolResult => toolResult.error(message, code);

const PATH_BYTES_MAX = 4_096;
const LINKS_MAX = 40;
const WIN32_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)[ .]*(\..*)?$/i;

/** What is wrong with a path before the file system is asked, or undefined. */
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

/** A path among a tool's arguments: one that cannot be used is refused before anybody is asked about the call. */
export const pathArgument = z.string().superRefine((path, { addIssue }) => {
  const fault = spellingFault(path);
  if (fault !== undefined) addIssue(`the path ${fault}`);
});

export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

/** Where `path` leads when it is taken from `cwd`, or why it may not be used. `opened`: the one place outside that permissions opened. */
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
    // Any other answer would tell what lies outside: a loop or a closed directory may be there.
    return codeOf(error) === 'ENAMETOOLONG' ? failure(error, path) : outside(path);
  }
}

/** The place of a call's path. Fails with `moved` where permissions judged another place. `isOwn`: a file of this library. */
export async function grantedPlace(
  { cwd, outside, grant }: ToolContext,
  path: string,
  isOwn = false,
): Promise<Place | Refusal> {
  const place = await placeOf(cwd, path, isOwn ? path : outside);
  if (place.kind === 'refused' || grant?.place === undefined || grant.place === place.path) return place;
  return refused('moved', `${shownName(path)} leads elsewhere than when it was allowed; look again`);
}

/** A file that a walk found below a directory; `openFile` checks where it leads. */
export const placeBelow = ({ root, path, name }: Place, below: string): Place => ({
  kind: 'place',
  root,
  path: join(path, below),
  name: name === '.' ? below : `${name}/${below}`,
  type: 'file',
});

/** Opens a regular file for reading. It never waits for a writer, and what was opened must stand where it was found. */
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
 * Calls `use` with a path by which the directory is reached whatever becomes of its name; undefined where a link stands on its way by
 * now. Takes a path whose links are resolved.
 */
export async function inDirectory<T>(path: string, use: (held: string) => Promise<T>): Promise<T | undefined> {
  if (process.platform !== 'linux') return (await realpath(path)) === path ? use(path) : undefined;
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch((error) => {
    if (['ELOOP', 'ENOTDIR'].includes(codeOf(error))) return undefined;
    throw error;
  });
  try {
    const held = `/proc/self/fd/${handle?.fd}`;
    if (!handle || (await readlink(held)) !== path) return undefined;
    return await use(held);
  } finally {
    await handle?.close();
  }
}

async function faultOf(file: FileHandle, place: Place): Promise<Refusal | undefined> {
  if (!(await file.stat()).isFile()) return notAFile({ ...place, type: 'other' });
  if (process.platform !== 'linux') return undefined;
  // O_NOFOLLOW guards the last part of the path only: a parent that became a link in between shows here.
  const opened = await readlink(`/proc/self/fd/${file.fd}`);
  if (!isInside(place.root, opened)) return outside(place.name);
  if (opened === place.path) return undefined;
  return refused('unreadable', `${shownName(place.name)} was moved or removed while it was opened; look again`);
}

/** What a link holds; undefined for what is none, or is not there. Rejects with an error of the file system. */
export type LinkReader = (path: string) => Promise<string | undefined>;

/**
 * Where the kernel arrives when it takes `path` from `from`: part by part, and a link is followed before the `..` after it.
 * Parts that do not exist are kept as they are written. Throws an error of the file system, such as ELOOP.
 */
export async function kernelPath(from: string, path: string, linkAt: LinkReader = readLinkAt): Promise<string> {
  let here = isAbsolute(path) ? parse(path).root : await kernelPath(parse(from).root, from, linkAt);
  let links = 0;
  const rest = partsOf(path).reverse();
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      here = dirname(here);
      continue;
    }
    const next = join(here, part);
    const link = await linkAt(next);
    if (link === undefined) {
      here = next;
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) throw Object.assign(new Error('too many links'), { code: 'ELOOP' });
    if (isAbsolute(link)) here = parse(link).root;
    rest.push(...partsOf(link).reverse());
  }
  return here;
}

const partsOf = (path: string): string[] => path.slice(parse(path).root.length).split(sep === '/' ? '/' : /[\\/]/);

/** Reads each path once: for paths that are resolved at one moment and have their first parts in common. */
export function linksReadOnce(): LinkReader {
  const read = new Map<string, Promise<string | undefined>>();
  return (path) => {
    const found = read.get(path) ?? readLinkAt(path);
    read.set(path, found);
    return found;
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

/** A link stands where the directory was, or on the way to it. */
export const movedDirectory = ({ name }: Place): Refusal =>
  refused('moved', `${shownName(name)} was moved while it was opened; look again`);

export function notADirectory({ type, name }: Place): Refusal {
  const shown = shownName(name);
  if (type === 'missing') return refused('not_found', `there is no ${shown}; look with Ls or Glob`);
  return refused('not_a_directory', `${shown} is not a directory`);
}

/** An error of the file system as a refusal. */
export function failure(error: unknown, path: string): Refusal {
  const code = codeOf(error);
  const shown = shownName(path);
  if (code === 'ELOOP') return outside(path);
  if (code === 'ENAMETOOLONG')
    return refused('invalid_arguments', `${shown} has a part that is too long for a file name`);
  if (isMissing(error)) return refused('not_found', `there is no ${shown}`);
  return refused('unreadable', `${shown} cannot be read (${code})`);
}

const ENTRIES_MAX = 200_000;

interface Walk {
  /** Relative to the directory with `/` between the parts, sorted by code unit. */
  names: string[];
  /** Not everything was looked at. */
  cut: boolean;
}

type Listed = (error: Error | null, entries: Dirent[]) => void;

/** Throws the signal's reason on abort. Directories that cannot be read count as empty. */
export async function filesBelow(directory: string, signal: AbortSignal, entriesMax = ENTRIES_MAX): Promise<Walk> {
  let seen = 0;
  let cut = false;
  const boundedReaddir = (path: string, options: { withFileTypes: true }, done: Listed): void => {
    if (seen >= entriesMax) {
      cut = true;
      done(null, []);
      return;
    }
    // One that became a link meanwhile is left out like any other link.
    void inDirectory(resolve(directory, `.${path.slice(path.indexOf('/'))}`), (held) => readdir(held, options)).then(
      (entries = []) => {
        seen += entries.length;
        done(null, entries);
      },
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
  const names = await glob('**/*', {
    // The library sees the directory as its root: in a base of its own it would take a backslash for a separator.
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
