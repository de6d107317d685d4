/**
 * The files that path rules hide from a command in the sandbox, looked up before it runs. Rule: what a rule hides stays hidden
 * also after the command: a directory that a rule names cannot be moved to where the rule does not fit.
 */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isInside } from '../tools/coding/workspace.ts';
import type { PathPattern, Surroundings } from './pathRules.ts';

const ENTRIES_MAX = 200_000;
const HIDDEN_MAX = 2_000;

export interface HiddenPlaces {
  /** Absolute; a hidden directory stands for all below it. */
  hide: string[];
  /** Directories that rules name, above what they hide. */
  hold: string[];
}

/**
 * What patterns hide now: below the working directory, and below the places outside that they name. Ignored and dotted names count.
 * Undefined where a directory is too large to look through, or more than `hiddenMax` are hidden.
 */
export async function hiddenPaths(
  patterns: readonly PathPattern[],
  { root, home, linkAt }: Surroundings,
  hiddenMax = HIDDEN_MAX,
): Promise<HiddenPlaces | undefined> {
  const around = { root, cwd: root, home, linkAt };
  const hide: string[] = [];
  const prefixes = patterns.map((pattern) => prefixOf(pattern, around));
  // Below the root all patterns count, below another place the one that names it.
  const outside = prefixes.filter((prefix) => prefix !== undefined && !isInside(root, prefix));
  const directories = patterns.length > 0 ? [root] : [];
  const isHidden = (path: string): boolean =>
    patterns.some((pattern) => pattern.matches({ given: path, spelled: path, real: path }, around, false));
  for (const prefix of outside) {
    if (prefix === undefined || isInside(prefix, root)) continue;
    const found = await lstat(prefix).catch(() => undefined);
    if (found && isHidden(prefix)) hide.push(prefix);
    else if (found?.isDirectory()) directories.push(prefix);
  }
  let seen = 0;
  for (let directory = directories.pop(); directory !== undefined; directory = directories.pop()) {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    seen += entries.length;
    if (seen > ENTRIES_MAX) return undefined;
    for (const entry of entries) {
      const path = join(directory, entry.name);
      // A link is judged where it leads, and what is hidden there is hidden through the link too.
      if (entry.isSymbolicLink()) continue;
      if (isHidden(path)) hide.push(path);
      else if (entry.isDirectory()) directories.push(path);
    }
    if (hide.length > hiddenMax) return undefined;
  }
  const above = prefixes.flatMap((prefix) => (prefix === undefined ? [] : directoriesBetween(root, prefix)));
  const hold = [...new Set(above)].filter((directory) =>
    hide.some((path) => path !== directory && isInside(directory, path)),
  );
  return { hide: [...new Set(hide)], hold };
}

/** The path before the first part of a pattern that is none; undefined for a pattern that fits at any depth. */
function prefixOf({ anchor }: PathPattern, { root, home }: Surroundings): string | undefined {
  if (!anchor) return undefined;
  const at = anchor.parts.findIndex((part) => /[*?[\]\\]/.test(part));
  const parts = at === -1 ? anchor.parts : anchor.parts.slice(0, at);
  return join({ root: '/', home, cwd: root }[anchor.base], ...parts);
}

/** From below the root down to the path, which is one of them. */
function directoriesBetween(root: string, path: string): string[] {
  if (path === root || !isInside(root, path)) return [];
  const parts = path
    .slice(root.length)
    .split('/')
    .filter((part) => part !== '');
  return parts.map((_, index) => join(root, ...parts.slice(0, index + 1)));
}
