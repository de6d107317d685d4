/**
 * What a word of a command may name among files. Rule: to deny, a word is taken apart in every way in which programs find
 * a path in it (`--file=x`, `-fx`, `-nfx`, `@x`, `HEAD:x`); a glob is what it may match, not what it matches today.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import ignore from 'ignore';
import { isInsideRoot, type PathSubject, pathSubject, type Surroundings } from './pathRules.ts';
import type { ShellWord } from './wordExpansion.ts';

const GLOB = /[*?[\]]/;
const ENTRIES_MAX = 2_000;
const LONGEST = 4_096;

/** The paths that a word may spell; of one that is computed, its literal end. */
export function candidatesOf({ value, source, isLiteral, isGlob }: ShellWord, home: string): string[] {
  if (value.length > LONGEST) return [];
  const expanded = source.startsWith('~') && /^~(\/|$)/.test(value) ? home + value.slice(1) : value;
  if (isGlob) return [literalDirectory(expanded)];
  if (!isLiteral) {
    const end = value.slice(Math.max(value.lastIndexOf('/'), value.lastIndexOf('='), value.lastIndexOf(':')) + 1);
    return /[$`*?{}()]/.test(end) || end === '' ? [] : [end];
  }
  const found = [expanded];
  for (const mark of ['=', ':', '@']) {
    const at = value.indexOf(mark);
    if (at !== -1 && at < value.length - 1) found.push(value.slice(at + 1).replace(/^~(?=\/)/, home));
  }
  const last = value.lastIndexOf(':');
  if (last > value.indexOf(':')) found.push(value.slice(last + 1));
  found.push(...gluedTo(value));
  // What git is told of a path before it, unless it is told to leave that path out.
  const magic = /^:\((?![^)]*exclude)[^)]*\)(.+)$/s.exec(value)?.[1];
  if (magic !== undefined) found.push(magic);
  return found.filter((path) => path !== '');
}

/** How many letters of options may stand before a value that is glued to them. */
const LETTERS_MAX = 8;

/** What may be the value of a short option: `-fx` gives `x`, and `-nfx` gives `x` too, since `n` may be an option of its own. */
function gluedTo(value: string): string[] {
  const letters = /^-([^-][a-zA-Z0-9]*)/.exec(value)?.[1]?.length ?? 0;
  return Array.from({ length: Math.min(letters, LETTERS_MAX) }, (_, index) => value.slice(index + 2));
}

/** The directory before the first part with a glob. */
function literalDirectory(value: string): string {
  const parts = value.split('/');
  const at = parts.findIndex((part) => GLOB.test(part));
  const directory = parts.slice(0, at).join('/');
  if (directory === '') return value.startsWith('/') ? '/' : '.';
  return directory;
}

/** Commands of git that show what is in files. */
const SHOWING = ['log', 'diff', 'show', 'grep'];

/** Patterns that git matches by itself: the shell hands them over as they are. Takes a command without wrappers. */
export function pathspecs([program, ...words]: readonly ShellWord[]): readonly ShellWord[] {
  if (program?.value !== 'git' || !words.some(({ value }) => SHOWING.includes(value))) return [];
  return words.filter(({ value, isGlob }) => !isGlob && !value.startsWith('-') && GLOB.test(value));
}

/** Whether a glob may match a path for which a rule has this last part. `dots`: leading ones too, over which the shell passes. */
export function mayMatch(glob: string, last: string, dots: boolean): boolean {
  if (/^\*{0,2}$/.test(last)) return true;
  for (const part of glob.split('/')) {
    if (!GLOB.test(part)) continue;
    if (!dots && GLOB.test(part[0] ?? '') && last.startsWith('.')) continue;
    if (!GLOB.test(last)) {
      if (ignore({ ignorecase: true }).add(part.replace(/^[!#]/, '\\$&')).ignores(last)) return true;
      continue;
    }
    const [a, b] = [part, last].map((text) => text.slice(text.search(/[^*?[\]]*$/)).toLowerCase());
    if (a !== undefined && b !== undefined && (a.endsWith(b) || b.endsWith(a))) return true;
  }
  return false;
}

/** A file whose name begins like an option is among what the glob may become, and the command may take it for one. */
export async function mayBecomeOption(glob: string, directory: string): Promise<boolean> {
  const at = glob.search(GLOB);
  const head = glob.slice(0, at);
  if (head !== '' && !head.startsWith('-')) return false;
  const names = await readdir(directory).catch(() => []);
  return names.some((name) => name.startsWith('-') && name.startsWith(head));
}

/** What a glob stands for at this moment. */
export interface GlobMatches {
  paths: readonly PathSubject[];
  /** Every entry that was looked at lies inside the working directory, and no directory on the way is a link. */
  staysInside: boolean;
}

/** Whether bash matches file names in a part of the path that is not its last. */
export const globsDirectories = (glob: string): boolean =>
  glob.replace(/\/+$/, '').split('/').slice(0, -1).some(isGlob);

const isGlob = (part: string): boolean => GLOB.test(part);

/** Looks a glob up as bash does. `**`, `..` after a match and more than 2,000 entries count as leading outside. */
export async function globMatches(glob: string, from: string, around: Surroundings): Promise<GlobMatches> {
  const parts = glob.split('/');
  const rest = parts.slice(parts.findIndex(isGlob));
  const outside: GlobMatches = { paths: [], staysInside: false };
  if (rest.includes('..') || glob.includes('**')) return outside;
  let staysInside = true;
  let seen = 0;
  let found = [await pathSubject(literalDirectory(glob), from, around)];
  for (const part of rest) {
    if (part === '' || part === '.') continue;
    const next: PathSubject[] = [];
    for (const directory of found) {
      staysInside &&= isInsideRoot(directory, around);
      const names = isGlob(part) ? await namesLike(part, directory.spelled) : [part];
      seen += names.length;
      if (seen > ENTRIES_MAX) return outside;
      for (const name of names) next.push(await pathSubject(join(directory.spelled, name), directory.spelled, around));
    }
    found = next;
  }
  return { paths: found, staysInside: staysInside && found.every((path) => isInsideRoot(path, around)) };
}

async function namesLike(part: string, directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => globLike(part).test(name) && (part.startsWith('.') || !name.startsWith('.')));
}

/** Matches at least what bash matches: from a bracket on, any text. */
const globLike = (part: string): RegExp =>
  new RegExp(
    `^${part
      .replace(/\[.*$/s, '*')
      .replace(/[\\^$.+(){}|/\]]/g, '\\$&')
      .replace(/\*+/g, '.*')
      .replaceAll('?', '.')}$`,
    'isu',
  );

/** Whether the last part of a glob may match one of these names, now or later. */
export const mayMatchName = (glob: string, names: Iterable<string>): boolean => {
  const last = glob.replace(/\/+$/, '').split('/').at(-1) ?? '';
  if (!isGlob(last) || !last.startsWith('.')) return false;
  return [...names].some((name) => globLike(last).test(name));
};
