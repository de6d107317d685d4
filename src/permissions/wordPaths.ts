/**
 * Finds the paths that a word of a command may name. Rule: for deny rules, a word is split in every way in which
 * programs find a path in it (`--file=x`, `-fx`, `-nfx`, `@x`, `HEAD:x`). A glob counts as everything that it may
 * match, not only as its current matches.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import ignore from 'ignore';
import { isInsideRoot, type PathSubject, pathSubject, type Surroundings } from './pathRules.ts';
import type { ShellWord } from './wordExpansion.ts';

const GLOB = /[*?[\]]/;
const ENTRIES_MAX = 2_000;
const LONGEST = 4_096;
/** A part of a glob with more stars may match any name, because a comparison would take too long. */
const STARS_MAX = 6;

/** The paths that a word may spell. For a computed word, its literal end. */
export function candidatesOf({ value, source, isLiteral, isGlob }: ShellWord, home: string): string[] {
  if (value.length > LONGEST) return [];
  const expanded = source.startsWith('~') && /^~(\/|$)/.test(value) ? home + value.slice(1) : value;
  if (isGlob) return [literalDirectory(expanded)];
  if (!isLiteral) {
    const end = value.slice(Math.max(value.lastIndexOf('/'), value.lastIndexOf('='), value.lastIndexOf(':')) + 1);
    return /[$`*?{}()]/.test(end) || end === '' ? [] : [end];
  }
  const candidates = [expanded];
  for (const mark of ['=', ':', '@']) {
    const at = value.indexOf(mark);
    if (at !== -1 && at < value.length - 1) candidates.push(value.slice(at + 1).replace(/^~(?=\/)/, home));
  }
  const last = value.lastIndexOf(':');
  if (last > value.indexOf(':')) candidates.push(value.slice(last + 1));
  candidates.push(...gluedTo(value));
  candidates.push(...partsOf(expanded));
  // The path after git's pathspec magic, unless the magic excludes the path.
  const magic = /^:\((?![^)]*exclude)[^)]*\)(.+)$/s.exec(value)?.[1];
  if (magic !== undefined) candidates.push(magic);
  return candidates.filter((path) => path !== '');
}

/** Links of `/proc` that lead to a place of the process which resolves them, or of another one. */
const PROCESS_LINK = /^\/proc\/([^/]+)(?:\/task\/[^/]+)?\/(cwd|root|fd\/[^/]+)$/;
const OF_PROCESS = /^\/proc\/[^/]+(\/task\/[^/]+)?\/(cwd|root|fd\/[^/]+)\//;
const OPEN_FILE = /\/fd\/[^/]+$/;
const OWN_PROCESS = /^(thread-)?self$/;

/** The path as a command that runs in `from` resolves it. There, `/proc/self/cwd` is `from`. */
export function commandSubject(written: string, from: string, around: Surroundings): Promise<PathSubject> {
  const linkAt = async (path: string): Promise<string | undefined> => {
    if (/^\/proc\/(thread-)?self$/.test(path) || OF_PROCESS.test(path)) return undefined;
    const [, id = '', link = ''] = PROCESS_LINK.exec(path) ?? [];
    if (link === '') return around.linkAt(path);
    if (!OWN_PROCESS.test(id) || link.startsWith('fd/')) return undefined;
    return link === 'cwd' ? from : '/';
  };
  return pathSubject(written, from, { ...around, linkAt });
}

/** True if the path leads through the directory of another process, or through a directory that a process has opened. */
export const isOfProcess = ({ real }: PathSubject): boolean =>
  real !== undefined && OF_PROCESS.test(`${real}/`) && !OPEN_FILE.test(real);

/** The most option letters that may precede an attached value. */
const LETTERS_MAX = 8;

/**
 * The possible values of a short option: `-fx` gives `x`. `-nfx` gives `x` too, because `n` may be an option without a
 * value.
 */
function gluedTo(value: string): string[] {
  const letters = /^-([^-][a-zA-Z0-9]*)/.exec(value)?.[1]?.length ?? 0;
  return Array.from({ length: Math.min(letters, LETTERS_MAX) }, (_, index) => value.slice(index + 2));
}

const PARTS_MAX = 16;

/** The parts of a list of values (`.env:/x`, `type=bind,src=.env,dst=/x`, `--from-file=k=.env`). A text has blanks. */
function partsOf(value: string): string[] {
  if (/\s|:\/\//.test(value)) return [];
  const parts = value.split(/[=:,]/, PARTS_MAX);
  return parts.length > 1 ? parts : [];
}

/** The directory before the first part that contains a wildcard. */
function literalDirectory(value: string): string {
  const parts = value.split('/');
  const at = parts.findIndex((part) => GLOB.test(part));
  const directory = parts.slice(0, at).join('/');
  if (directory === '') return value.startsWith('/') ? '/' : '.';
  return directory;
}

/** Git commands that show file contents. */
const SHOWING = ['log', 'diff', 'show', 'grep'];

/** Patterns that git matches itself, because the shell passes them unchanged. Expects a command without wrappers. */
export function pathspecs([program, ...words]: readonly ShellWord[]): readonly ShellWord[] {
  if (program?.value !== 'git' || !words.some(({ value }) => SHOWING.includes(value))) return [];
  return words.filter(({ value, isGlob }) => !isGlob && !value.startsWith('-') && GLOB.test(value));
}

/**
 * True if a glob may match a path that a rule with this last part matches. `dots`: the glob also matches leading dots,
 * which the shell skips.
 */
export function mayMatch(glob: string, last: string, dots: boolean): boolean {
  if (/^\*{0,2}$/.test(last)) return true;
  for (const part of glob.split('/')) {
    if (!GLOB.test(part)) continue;
    if (!dots && GLOB.test(part[0] ?? '') && last.startsWith('.')) continue;
    if (!GLOB.test(last)) {
      if (part.split('*').length > STARS_MAX) return true;
      if (ignore({ ignorecase: true }).add(part.replace(/^[!#]/, '\\$&')).ignores(last)) return true;
      continue;
    }
    const [a, b] = [part, last].map((text) => text.slice(text.search(/[^*?[\]]*$/)).toLowerCase());
    if (a !== undefined && b !== undefined && (a.endsWith(b) || b.endsWith(a))) return true;
  }
  return false;
}

/** True if the glob may match a file whose name looks like an option; the command would read it as one. */
export async function mayBecomeOption(glob: string, directory: string): Promise<boolean> {
  const at = glob.search(GLOB);
  const head = glob.slice(0, at);
  if (head !== '' && !head.startsWith('-')) return false;
  const names = await readdir(directory).catch(() => []);
  return names.some((name) => name.startsWith('-') && name.startsWith(head));
}

/** The current matches of a glob. */
export interface GlobMatches {
  paths: readonly PathSubject[];
  /** All visited entries lie inside the working directory, and no directory on the way is a link. */
  staysInside: boolean;
}

/** True if a part of the path other than the last contains a wildcard. */
export const globsDirectories = (glob: string): boolean =>
  glob.replace(/\/+$/, '').split('/').slice(0, -1).some(isGlob);

const isGlob = (part: string): boolean => GLOB.test(part);

/** Looks a glob up as bash does. `**`, `..` after a wildcard and more than 2,000 entries count as leading outside. */
export async function globMatches(glob: string, from: string, around: Surroundings): Promise<GlobMatches> {
  const parts = glob.split('/');
  const rest = parts.slice(parts.findIndex(isGlob));
  const outside: GlobMatches = { paths: [], staysInside: false };
  if (rest.includes('..') || glob.includes('**')) return outside;
  let staysInside = true;
  let entryCount = 0;
  let matches = [await commandSubject(literalDirectory(glob), from, around)];
  for (const part of rest) {
    if (part === '' || part === '.') continue;
    const next: PathSubject[] = [];
    for (const directory of matches) {
      staysInside &&= isInsideRoot(directory, around);
      const names = isGlob(part) ? await namesLike(part, directory.real ?? directory.spelled) : [part];
      entryCount += names.length;
      if (entryCount > ENTRIES_MAX) return outside;
      for (const name of names) next.push(await commandSubject(join(directory.spelled, name), from, around));
    }
    matches = next;
  }
  return { paths: matches, staysInside: staysInside && matches.every((path) => isInsideRoot(path, around)) };
}

async function namesLike(part: string, directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  const isLike = globLike(part);
  return names.filter((name) => isLike(name) && (part.startsWith('.') || !name.startsWith('.')));
}

/**
 * Matches every name that bash would match, and possibly more: after a bracket, any text matches. The texts between the
 * stars are searched one after the other. One expression for all of them could try every way to divide the name.
 */
function globLike(part: string): (name: string) => boolean {
  const [first = '', ...rest] = part
    .replace(/\[.*$/s, '*')
    .split(/\*+/)
    .map((piece) => piece.replace(/[\\^$.+(){}|/\]]/g, '\\$&').replaceAll('?', '.'));
  if (rest.length === 0) {
    const whole = new RegExp(`^${first}$`, 'isu');
    return (name) => whole.test(name);
  }
  const pieces = [`^${first}`, ...rest.slice(0, -1), `${rest.at(-1)}$`].map((piece) => new RegExp(piece, 'gisu'));
  return (name) => {
    let at = 0;
    return pieces.every((piece) => {
      piece.lastIndex = at;
      const isFound = piece.test(name);
      at = piece.lastIndex;
      return isFound;
    });
  };
}

/** True if the last part of a glob may match one of these names, now or later. */
export const mayMatchName = (glob: string, names: Iterable<string>): boolean => {
  const last = glob.replace(/\/+$/, '').split('/').at(-1) ?? '';
  if (!isGlob(last) || !last.startsWith('.')) return false;
  return [...names].some(globLike(last));
};
