/**
 * Where the words of a line of the shell lead. Rule: everything is looked up before anything is judged, in every directory
 * that the line may be in; what cannot be looked up for certain is a doubt.
 */
import { stat } from 'node:fs/promises';
import { baseName, unwrapped, withoutGlobalOptions } from './commandForms.ts';
import { isInsideRoot, type PathSubject, pathSubject, type Surroundings } from './pathRules.ts';
import { mayShow } from './patternReach.ts';
import { gitDoubt, ownsRepository } from './readings/gitRepository.ts';
import { redirectsOf } from './readings/innerCommands.ts';
import type { Reading } from './readings/reading.ts';
import { readingOf } from './readings/readOnlyCommands.ts';
import type { Rule } from './rules.ts';
import type { ShellLine, SimpleCommand } from './shellSyntax.ts';
import type { ShellWord } from './wordExpansion.ts';
import { candidatesOf, type GlobMatches, globMatches, mayBecomeOption } from './wordPaths.ts';

const DIRECTORIES_MAX = 16;
const PATHS_MAX = 2_000;

/** Where the words of a line lead, looked up before anything is judged. */
export interface Places {
  doubts: string[];
  subjects: ReadonlyMap<string, readonly PathSubject[]>;
  /** What globs match now, in every directory that the line may be in. */
  globs: ReadonlyMap<string, GlobMatches>;
  /** Of the words that name something that is there: is it a file? */
  areFiles: ReadonlyMap<string, boolean>;
  /** Why git may do more than read here. */
  git: string | undefined;
  /** The repository lies in the working directory. */
  ownsRepository: boolean;
  /** Of commands that read below directories: the rules that hide files which they would show. */
  hidden: ReadonlyMap<SimpleCommand, Rule>;
  /** The same of commands that copy what is below directories. */
  copied: ReadonlyMap<SimpleCommand, Rule>;
  /** Doubts about the lines in texts that commands run. */
  innerDoubts: readonly string[];
}

interface Around {
  /** Lines in texts that commands of the line run. */
  inner: readonly ShellLine[];
  around: Surroundings;
  /** The rules that deny or ask about reading some path. */
  hiding: readonly Rule[];
}

export async function placesOf(line: ShellLine, { inner, around, hiding }: Around): Promise<Places> {
  const { directories, doubts, innerDoubts } = await directoriesOf(line, inner, around);
  const words = [line, ...inner].flatMap((each) => [
    ...each.words,
    ...redirectsOf(each).flatMap(({ target }) => (target ? [target] : [])),
  ]);
  const found = [...new Set(words.flatMap((word) => candidatesOf(word, around.home)))];
  if (found.length > PATHS_MAX) doubts.push('the line names too many files');
  const subjects = new Map<string, readonly PathSubject[]>();
  for (const path of found.slice(0, PATHS_MAX)) {
    subjects.set(path, await Promise.all(directories.map((directory) => pathSubject(path, directory, around))));
  }
  const globs = new Map<string, GlobMatches>();
  for (const { value, source, isGlob } of words) {
    if (!isGlob || globs.has(value)) continue;
    const pattern = source.startsWith('~') ? value.replace(/^~(?=\/|$)/, around.home) : value;
    const matches = await Promise.all(directories.map((directory) => globMatches(pattern, directory, around)));
    globs.set(value, {
      paths: matches.flatMap(({ paths }) => paths),
      staysInside: matches.every(({ staysInside }) => staysInside),
    });
    for (const directory of directories)
      if (await mayBecomeOption(value, directory)) doubts.push('the name of a file may become an option');
  }
  if (mayMatchDotted([line, ...inner])) doubts.push('a pattern may match names with a leading dot');
  const places = { doubts, subjects, globs, areFiles: await filesAmong(subjects) };
  const usesGit = line.commands.some(({ words }) => words.some(({ value }) => baseName(value) === 'git'));
  return {
    ...places,
    git: usesGit ? await gitDoubt(around.root) : undefined,
    ownsRepository: !usesGit || (await ownsRepository(around.root)),
    hidden: await hiddenFrom(line, { ...places, directories, around, hiding }),
    copied: await copiedFrom([line, ...inner], { ...places, directories, around, hiding }),
    innerDoubts,
  };
}

/** Settings with which bash no longer passes over names with a leading dot. */
const DOTTED = /\b(dotglob|GLOBIGNORE|BASHOPTS)\b/;

/** Whether lines name such a setting, and have a pattern that it would change. */
function mayMatchDotted(lines: readonly ShellLine[]): boolean {
  const words = lines.flatMap((line) => [...line.words, ...line.commands.flatMap((command) => command.words)]);
  const assigned = lines.flatMap(({ commands }) => commands.flatMap((command) => command.assigned));
  const isNamed = words.some(({ value }) => DOTTED.test(value)) || assigned.some(({ name }) => DOTTED.test(name));
  return isNamed && words.some(({ isGlob, mayBecomeGlob }) => isGlob || mayBecomeGlob === true);
}

async function filesAmong(subjects: Places['subjects']): Promise<Map<string, boolean>> {
  const areFiles = new Map<string, boolean>();
  for (const [path, [subject]] of subjects) {
    const found = subject?.real === undefined ? undefined : await stat(subject.real).catch(() => undefined);
    if (found) areFiles.set(path, found.isFile());
  }
  return areFiles;
}

interface Searched extends Pick<Places, 'subjects' | 'globs'> {
  directories: readonly string[];
  around: Surroundings;
  hiding: readonly Rule[];
}

/** The first rule of those that hide something below a directory that a command reads. */
async function hiddenFrom({ commands }: ShellLine, searched: Searched): Promise<Map<SimpleCommand, Rule>> {
  const { around, hiding } = searched;
  const found = new Map<SimpleCommand, Rule>();
  const isNow = commands.every(({ words }) => words.length === 0 || readingOf(unwrapped(words)) !== undefined);
  for (const command of commands) {
    const words = unwrapped(command.words);
    const reading = readingOf(words);
    const descends = searchOf(words, reading);
    if (descends === false) continue;
    // Of commits nobody knows what they hold, and of other programs nobody knows where they search.
    const roots = reading && !reading.usesGit ? await rootsOf(reading, searched) : undefined;
    for (const rule of hiding) {
      if (found.has(command) || rule.subject.kind !== 'path') continue;
      const { pattern } = rule.subject;
      const search = { dotted: descends === 'all', isNow };
      const shows =
        roots && (await Promise.all(roots.map((directory) => mayShow(pattern, { ...search, directory }, around))));
      if (shows?.some(Boolean) ?? (descends === 'all' || pattern.seesVisible)) found.set(command, rule);
    }
  }
  return found;
}

const COPIES_ALL = /^(tar|gtar|bsdtar|zip|7z|7za|rsync|scp)$/;

/** The first rule of those that hide something below a directory that a command is given to copy. */
async function copiedFrom(lines: readonly ShellLine[], searched: Searched): Promise<Map<SimpleCommand, Rule>> {
  const { around, hiding, subjects, globs } = searched;
  const found = new Map<SimpleCommand, Rule>();
  for (const command of lines.flatMap(({ commands }) => commands)) {
    const [name, ...words] = unwrapped(command.words);
    const program = baseName(name?.value ?? '');
    const copies = COPIES_ALL.test(program) || (program === 'cp' && words.some(isRecursive));
    if (!copies || hiding.length === 0) continue;
    const given = words.flatMap((word) =>
      word.isGlob
        ? (globs.get(word.value)?.paths ?? [])
        : candidatesOf(word, around.home).flatMap((path) => subjects.get(path) ?? []),
    );
    const roots = new Set(given.flatMap(({ real }) => (real === undefined ? [] : [real])));
    for (const directory of roots)
      for (const rule of hiding) {
        if (found.has(command) || rule.subject.kind !== 'path') continue;
        const search = { directory, dotted: true, isNow: true };
        if (await mayShow(rule.subject.pattern, search, around)) found.set(command, rule);
      }
  }
  return found;
}

const isRecursive = ({ value }: ShellWord): boolean => /^-[a-zA-Z]*[aRr]|^--(archive|rec)/.test(value);

/** The directories below which a command reads; undefined where they are not known. */
async function rootsOf({ roots, paths }: Reading, searched: Searched): Promise<string[] | undefined> {
  const { subjects, globs, directories, around } = searched;
  const words = roots ?? paths;
  if (words.some(({ isLiteral, isGlob }) => !isLiteral && !isGlob)) return undefined;
  const named = words.flatMap((word) =>
    word.isGlob
      ? (globs.get(word.value)?.paths ?? [])
      : candidatesOf(word, around.home).flatMap((path) => subjects.get(path) ?? []),
  );
  // Without a directory of its own it reads below the one that it runs in.
  const here = roots ? [] : await Promise.all(directories.map((directory) => pathSubject('.', directory, around)));
  const reals = [...named, ...here].map(({ real }) => real);
  return reals.every((real) => real !== undefined) ? [...new Set(reals)] : undefined;
}

const SEARCHES = /^(grep|egrep|fgrep|rg|ag|ack)$/;
const GIT_SHOWS =
  /^(grep|diff|show|log|archive|cat-file|blame|annotate|format-patch|fast-export|range-diff|whatchanged|diff-\w+)$/;
/** With such a word they show what is in files too. */
const GIT_SHOWS_BY = /^(status|commit|stash|reflog)$/;
const SHOWS = /^(-v+|--verbose|-p|-u|--patch|show)$/;

/** Which files below a directory a command shows, whether or not it is one of the reading commands. */
function searchOf(words: readonly ShellWord[], reading: Reading | undefined): Reading['descends'] {
  if (reading) return reading.descends;
  const [name, ...args] = words;
  const program = baseName(name?.value ?? '');
  if (program === 'git') {
    const [subcommand, ...rest] = withoutGlobalOptions(words)?.slice(1) ?? args;
    const name = subcommand?.value ?? '';
    return GIT_SHOWS.test(name) || (GIT_SHOWS_BY.test(name) && rest.some(({ value }) => SHOWS.test(value)))
      ? 'all'
      : false;
  }
  // What they hand on is known when the line runs.
  if (args.some(({ value }) => /^--files0?(-|=|$)/.test(value))) return 'all';
  if (program === 'xargs' || (program === 'find' && args.some(({ value }) => /^-(exec|ok)/.test(value)))) return 'all';
  if (!SEARCHES.test(program)) return false;
  return !program.endsWith('grep') || args.some(({ value }) => /^-[a-zA-Z]*[rRd]|^--(rec|deref|dir)/.test(value))
    ? 'all'
    : false;
}

const LINK_MAKERS = /^(ln|mv|tar|unzip|rsync|bsdtar|cpio|patch)$/;
const GIT_CHECKS_OUT =
  /^(checkout|switch|stash|pull|merge|clone|reset|restore|rebase|cherry-pick|revert|worktree|apply|am)$/;

/** Files are looked up before the line runs, so what one command makes of them another one may read otherwise. */
function makesLinks({ words }: SimpleCommand): boolean {
  const [name, first, ...rest] = unwrapped(words);
  const program = baseName(name?.value ?? '');
  if (program === 'git') return GIT_CHECKS_OUT.test(first?.value ?? '');
  if (program === 'cp') return [first, ...rest].some((word) => /^-[a-zA-Z]*[adlPRrs]|^--/.test(word?.value ?? ''));
  return LINK_MAKERS.test(program);
}

const readsFiles = ({ words, redirects }: SimpleCommand): boolean =>
  (readingOf(unwrapped(words))?.paths.length ?? 0) > 0 || redirects.some(({ operator }) => operator === '<');

/** A change of directory may happen or not, so each path is judged in every directory the line may be in. */
async function directoriesOf({ commands }: ShellLine, inner: readonly ShellLine[], around: Surroundings) {
  const [doubts, innerDoubts]: [string[], string[]] = [[], []];
  const found = new Set([around.cwd]);
  const innerCommands = new Set(inner.flatMap((line) => line.commands));
  for (const command of [...commands, ...innerCommands]) {
    await changeDirectory(command, { found, doubts: innerCommands.has(command) ? innerDoubts : doubts, around });
  }
  const maker = commands.find(makesLinks);
  if (maker && commands.some((command) => command !== maker && readsFiles(command)))
    doubts.push(`${maker.words[0]?.source} may change where the files of the line lead`);
  // What is configured in the other directory can make git run anything.
  const usesGit = commands.some(({ words }) => words.some(({ value }) => baseName(value) === 'git'));
  if (found.size > 1 && usesGit) doubts.push('git is used in another directory');
  return { directories: [...found], doubts, innerDoubts };
}

interface Moves {
  found: Set<string>;
  doubts: string[];
  around: Surroundings;
}

async function changeDirectory({ words }: SimpleCommand, { found, doubts, around }: Moves): Promise<void> {
  const [name, to, ...more] = unwrapped(words);
  if (!name || !['cd', 'pushd', 'popd', 'chdir'].includes(name.value)) return;
  if (name.value !== 'cd' || !to?.isLiteral || more.length > 0 || /^[-~]/.test(to.value)) {
    doubts.push('the directory is changed to one that is not known');
    return;
  }
  for (const directory of [...found]) {
    const next = await pathSubject(to.value, directory, around);
    // `cd` goes back by spelling where the kernel follows a link first.
    const asSpelled = await pathSubject(next.spelled, directory, around);
    if (!isInsideRoot(next, around) || asSpelled.real !== next.real) doubts.push('the working directory is left');
    if (found.size < DIRECTORIES_MAX) found.add(next.spelled);
    else doubts.push('the directory is changed too often');
  }
}
