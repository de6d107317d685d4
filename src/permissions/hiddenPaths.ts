/**
 * Finds the files that path rules hide from a command in the sandbox. Rule: a hidden file stays hidden after the
 * command. Therefore a directory that a rule names cannot be moved to a path which the rule does not match.
 */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isInside } from '../tools/coding/workspace.ts';
import type { PathPattern, Surroundings } from './pathRules.ts';

/** The most entries that are searched, and the most places that are hidden. */
const MOST = { entries: 200_000, hidden: 2_000 } as const;

export interface HiddenPlaces {
  /** Absolute paths. A hidden directory hides everything below it. */
  hide: string[];
  /** Directories that rules name and that contain hidden files. They must not be moved. */
  hold: string[];
}

/**
 * Finds what the patterns hide now, below the working directory and below the outside directories that they name.
 * Ignored files and dotfiles count. Returns undefined if a directory is too large to search, or if too many paths
 * are hidden. The search below a directory that contains the working directory ends there instead.
 */
export async function hiddenPaths(
  patterns: readonly PathPattern[],
  { root, home, linkAt }: Surroundings,
  most: { entries: number; hidden: number } = MOST,
): Promise<HiddenPlaces | undefined> {
  const around = { root, cwd: root, home, linkAt };
  const hide: string[] = [];
  const prefixes = patterns.map((pattern) => prefixOf(pattern, around));
  // Every pattern applies below the root. Below an outside directory, only the pattern that names it applies.
  const outside = prefixes.filter((prefix) => prefix !== undefined && !isInside(root, prefix));
  const directories = patterns.length > 0 ? [root] : [];
  const isHidden = (path: string): boolean =>
    patterns.some((pattern) => pattern.matches({ written: path, spelled: path, real: path }, around, false));
  for (const prefix of outside) {
    if (prefix === undefined || isInside(prefix, root)) continue;
    const stats = await lstat(prefix).catch(() => undefined);
    if (stats && isHidden(prefix)) hide.push(prefix);
    else if (stats?.isDirectory()) directories.push(prefix);
  }
  let entryCount = 0;
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    entryCount += entries.length;
    if (entryCount > most.entries) return undefined;
    for (const entry of entries) {
      const path = join(directory, entry.name);
      // The target of a link is checked at its own path, and hiding it there also hides it from readers of the link.
      if (entry.isSymbolicLink()) continue;
      if (isHidden(path)) hide.push(path);
      else if (entry.isDirectory()) directories.push(path);
    }
    if (hide.length > most.hidden) return undefined;
  }
  const limits = { entries: most.entries - entryCount, hidden: most.hidden - hide.length };
  hide.push(...(await hiddenBeside(root, searchesAbove(patterns, prefixes, root), isHidden, limits)));
  const named = prefixes.flatMap((prefix) => (prefix === undefined ? [] : directoriesBetween(root, prefix)));
  const hold = [...new Set(named)].filter((directory) =>
    hide.some((path) => path !== directory && isInside(directory, path)),
  );
  return { hide: [...new Set(hide)], hold };
}

/** A search below a directory that contains the working directory, in at most this many levels. */
interface SearchAbove {
  from: string;
  levels: number;
}

function searchesAbove(
  patterns: readonly PathPattern[],
  prefixes: readonly (string | undefined)[],
  root: string,
): SearchAbove[] {
  return prefixes.flatMap((from, at) => {
    if (from === undefined || from === root || !isInside(from, root)) return [];
    const parts = patterns[at]?.anchor?.parts ?? [];
    const wild = parts.findIndex(isWild);
    // Everything below a named directory matches too.
    const levels = parts.includes('**') ? Number.POSITIVE_INFINITY : wild === -1 ? 1 : parts.length - wild;
    return [{ from, levels }];
  });
}

/** They contain no files of a person, and the sandbox has its own. */
const SYSTEM_VIEWS: readonly string[] = ['/proc', '/sys', '/dev'];

/** What is hidden beside the working directory. The directories on the way to it are never hidden themselves. */
async function hiddenBeside(
  root: string,
  searches: readonly SearchAbove[],
  isHidden: (path: string) => boolean,
  most: { entries: number; hidden: number },
): Promise<string[]> {
  const hide = new Set<string>();
  let entryCount = 0;
  const rest = [...searches];
  for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
    const entries = await readdir(next.from, { withFileTypes: true }).catch(() => []);
    entryCount += entries.length;
    if (entryCount > most.entries) break;
    for (const entry of entries) {
      const path = join(next.from, entry.name);
      if (entry.isSymbolicLink() || path === root || SYSTEM_VIEWS.includes(path)) continue;
      const below = { from: path, levels: next.levels - 1 };
      if (isInside(path, root)) rest.push({ ...below, levels: Math.max(below.levels, 1) });
      else if (isHidden(path)) hide.add(path);
      else if (entry.isDirectory() && below.levels > 0) rest.push(below);
      if (hide.size >= most.hidden) return [...hide];
    }
  }
  return [...hide];
}

const isWild = (part: string): boolean => /[*?[\]\\]/.test(part);

/** The literal path before the first wildcard; undefined for a pattern that matches at any depth. */
function prefixOf({ anchor }: PathPattern, { root, home }: Surroundings): string | undefined {
  if (!anchor) return undefined;
  const at = anchor.parts.findIndex(isWild);
  const parts = at === -1 ? anchor.parts : anchor.parts.slice(0, at);
  return join({ root: '/', home, cwd: root }[anchor.base], ...parts);
}

/** All directories from the first one below the root down to the path itself. */
function directoriesBetween(root: string, path: string): string[] {
  if (path === root || !isInside(root, path)) return [];
  const parts = path
    .slice(root.length)
    .split('/')
    .filter((part) => part !== '');
  return parts.map((_, index) => join(root, ...parts.slice(0, index + 1)));
}
