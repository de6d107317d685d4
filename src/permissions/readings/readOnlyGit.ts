/**
 * Read-only git commands. Invariant: an option is listed only if the command with it writes nothing, runs no program and
 * stays in its repository. Options must be written in full, because git accepts prefixes of options that do more.
 */

import type { ShellWord } from '../wordExpansion.ts';
import { READS_NOTHING, type Reading } from './reading.ts';

const DIFFS = /^(-p|-u|-w|-b|-z|-U\d+|-M|-R|--[a-z][a-z-]*(=.*)?)$/s;
const LOGS = /^(-\d+|-n\d*|-p|-u|-S\S*|-G\S*|-i|-L\S*|--[a-z][a-z-]*(=.*)?)$/s;
const NAMES =
  /^(-a|-r|-v|-vv|-av|-avv|-l|--(list|all|remotes|show-current|verbose|ignore-case)|--((no-)?(merged|contains)|points-at)(=.*)?|--(sort|format)=.*)$/;

/** Commands that may show file contents. */
const SHOWING: { readonly [subcommand: string]: RegExp } = {
  status: /^(-s|-b|-sb|-uno|-u|-z|--short|--branch|--porcelain(=\w+)?|--ignored|--untracked-files(=\w+)?)$/,
  log: LOGS,
  reflog: LOGS,
  diff: DIFFS,
  show: /^(-p|-s|-q|-w|-U\d+|--[a-z][a-z-]*(=.*)?)$/s,
  branch: NAMES,
  tag: /^(-l|-n\d*|--list|--((no-)?(merged|contains)|points-at)(=.*)?|--sort=.*)$/,
  blame:
    /^(-[wlsefbnptMC]+|-L\S*|--(line-)?porcelain|--date=\S+|--(root|show-email|show-name|show-number|first-parent))$/,
  grep: /^(-[ivwxnlLcFEGPhHoqzaIpW]+|-[ABCm]?\d+|-e|--(and|or|not|cached|count|name-only|heading|break|column|ignore-case|line-number|word-regexp|show-function|untracked|all-match|files-with-matches|fixed-strings|extended-regexp|perl-regexp))$/,
  'cat-file': /^-[ptse]$/,
  stash: DIFFS,
};
/** Commands that show names of commits and files, never file contents. */
const LISTING_NAMES: { readonly [subcommand: string]: RegExp } = {
  'rev-parse':
    /^(-q|--(abbrev-ref|short|verify|quiet|show-toplevel|show-prefix|show-cdup|git-dir|git-common-dir|is-inside-work-tree|is-bare-repository|symbolic-full-name|all|branches|tags)(=\w+)?)$/,
  'rev-list':
    /^(-\d+|-n\d*|--(count|all|left-right|first-parent|merges|no-merges|reverse|abbrev-commit)|--(max-count|since|until|after|before|author|grep)=.*)$/s,
  'merge-base': /^(-a|--(all|octopus|is-ancestor|fork-point|independent))$/,
  'ls-files':
    /^(-[cdmoisztkuv]+|--(cached|deleted|modified|others|ignored|stage|unmerged|directory|exclude-standard|full-name|error-unmatch|eol|deduplicate))$/,
  'ls-tree': /^(-[drtlz]+|--(name-only|name-status|full-name|full-tree|long|abbrev(=\d+)?))$/,
  describe: /^--(tags|all|always|long|exact-match|first-parent|contains|dirty|(abbrev|match|exclude|candidates)=.*)$/,
  shortlog: /^(-[sne]+|--(summary|numbered|email|no-merges|all|(since|until|after|before)=.*))$/s,
  'check-ignore': /^(-[vqn]+|--(verbose|quiet|non-matching))$/,
  'for-each-ref': /^--(count|sort|format|points-at|contains|merged)=.*$/s,
  'show-ref': /^--(heads|branches|tags|head|abbrev|hash|verify|quiet)$/,
  'name-rev': /^--(name-only|tags|always)$/,
  'count-objects': /^-(v|H|vH)$/,
};
const IN_COMMIT = /^[^:{}]*:[^/(!^:]/;
const BEFORE_NAMES = /^(-l|--list|--((no-)?(merged|contains)|points-at)(=.*)?)$/;
/** For commands with verbs, the verbs that only read. */
const VERBS: { readonly [subcommand: string]: RegExp } = {
  stash: /^(list|show)$/,
  reflog: /^(show|HEAD)$/,
  remote: /^get-url$/,
  worktree: /^list$/,
};

/** Formats that run a signature program or print a whole file, and options that write a merge result. */
const DOES_MORE = /%G|signature|%\(\*?raw|^--(help|rem|diff-m)/;

const isOption = ({ value }: ShellWord): boolean => value.startsWith('-');

/**
 * Expects a command without options that write, run programs or leave the repository; the caller refuses those for
 * every git command.
 */
export function gitReading(args: readonly ShellWord[]): Reading | undefined {
  const [subcommand, ...subcommandArgs] = args;
  if (
    !subcommand?.isLiteral ||
    !subcommandArgs.every(({ isLiteral, isGlob, isQuoted }) => isLiteral || isGlob || isQuoted)
  )
    return undefined;
  const name = subcommand.value;
  if (subcommandArgs.some((word) => isOption(word) && DOES_MORE.test(word.value))) return undefined;
  if (name === 'remote' || name === 'worktree') return listed(name, subcommandArgs);
  const [verb, ...afterVerb] = subcommandArgs;
  const hasVerb = verb !== undefined && Object.hasOwn(VERBS, name) && VERBS[name]?.test(verb.value) === true;
  if (name === 'stash' && !hasVerb) return undefined;
  if (name === 'reflog' && verb && !hasVerb && !isOption(verb)) return undefined;
  const rest = hasVerb ? afterVerb : subcommandArgs;
  if (Object.hasOwn(LISTING_NAMES, name)) return namesOf(LISTING_NAMES[name], rest);
  if (name === 'stash' && verb?.value === 'list') return showing('log', LOGS, rest);
  const options = Object.hasOwn(SHOWING, name) ? SHOWING[name] : undefined;
  return options && showing(name, options, rest);
}

/** The remotes with their addresses, or the working trees. */
function listed(name: string, words: readonly ShellWord[]): Reading | undefined {
  const [verb, ...rest] = words;
  const isList = words.every(({ value }) => /^(-v|--verbose)$/.test(value)) && name === 'remote';
  const isVerb = verb?.isLiteral === true && VERBS[name]?.test(verb.value) === true;
  if (
    !isList &&
    !(isVerb && rest.every(({ value, isLiteral }) => isLiteral && !/^-(?!-(all|push|porcelain)$)/.test(value)))
  )
    return undefined;
  return NAMES_ALONE;
}

const NAMES_ALONE: Reading = { ...READS_NOTHING, usesGit: true };

function namesOf(options: RegExp | undefined, words: readonly ShellWord[]): Reading | undefined {
  const end = words.findIndex(({ value }) => value === '--');
  const before = end === -1 ? words : words.slice(0, end);
  if (!before.filter(isOption).every(({ value, isLiteral }) => isLiteral && options?.test(value))) return undefined;
  return { ...NAMES_ALONE, paths: words.filter((word) => !isOption(word)) };
}

function showing(subcommand: string, options: RegExp, rest: readonly ShellWord[]): Reading | undefined {
  const end = rest.findIndex(({ value }) => value === '--');
  const before = end === -1 ? rest : rest.slice(0, end);
  const [optionWords, names] = [before.filter(isOption), before.filter((word) => !isOption(word))];
  if (!optionWords.every((word) => word.isLiteral && options.test(word.value))) return undefined;
  // A name creates a branch or tag unless an option asks for a list.
  const makes = subcommand === 'branch' || subcommand === 'tag';
  if (makes && names.length > 0 && !optionWords.some(({ value }) => BEFORE_NAMES.test(value))) return undefined;
  // A revision and a path look alike, and `-L` names its file in its value.
  const ranges = optionWords.filter(({ value }) => value.startsWith('-L'));
  const marked = end === -1 ? undefined : rest.slice(end + 1);
  const paths = [...names, ...ranges, ...(marked ?? [])];
  // The command shows one path of a commit and nothing else.
  const isObject = subcommand === 'show' || subcommand === 'cat-file';
  const isOne = isObject && names.length > 0 && names.every(({ value }) => IN_COMMIT.test(value));
  const reading = { paths, namesOnly: false, filesOnly: false, usesGit: true } as const;
  // If a hash or a tag refers to a file, git shows its whole content.
  const mayNameFile = subcommand === 'show' && !names.every(isCommit);
  if (isOne || !(mayNameFile || showsFiles(subcommand, optionWords))) return { ...reading, descends: false };
  // Git reads such a name as a revision even if a file has that name.
  const isAll =
    ['grep', 'cat-file', 'stash'].includes(subcommand) || optionWords.some(({ value }) => /^--(full|fo)/.test(value));
  if (isAll) return { ...reading, descends: 'all' };
  if (!COMPARES_FILES.test(subcommand))
    return { ...reading, descends: 'all', unless: { words: marked ?? names, areAll: marked !== undefined } };
  const files = [...names.filter((word) => !isCommit(word)), ...(marked ?? [])];
  return { ...reading, descends: 'all', unless: { words: files, areAll: true } };
}

/** These commands accept the hash of a file; others accept commits only. */
const COMPARES_FILES = /^(diff|show)$/;
const COMMIT = /^(HEAD|@|[^{}:^~]+(?=[~^]))([~^]\d*)*$/;

/** True if the word can only refer to a commit: a parent, two commits joined by three dots, or HEAD. */
const isCommit = ({ value, isLiteral }: ShellWord): boolean =>
  isLiteral &&
  (/^[^:{}]*\.{3}[^:{}]*$/.test(value) || value.split('..').every((name) => name === '' || COMMIT.test(name)));

const SUMMARY =
  /^(-s|--(stat|numstat|shortstat|dirstat|summary|compact-summary|name-only|name-status|raw|no-patch|quiet)(=.*)?)$/;
/**
 * Options that add no file contents to a list of commits. They must be written in full, because git accepts prefixes of
 * options that show more.
 */
const LISTING = new RegExp(
  `^(-(\\d+|n\\d*|i|[SG].*)|--(${[
    ...['cached', 'staged', 'oneline', 'graph', 'all', 'reverse', 'follow', '(no-)?merges', 'first-parent', 'parents'],
    ...['(topo|date|author-date)-order', 'left-right', 'cherry(-pick|-mark)?', 'no-(color|decorate|renames|notes)'],
    ...['no-(ext-diff|textconv)', 'find-renames', 'walk-reflogs', 'abbrev-commit', 'relative-date', 'invert-grep'],
    ...['all-match', '(decorate|branches|tags|remotes|author|committer|grep|since|after|until|before|skip)(=.*)?'],
    ...['(max-count|format|pretty|abbrev|date|color|diff-filter)(=.*)?'],
  ].join('|')}))$`,
  's',
);

/**
 * `log` shows file contents only if an option asks for it. Other commands show them unless an option asks for a
 * summary.
 */
function showsFiles(subcommand: string, options: readonly ShellWord[]): boolean {
  if (subcommand === 'cat-file') return !options.some(({ value }) => /^-[tse]$/.test(value));
  if (subcommand === 'blame' || subcommand === 'grep') return true;
  const sums = options.some(({ value }) => SUMMARY.test(value));
  const lists = options.every(({ value }) => SUMMARY.test(value) || LISTING.test(value));
  if (subcommand === 'log' || subcommand === 'reflog') return !lists;
  return ['diff', 'show', 'stash'].includes(subcommand) && !(sums && lists);
}
