/**
 * Whether the pattern of a rule can meet what a glob or a search may find. Rule: it cannot only where both are written
 * out to a part in which they differ, or where nothing that it matches is there now; every other case counts as met.
 */
import { readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isInside } from '../tools/coding/workspace.ts';
import type { PathPattern, PathSubject, Surroundings } from './pathRules.ts';

const GLOB = /[*?[\]\\]/;
const ENTRIES_MAX = 20_000;

const folded = (part: string): string => part.normalize('NFC').toLowerCase();
const partsOf = (path: string): string[] => path.split(sep).filter((part) => part !== '' && part !== '.');

/** The parts that a pattern has from the root on, up to a `**`; undefined for one that floats. */
function anchored({ anchor }: PathPattern, { cwd, root, home }: Surroundings): string[][] | undefined {
  if (anchor === undefined) return undefined;
  const bases = { root: ['/'], home: [home], cwd: [cwd, root] }[anchor.base];
  const stop = anchor.parts.indexOf('**');
  const parts = stop === -1 ? anchor.parts : anchor.parts.slice(0, stop);
  return bases.map((base) => [...partsOf(base), ...parts]);
}

/** `from`: the directory before the first part of the glob that is a pattern. */
export function mayMeetGlob(pattern: PathPattern, glob: string, from: PathSubject, around: Surroundings): boolean {
  const rules = anchored(pattern, around);
  const parts = glob.split('/');
  const rest = parts.slice(parts.findIndex((part) => GLOB.test(part))).filter((part) => part !== '' && part !== '.');
  if (rules === undefined || from.real === undefined || rest.includes('..') || glob.includes('**')) return true;
  return [from.spelled, from.real].some((directory) => {
    const path = [...partsOf(directory), ...rest];
    return rules.some((rule) => rule.every((part, at) => path[at] === undefined || mayBeSame(part, path[at] ?? '')));
  });
}

function mayBeSame(rule: string, glob: string): boolean {
  if (GLOB.test(rule)) return true;
  if (!GLOB.test(glob)) return folded(rule) === folded(glob);
  if (rule.startsWith('.') && !glob.startsWith('.')) return false;
  const head = folded(glob.slice(0, glob.search(GLOB)));
  const tail = folded(/[^*?[\]\\]*$/.exec(glob)?.[0] ?? '');
  return folded(rule).startsWith(head) && folded(rule).endsWith(tail);
}

/** Which files below a directory are meant, and whether they are looked up as they are now. */
interface Search {
  /** Absolute, links resolved. */
  directory: string;
  /** Names with a leading dot count too. */
  dotted: boolean;
  /** Nothing else can make files before the search: what is not there now is not found. */
  isNow: boolean;
}

/** Whether a search may show something that the pattern matches. A directory too large to look through counts as having it. */
export async function mayShow(pattern: PathPattern, search: Search, around: Surroundings): Promise<boolean> {
  const { directory, dotted, isNow } = search;
  const rules = anchored(pattern, around);
  const isOnWay = (path: string): boolean => {
    const parts = partsOf(path);
    return (
      !rules || rules.some((rule) => rule.every((part, at) => parts[at] === undefined || mayMatch(part, parts[at])))
    );
  };
  if (!isOnWay(directory)) return false;
  if (!isNow) return dotted || pattern.seesVisible || isDotted(directory, around);
  let seen = 0;
  const directories = [directory];
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    seen += entries.length;
    if (seen > ENTRIES_MAX) return true;
    for (const entry of entries) {
      const path = join(next, entry.name);
      if ((!dotted && entry.name.startsWith('.')) || !isOnWay(path)) continue;
      const subject = { given: path, spelled: spelledFrom(path, around), real: path };
      if (pattern.matches(subject, around, false)) return true;
      if (entry.isDirectory()) directories.push(path);
    }
  }
  return false;
}

const isDotted = (directory: string, { root }: Surroundings): boolean =>
  !isInside(root, directory) || partsOf(directory.slice(root.length)).some((part) => part.startsWith('.'));

const mayMatch = (rule: string, name: string | undefined): boolean =>
  GLOB.test(rule) || folded(rule) === folded(name ?? '');

/** The spelling that a rule may have for a place below the working directory, which may itself be a link. */
const spelledFrom = (path: string, { cwd, root }: Surroundings): string =>
  isInside(root, path) ? join(cwd, path.slice(root.length)) : path;
