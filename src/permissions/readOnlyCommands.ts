/**
 * Commands that read and change nothing, each with the options under which that is so. Rule: a fixed list; what is not on
 * it, or has an option that is not, is no reading command. What their words may name is told, so that paths can be judged.
 */
import { asksVersion } from './commandForms.ts';
import type { ShellWord } from './shellSyntax.ts';

interface ReadingCommand {
  /** Every option must match. */
  options: RegExp;
  /** What its words are, the options left out: paths unless said otherwise. */
  words?: 'none' | 'afterPattern' | 'anything';
  wordsMax?: number;
  /** With such an option it reads what is below the directories that it is given. */
  descends?: RegExp;
  /** Without the option it does so too, and passes over hidden files. */
  walks?: true;
  /** Its language reads more than the files that are named where a word holds this. */
  refuses?: RegExp;
}

const LETTERS = /^-[a-zA-Z0-9]+$|^--[a-z-]+(=[\w.,:+-]*)?$/;
const NONE = /^$/;
const HEADS = /^-(\d+|[nc]\+?-?\d*|[qvz]+)$|^--(lines|bytes|quiet|silent|verbose)(=\+?-?\d+)?$/;
/** Those that follow links out of the working directory are not among them, here and below. */
const UNLINKED = /^-[a-zA-KM-Z0-9]+$|^--(?!d)[a-z-]+(=[\w.,:+-]*)?$/;
const GREPS =
  /^-[a-zA-QS-Z0-9]+$|^--(include|exclude|exclude-dir|color|colour|context|after-context|before-context|max-count|regexp|type|glob|iglob|max-depth|sort)=\S*$|^--(?!d)[a-z-]+$/;
const GREPS_BELOW = /^-[a-zA-Z0-9]*[rd]|^--[rd]/;

const COMMANDS: { readonly [name: string]: ReadingCommand } = {
  cat: { options: LETTERS },
  head: { options: HEADS },
  tail: { options: HEADS },
  ls: { options: UNLINKED },
  pwd: { options: /^-[LP]$/, wordsMax: 0 },
  cd: { options: NONE, wordsMax: 1 },
  echo: { options: /^/, words: 'anything' },
  printf: { options: /^--$/, words: 'anything' },
  true: { options: NONE, words: 'anything' },
  false: { options: NONE, words: 'anything' },
  ':': { options: NONE, words: 'anything' },
  test: { options: NONE, words: 'anything' },
  '[': { options: NONE, words: 'anything' },
  exit: { options: NONE, words: 'none' },
  wc: { options: LETTERS },
  nl: { options: LETTERS },
  stat: { options: LETTERS },
  file: { options: /^-[bikLhprsz]+$|^--(brief|mime|mime-type|mime-encoding)$/ },
  du: { options: UNLINKED },
  df: { options: LETTERS },
  basename: { options: LETTERS, words: 'none' },
  dirname: { options: LETTERS, words: 'none' },
  realpath: { options: LETTERS },
  readlink: { options: LETTERS },
  whoami: { options: NONE, wordsMax: 0 },
  id: { options: LETTERS, words: 'none' },
  uname: { options: LETTERS, words: 'none' },
  hostname: { options: NONE, wordsMax: 0 },
  nproc: { options: LETTERS, wordsMax: 0 },
  which: { options: LETTERS, words: 'none' },
  type: { options: LETTERS, words: 'none' },
  command: { options: /^-[vV]$/, words: 'none' },
  cut: { options: /^-[bcdfnsz]\S*$|^--[a-z-]+(=\S*)?$/s },
  tr: { options: /^-[cCdst]+$/, words: 'anything' },
  sort: { options: /^-[bdfgiMhnRrVcCmsuz]+$|^-[kt]\S*$/ },
  uniq: { options: /^-[cdDiuz]+$|^-[fsw]\d*$/, wordsMax: 1 },
  comm: { options: /^-[123]+$/ },
  diff: { options: /^-[a-qs-zA-Z0-9]+$|^--(color|unified|brief|stat)(=\S*)?$/ },
  cmp: { options: LETTERS },
  grep: { options: GREPS, words: 'afterPattern', descends: GREPS_BELOW },
  egrep: { options: GREPS, words: 'afterPattern', descends: GREPS_BELOW },
  fgrep: { options: GREPS, words: 'afterPattern', descends: GREPS_BELOW },
  rg: {
    options: /^(?!--(pre|hostname-bin|search-zip|fo|(ignore-)?file(=|$)))(-[a-yA-KM-Z0-9.]+|--[a-z-]+(=\S*)?)$/,
    words: 'afterPattern',
    descends: /^--(hidden|no-ignore|unrestricted)|^-[a-zA-Z0-9]*[.u]/,
    walks: true,
  },
  find: {
    options:
      /^-(name|iname|path|ipath|type|maxdepth|mindepth|size|mtime|mmin|newer|not|o|a|or|and|print|print0|printf|empty|H|P|regex|iregex|prune|depth|xdev|perm|user|group)$/,
  },
  tree: { options: /^-[adfiLsthDprugI]+$|^--(dirsfirst|gitignore|noreport)$/ },
  sha256sum: { options: /^--?(b|t|tag)$/ },
  sha1sum: { options: /^--?(b|t|tag)$/ },
  md5sum: { options: /^--?(b|t|tag)$/ },
  seq: { options: /^-[sw]\S*$|^-?\d+$/, words: 'none' },
  sleep: { options: NONE, words: 'none' },
  jq: { options: /^-[rcsenSaj]+$/, words: 'afterPattern', refuses: /\b(import|include|env|modulemeta)\b|\$(ENV|__)/ },
  od: { options: LETTERS },
  hexdump: { options: LETTERS },
  column: { options: LETTERS },
  tac: { options: LETTERS },
  rev: { options: NONE },
};
/** What is to be known about a command that reads. */
export interface Reading {
  /** Words that may name files. */
  paths: readonly ShellWord[];
  /** It reads the files below the directories among them, and which. */
  descends: false | 'all' | 'visible';
  /** It reads no more than these where they are files. `areAll`: else those of them that are there count. */
  unless?: { words: readonly ShellWord[]; areAll: boolean };
}

/** Undefined for a command that is not known to read only. `words`: without wrappers, the name a literal without a path. */
export function readingOf(words: readonly ShellWord[]): Reading | undefined {
  const [name, ...args] = words;
  if (!name?.isLiteral) return undefined;
  if (asksVersion(words)) return NOTHING;
  if (name.value === 'git') return gitReading(args);
  if (name.value === 'sed') return sedReading(args);
  if (name.value === 'date')
    return args.every(({ value, isLiteral }) => isLiteral && /^(\+.*|-u|-I\w*|-R)$/.test(value)) ? NOTHING : undefined;
  const known = Object.hasOwn(COMMANDS, name.value) ? COMMANDS[name.value] : undefined;
  return known && fits(known, args);
}

const NOTHING: Reading = { paths: [], descends: false };
function fits(
  { options, words, wordsMax = Number.POSITIVE_INFINITY, descends, walks, refuses }: ReadingCommand,
  args: readonly ShellWord[],
): Reading | undefined {
  const plain: ShellWord[] = [];
  let ended = false;
  for (const word of args) {
    const isOption = !ended && word.value.startsWith('-') && word.value !== '-';
    if (isOption && word.value === '--') ended = true;
    else if (isOption && !(word.isLiteral && options.test(word.value)) && words !== 'anything') return undefined;
    else if (!isOption || words === 'anything') plain.push(word);
    // Unquoted, it may become an option.
    if (!word.isLiteral && !word.isGlob && !word.isQuoted && words !== 'anything') return undefined;
  }
  if (plain.length > wordsMax || args.some(({ value }) => refuses?.test(value))) return undefined;
  const all = descends !== undefined && args.some(({ value }) => descends.test(value));
  const below = all ? 'all' : walks ? 'visible' : false;
  if (words === 'none' || words === 'anything') return { paths: [], descends: false };
  if (words !== 'afterPattern') return { paths: plain, descends: below };
  // An option that takes a value, or gives the pattern, moves it: then any word may be a path.
  const isFirst = args.every(({ value }) => !/^-[a-zA-Z]*[efABCmdgt]$|^--(regexp|file)/.test(value));
  return { paths: isFirst ? plain.slice(1) : plain, descends: below };
}

const GIT_READS: { readonly [subcommand: string]: RegExp } = {
  status: /^(-s|-b|-sb|-uno|-u|--short|--branch|--porcelain(=\w+)?|--ignored|--untracked-files(=\w+)?)$/,
  log: /^(-\d+|-n\d*|-p|-u|-S\S*|-G\S*|-i|-L\S*|--[a-z][a-z-]*(=.*)?)$/s,
  diff: /^(-p|-u|-w|-b|-U\d+|-M|-R|--[a-z][a-z-]*(=.*)?)$/s,
  show: /^(-p|-s|-q|-w|-U\d+|--[a-z][a-z-]*(=.*)?)$/s,
  branch: /^(-a|-r|-v|-vv|-av|-avv|--list|--all|--remotes|--show-current|--verbose|--merged|--no-merged)$/,
};
const IN_COMMIT = /^[^:{}]*:[^/(!^:]/;
const BEFORE_NAMES = /^(--list|-l)$/;

/** Without options that write, run or leave the repository; those are refused before, for every command of git. */
function gitReading(args: readonly ShellWord[]): Reading | undefined {
  const [subcommand, ...rest] = args;
  const options =
    subcommand?.isLiteral && Object.hasOwn(GIT_READS, subcommand.value) ? GIT_READS[subcommand.value] : undefined;
  if (!options) return undefined;
  if (!rest.every(({ isLiteral, isGlob, isQuoted }) => isLiteral || isGlob || isQuoted)) return undefined;
  const end = rest.findIndex(({ value }) => value === '--');
  const before = end === -1 ? rest : rest.slice(0, end);
  const [given, names] = [before.filter(isOption), before.filter((word) => !isOption(word))];
  if (!given.every((word) => word.isLiteral && options.test(word.value))) return undefined;
  // A name makes a branch unless a list is asked for.
  if (subcommand?.value === 'branch' && names.length > 0 && !given.some(({ value }) => BEFORE_NAMES.test(value)))
    return undefined;
  // A revision and a path look alike; a range of lines names its file.
  const ranges = given.filter(({ value }) => value.startsWith('-L'));
  const marked = end === -1 ? undefined : rest.slice(end + 1);
  const paths = [...names, ...ranges, ...(marked ?? [])];
  // What a commit holds at one path, and no more.
  const isOne = subcommand?.value === 'show' && names.length > 0 && names.every(({ value }) => IN_COMMIT.test(value));
  if (isOne || !showsFiles(subcommand?.value ?? '', given)) return { paths, descends: false };
  const isAll = given.some(({ value }) => value.startsWith('--full'));
  return {
    paths,
    descends: 'all',
    ...(!isAll && { unless: { words: marked ?? names, areAll: marked !== undefined } }),
  };
}

const isOption = ({ value }: ShellWord): boolean => value.startsWith('-');

const SUMMARY =
  /^(-s|--(stat|numstat|shortstat|dirstat|summary|compact-summary|name-only|name-status|raw|no-patch|quiet)(=.*)?)$/;
/** Options with which a list of commits stays one. In full: git takes beginnings, too, of options that show more. */
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

/** `log` shows commits, and what is in files where an option asks for it; `diff` and `show` do so unless one sums up. */
function showsFiles(subcommand: string, options: readonly ShellWord[]): boolean {
  const sums = options.some(({ value }) => SUMMARY.test(value));
  const lists = options.every(({ value }) => SUMMARY.test(value) || LISTING.test(value));
  if (subcommand === 'log') return !lists;
  return ['diff', 'show'].includes(subcommand) && !(sums && lists);
}

/** `sed -n '1,40p' file`: lines by number, nothing else. */
function sedReading([flag, script, ...files]: readonly ShellWord[]): Reading | undefined {
  const isPrint = flag?.value === '-n' && script?.isLiteral === true && /^(\d+|\$)(,(\d+|\$))?p$/.test(script.value);
  if (!isPrint || files.some((word) => isOption(word) || !(word.isLiteral || word.isGlob))) return undefined;
  return { paths: files, descends: false };
}
