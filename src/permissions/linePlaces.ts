/**
 * Finds the paths to which the words of a shell line lead. Rule: all look-ups happen before any verdict, in every
 * directory in which the line may run. A place that cannot be determined is recorded as a doubt.
 */
import { stat } from 'node:fs/promises';
import { withoutGlobalOptions } from './commandForms.ts';
import { isInsideRoot, type PathSubject, type Surroundings } from './pathRules.ts';
import { mayShow } from './patternReach.ts';
import { gitDoubt, ownsRepository } from './readings/gitRepository.ts';
import { redirectsOf } from './readings/innerCommands.ts';
import type { Reading } from './readings/reading.ts';
import { readingOf } from './readings/readOnlyCommands.ts';
import type { Rule } from './rules.ts';
import type { ShellLine, SimpleCommand } from './shellSyntax.ts';
import type { ShellWord } from './wordExpansion.ts';
import {
  candidatesOf,
  commandSubject,
  type GlobMatches,
  globMatches,
  isOfProcess,
  mayBecomeOption,
} from './wordPaths.ts';
import { baseName, unwrapped } from './wrappers.ts';

const DIRECTORIES_MAX = 16;
const PATHS_MAX = 2_000;

/** The paths to which the words of a line lead. */
export interface Places {
  doubts: string[];
  subjects: ReadonlyMap<string, readonly PathSubject[]>;
  /** The current matches of each glob, in every directory in which the line may run. */
  globs: ReadonlyMap<string, GlobMatches>;
  /** For each word that names an existing path: true if it is a file. */
  areFiles: ReadonlyMap<string, boolean>;
  /** The reason why git may do more than read here. */
  git: string | undefined;
  /** The working directory itself contains the repository. */
  ownsRepository: boolean;
  /** For each command that reads below directories: the rule that hides files which it would show. */
  hidden: ReadonlyMap<SimpleCommand, Rule>;
  /** For each command that copies directories: the rule that hides files which it would copy. */
  copied: ReadonlyMap<SimpleCommand, Rule>;
  /** Doubts about the shell lines inside the texts that commands run. */
  innerDoubts: readonly string[];
}

interface Around {
  /** The shell lines inside the texts that commands run. */
  inner: readonly ShellLine[];
  around: Surroundings;
  /** The deny and ask rules about reading a path. */
  hiding: readonly Rule[];
}

export async function placesOf(line: ShellLine, { inner, around, hiding }: Around): Promise<Places> {
  const { directories, doubts, innerDoubts } = await directoriesOf(line, inner, around);
  const words = [line, ...inner].flatMap((each) => [
    ...each.words,
    ...redirectsOf(each).flatMap(({ target }) => (target ? [target] : [])),
  ]);
  const candidates = [...new Set(words.flatMap((word) => candidatesOf(word, around.home)))];
  if (candidates.length > PATHS_MAX) doubts.push('the line names too many files');
  const subjects = new Map<string, readonly PathSubject[]>();
  for (const path of candidates.slice(0, PATHS_MAX)) {
    subjects.set(path, await Promise.all(directories.map((directory) => commandSubject(path, directory, around))));
  }
  const foreign = [...subjects].find(([, places]) => places.some(isOfProcess));
  if (foreign) doubts.push(`${foreign[0]} leads to a place of another process`);
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

/** Settings that make bash globs match names with a leading dot. */
const DOTTED = /\b(dotglob|GLOBIGNORE|BASHOPTS)\b/;

/** True if the lines name such a setting and contain a glob that it would change. */
function mayMatchDotted(lines: readonly ShellLine[]): boolean {
  const words = lines.flatMap((line) => [...line.words, ...line.commands.flatMap((command) => command.words)]);
  const assigned = lines.flatMap(({ commands }) => commands.flatMap((command) => command.assigned));
  const isNamed = words.some(({ value }) => DOTTED.test(value)) || assigned.some(({ name }) => DOTTED.test(name));
  return isNamed && words.some(({ isGlob, mayBecomeGlob }) => isGlob || mayBecomeGlob === true);
}

async function filesAmong(subjects: Places['subjects']): Promise<Map<string, boolean>> {
  const areFiles = new Map<string, boolean>();
  for (const [path, [subject]] of subjects) {
    const stats = subject?.real === undefined ? undefined : await stat(subject.real).catch(() => undefined);
    if (stats) areFiles.set(path, stats.isFile());
  }
  return areFiles;
}

interface Searched extends Pick<Places, 'subjects' | 'globs'> {
  directories: readonly string[];
  around: Surroundings;
  hiding: readonly Rule[];
}

/** For each command that reads below directories, the first rule that hides something there. */
async function hiddenFrom({ commands }: ShellLine, searched: Searched): Promise<Map<SimpleCommand, Rule>> {
  const { around, hiding } = searched;
  const hiddenBy = new Map<SimpleCommand, Rule>();
  const isNow = commands.every(({ words }) => words.length === 0 || readingOf(unwrapped(words)) !== undefined);
  for (const command of commands) {
    const words = unwrapped(command.words);
    const reading = readingOf(words);
    const descends = searchOf(words, reading);
    if (descends === false) continue;
    // Neither the contents of commits nor the search directories of other programs are known here.
    const roots = reading && !reading.usesGit ? await rootsOf(reading, searched) : undefined;
    const included = reading?.included && { included: reading.included };
    for (const rule of hiding) {
      if (hiddenBy.has(command) || rule.subject.kind !== 'path') continue;
      const { pattern } = rule.subject;
      const search = { dotted: descends === 'all', isNow, ...included };
      const shows =
        roots && (await Promise.all(roots.map((place) => mayShow(pattern, { ...search, ...place }, around))));
      if (shows?.some(Boolean) ?? (descends === 'all' || pattern.seesVisible)) hiddenBy.set(command, rule);
    }
  }
  return hiddenBy;
}

const COPIES_ALL = /^(tar|gtar|bsdtar|zip|7z|7za|rsync|scp)$/;

/** For each command that copies directories, the first rule that hides something below them. */
async function copiedFrom(lines: readonly ShellLine[], searched: Searched): Promise<Map<SimpleCommand, Rule>> {
  const { around, hiding, subjects, globs } = searched;
  const copiedBy = new Map<SimpleCommand, Rule>();
  for (const command of lines.flatMap(({ commands }) => commands)) {
    const [name, ...words] = unwrapped(command.words);
    const program = baseName(name?.value ?? '');
    const copies = COPIES_ALL.test(program) || (program === 'cp' && words.some(isRecursive));
    if (!copies || hiding.length === 0) continue;
    const sources = words.flatMap((word) =>
      word.isGlob
        ? (globs.get(word.value)?.paths ?? [])
        : candidatesOf(word, around.home).flatMap((path) => subjects.get(path) ?? []),
    );
    const roots = distinct(
      sources.flatMap(({ real, spelled }) => (real === undefined ? [] : [{ directory: real, spelled }])),
    );
    for (const place of roots)
      for (const rule of hiding) {
        if (copiedBy.has(command) || rule.subject.kind !== 'path') continue;
        const search = { ...place, dotted: true, isNow: true };
        if (await mayShow(rule.subject.pattern, search, around)) copiedBy.set(command, rule);
      }
  }
  return copiedBy;
}

const isRecursive = ({ value }: ShellWord): boolean => /^-[a-zA-Z]*[aRr]|^--(archive|rec)/.test(value);

interface Root {
  directory: string;
  spelled: string;
}

/** Each place once, so that a place which is named again is not searched again. */
const distinct = (roots: readonly Root[]): Root[] => [
  ...new Map(roots.map((root) => [`${root.directory}\0${root.spelled}`, root])).values(),
];

/** The directories below which a command reads; undefined if they cannot be determined. */
async function rootsOf({ roots, paths }: Reading, searched: Searched): Promise<Root[] | undefined> {
  const { subjects, globs, directories, around } = searched;
  const words = roots ?? paths;
  if (words.some(({ isLiteral, isGlob }) => !isLiteral && !isGlob)) return undefined;
  const named = words.flatMap((word) =>
    word.isGlob
      ? (globs.get(word.value)?.paths ?? [])
      : candidatesOf(word, around.home).flatMap((path) => subjects.get(path) ?? []),
  );
  // If a command names no directory, it reads below the one in which it runs.
  const workingDirectory = roots
    ? []
    : await Promise.all(directories.map((directory) => commandSubject('.', directory, around)));
  const places = [...named, ...workingDirectory].flatMap(({ real, spelled }) =>
    real === undefined ? [undefined] : [{ directory: real, spelled }],
  );
  return places.every((place) => place !== undefined) ? distinct(places) : undefined;
}

const SEARCHES = /^(grep|egrep|fgrep|rg|ag|ack)$/;
const GIT_SHOWS =
  /^(grep|diff|show|log|archive|cat-file|blame|annotate|format-patch|fast-export|range-diff|whatchanged|diff-\w+)$/;
/** With one of these words, the git commands above also show file contents. */
const GIT_SHOWS_BY = /^(status|commit|stash|reflog)$/;
const SHOWS = /^(-v+|--verbose|-p|-u|--patch|show)$/;

/** Selects the files below a directory that the command shows, for commands on the read-only list and others. */
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
  // These options pass file names that are unknown until the line runs.
  if (args.some(({ value }) => /^--files0?(-|=|$)/.test(value))) return 'all';
  if (program === 'xargs' || (program === 'find' && args.some(({ value }) => /^-(exec|ok)/.test(value)))) return 'all';
  if (program === 'diff') return args.some(({ value }) => /^-[a-zA-Z]*r|^--rec/.test(value)) && 'all';
  if (!SEARCHES.test(program)) return false;
  return !program.endsWith('grep') || args.some(({ value }) => /^-[a-zA-Z]*[rRd]|^--(rec|deref|dir)/.test(value))
    ? 'all'
    : false;
}

const LINK_MAKERS = /^(ln|mv|tar|unzip|rsync|bsdtar|cpio|patch)$/;
const GIT_CHECKS_OUT =
  /^(checkout|switch|stash|pull|merge|clone|reset|restore|rebase|cherry-pick|revert|worktree|apply|am)$/;

/**
 * True for a command that creates links or checks files out. A later command of the line may then read other files than
 * those found here.
 */
function makesLinks({ words }: SimpleCommand): boolean {
  const [name, first, ...rest] = unwrapped(words);
  const program = baseName(name?.value ?? '');
  if (program === 'git') return GIT_CHECKS_OUT.test(first?.value ?? '');
  if (program === 'cp') return [first, ...rest].some((word) => /^-[a-zA-Z]*[adlPRrs]|^--/.test(word?.value ?? ''));
  return LINK_MAKERS.test(program);
}

const readsFiles = ({ words, redirects }: SimpleCommand): boolean =>
  (readingOf(unwrapped(words))?.paths.length ?? 0) > 0 || redirects.some(({ operator }) => operator === '<');

/** The line may or may not change its directory, so each path is resolved in every possible directory. */
async function directoriesOf({ commands }: ShellLine, inner: readonly ShellLine[], around: Surroundings) {
  const [doubts, innerDoubts]: [string[], string[]] = [[], []];
  const directories = new Set([around.cwd]);
  const innerCommands = new Set(inner.flatMap((line) => line.commands));
  for (const command of [...commands, ...innerCommands]) {
    await changeDirectory(command, {
      directories,
      doubts: innerCommands.has(command) ? innerDoubts : doubts,
      around,
    });
  }
  if ([...commands, ...innerCommands].some(movesSearch)) doubts.push('a setting may change where cd leads');
  const maker = commands.find(makesLinks);
  if (maker && commands.some((command) => command !== maker && readsFiles(command)))
    doubts.push(`${maker.words[0]?.source} may change where the files of the line lead`);
  // The git configuration of the other directory can make git run any program.
  const usesGit = commands.some(({ words }) => words.some(({ value }) => baseName(value) === 'git'));
  if (directories.size > 1 && usesGit) doubts.push('git is used in another directory');
  return { directories: [...directories], doubts, innerDoubts };
}

const SETS_NAMED = /^(read|mapfile|readarray|getopts|printf|shopt|(ba|z|k)?sh)$/;
const MOVES_CD = /^-?(vCDPATH|CDPATH|autocd|cdable_vars)$/;

/** True if the command sets `CDPATH`, so that `cd x` leads elsewhere, or an option of bash with such an effect. */
function movesSearch({ words, assigned }: SimpleCommand): boolean {
  if (assigned.some(({ name, source }) => /^CDPATH/.test(name) && source !== 'CDPATH=')) return true;
  const named = words.some(({ value }) => SETS_NAMED.test(baseName(value)));
  return words.some(({ value }) => /^CDPATH(\+?=.|\[)/s.test(value) || (named && MOVES_CD.test(value)));
}

interface Moves {
  directories: Set<string>;
  doubts: string[];
  around: Surroundings;
}

async function changeDirectory({ words }: SimpleCommand, { directories, doubts, around }: Moves): Promise<void> {
  const [name, to, ...more] = unwrapped(words);
  if (!name || !['cd', 'pushd', 'popd', 'chdir'].includes(name.value)) return;
  if (name.value !== 'cd' || !to?.isLiteral || more.length > 0 || /^[-~]/.test(to.value)) {
    doubts.push('the directory is changed to one that is not known');
    return;
  }
  for (const directory of [...directories]) {
    const next = await commandSubject(to.value, directory, around);
    // `cd ..` removes the last name of the path, but the kernel resolves a link first. The two can differ.
    const asSpelled = await commandSubject(next.spelled, directory, around);
    if (!isInsideRoot(next, around) || asSpelled.real !== next.real) doubts.push('the working directory is left');
    // After this, `/proc/self/cwd` is the new directory.
    const place = next.spelled.startsWith('/proc/') ? (next.real ?? next.spelled) : next.spelled;
    if (directories.size < DIRECTORIES_MAX) directories.add(place);
    else doubts.push('the directory is changed too often');
  }
}
