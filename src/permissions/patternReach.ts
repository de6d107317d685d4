/**
 * Decides whether a rule's pattern can match a path that a glob or a search may find. Rule: the answer is no only if
 * the literal parts of both differ, or if no matching file exists now. Every other case counts as a match.
 */
import { readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isInside } from '../tools/coding/workspace.ts';
import type { PathPattern, PathSubject, Surroundings } from './pathRules.ts';
import { includedAbove, includedByFiles, includesName } from './readings/includedNames.ts';

const GLOB = /[*?[\]\\]/;
const ENTRIES_MAX = 20_000;

const folded = (part: string): string => part.normalize('NFC').toLowerCase();
const partsOf = (path: string): string[] => path.split(sep).filter((part) => part !== '' && part !== '.');

/**
 * The parts of a pattern from the file system root to its first `**`; undefined for a pattern that matches at any
 * depth. A pattern that spells the working directory also counts from where that leads.
 */
function anchored({ anchor }: PathPattern, { cwd, root, home }: Surroundings): string[][] | undefined {
  if (anchor === undefined) return undefined;
  const bases = { root: ['/'], home: [home], cwd: [cwd, root] }[anchor.base];
  const stop = anchor.parts.indexOf('**');
  const parts = stop === -1 ? anchor.parts : anchor.parts.slice(0, stop);
  const [spelled, real] = [partsOf(cwd), partsOf(root)];
  return bases.flatMap((base) => {
    const rule = [...partsOf(base), ...parts];
    const leadsThere = spelled.every((part, at) => rule[at] === undefined || mayMatch(rule[at], part));
    return leadsThere ? [rule, [...real, ...rule.slice(spelled.length)]] : [rule];
  });
}

/** `from` is the directory before the first part of the glob that contains a wildcard. */
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

/** A search below a directory. */
interface Search {
  /** Absolute, links resolved. */
  directory: string;
  /** The directory as the call spells it, if links lead to it. */
  spelled?: string;
  /** The search includes names with a leading dot. */
  dotted: boolean;
  /** The search also follows ignore files: each `!` line in them, like each of these patterns, includes such names. */
  included?: readonly string[];
  /** No command can create files before the search, so only files that exist now count. */
  isNow: boolean;
}

/**
 * True if a search may show a file that the pattern matches. A directory that is too large to check counts as a match.
 */
export async function mayShow(pattern: PathPattern, search: Search, around: Surroundings): Promise<boolean> {
  const { directory, spelled = directory, dotted, included, isNow } = search;
  const rules = anchored(pattern, around);
  const isOnWay = (path: string): boolean => {
    const parts = partsOf(path);
    return (
      !rules || rules.some((rule) => rule.every((part, at) => parts[at] === undefined || mayMatch(part, parts[at])))
    );
  };
  if (!isOnWay(directory) && !isOnWay(spelled)) return false;
  const mayBeMade = dotted || pattern.seesVisible || isDotted(directory, around) || (included ?? []).length > 0;
  if (!isNow && (mayBeMade || !included)) return mayBeMade;
  let entryCount = 0;
  const directories = [directory];
  const patterns = [...(included ?? []), ...(included ? await includedAbove(directory) : [])];
  const isSkipped = (name: string): boolean => !dotted && name.startsWith('.') && !includesName(patterns, name);
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    entryCount += entries.length;
    if (entryCount > ENTRIES_MAX) return true;
    if (included) patterns.push(...(await includedByFiles(next)));
    for (const entry of entries) {
      const path = join(next, entry.name);
      const byCall = join(spelled, path.slice(directory.length));
      if (isSkipped(entry.name) || !(isOnWay(path) || isOnWay(byCall))) continue;
      const subject = { written: path, spelled: spelledFrom(path, around), real: path };
      if ([subject, { ...subject, spelled: byCall }].some((each) => pattern.matches(each, around, false))) return true;
      if (entry.isDirectory()) directories.push(path);
    }
  }
  return false;
}

const isDotted = (directory: string, { root }: Surroundings): boolean =>
  !isInside(root, directory) || partsOf(directory.slice(root.length)).some((part) => part.startsWith('.'));

const mayMatch = (rule: string, name: string | undefined): boolean =>
  GLOB.test(rule) || folded(rule) === folded(name ?? '');

/** The path as rules spell it: the working directory may itself be reached by a link. */
const spelledFrom = (path: string, { cwd, root }: Surroundings): string =>
  isInside(root, path) ? join(cwd, path.slice(root.length)) : path;
