/**
 * What a word of a command may name among files. Rule: to deny, a word is taken apart in every way in which programs find
 * a path in it (`--file=x`, `-fx`, `@x`, `HEAD:x`); a glob is what it may match, not what it matches today.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import ignore from 'ignore';
import { isInsideRoot, pathSubject, type Surroundings } from './pathRules.ts';
import type { ShellWord } from './shellSyntax.ts';

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
  if (/^-[^-]./.test(value)) found.push(value.slice(2));
  // What git is told of a path before it, unless it is told to leave that path out.
  const magic = /^:\((?![^)]*exclude)[^)]*\)(.+)$/s.exec(value)?.[1];
  if (magic !== undefined) found.push(magic);
  return found.filter((path) => path !== '');
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

/** Nothing that the glob can match leads out of the working directory, by a link or by `..` behind a match. */
export async function globStaysInside(glob: string, from: string, around: Surroundings): Promise<boolean> {
  const parts = glob.split('/');
  const start = literalDirectory(glob);
  const rest = parts.slice(parts.findIndex((part) => GLOB.test(part)));
  if (glob.startsWith('~') || rest.includes('..')) return false;
  let seen = 0;
  let directories = [(await pathSubject(start, from)).spelled];
  for (const part of rest) {
    const next: string[] = [];
    for (const directory of directories) {
      if (!isInsideRoot(await pathSubject(directory, directory), around)) return false;
      const entries = GLOB.test(part) ? await readdir(directory, { withFileTypes: true }).catch(() => []) : undefined;
      seen += entries?.length ?? 1;
      if (seen > ENTRIES_MAX || part.includes('**')) return false;
      for (const entry of entries ?? []) {
        const path = join(directory, entry.name);
        if (entry.isSymbolicLink() && !isInsideRoot(await pathSubject(path, directory), around)) return false;
        if (entry.isDirectory()) next.push(path);
      }
      if (entries === undefined) next.push(join(directory, part));
    }
    directories = next;
  }
  for (const path of directories) if (!isInsideRoot(await pathSubject(path, path), around)) return false;
  return true;
}
