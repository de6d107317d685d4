/**
 * Commands that read and change nothing, each with its harmless options. Rule: the list is fixed. A command or option
 * that is not on it makes the command no reading command. The result lists the words that may name files, so that the
 * caller can check these paths.
 */
import { asksVersion, isHarmlessSet, readsIntoVariables, setsByCount } from '../commandForms.ts';
import { FILE_TEST } from '../shellSyntax.ts';
import type { ShellWord } from '../wordExpansion.ts';
import { includedBy } from './includedNames.ts';
import { READS_NOTHING, type Reading } from './reading.ts';
import { gitReading } from './readOnlyGit.ts';
import { awkFiles, sedFiles } from './readOnlyScripts.ts';

interface ReadingCommand {
  /** Every option must match. */
  options: RegExp;
  /** The meaning of the words that are no options; paths by default. A glob is checked as a path in any case. */
  words?: 'none' | 'afterPattern' | 'anything' | 'tested';
  wordsMax?: number;
  /** With a matching option, the command reads everything below its directory arguments. */
  descends?: RegExp;
  /** The command always reads below its directories, but skips hidden files that nothing includes. */
  walks?: true;
  /** With `-v` or `%n` in its first word, the command sets the variable that a later word names. */
  setsBy?: true;
  /** The options that take the next word as their value. A computed word at any other place may become an action. */
  valued?: RegExp;
  /** A matching word makes the command's script language read files that no argument names. */
  refuses?: RegExp;
  /** The command shows file names and attributes, never contents. */
  namesOnly?: true;
  /**
   * Each word must be an existing file. For a directory, the command would read everything below it and follow links.
   */
  filesOnly?: true;
}

const LETTERS = /^-[a-zA-Z0-9]+$|^--[a-z-]+(=[\w.,:+-]*)?$/;
const NONE = /^$/;
const HEADS = /^-(\d+|[nc]\+?-?\d*|[qvz]+)$|^--(lines|bytes|quiet|silent|verbose)(=\+?-?\d+)?$/;
/** Options that make a command follow links out of the working directory are left out here and below. */
const UNLINKED = /^-[a-zA-KM-Z0-9]+$|^--(?!d)[a-z-]+(=[\w.,:+-]*)?$/;
/** Full option names only: GNU programs accept any unambiguous prefix, such as `--fi` for `--file`. */
const GREP_FLAGS = [
  ...['recursive', 'ignore-case', 'no-ignore-case', 'line-number', 'count', 'invert-match', 'word-regexp', 'null'],
  ...['line-regexp', 'only-matching', 'files-with-matches', 'files-without-match', 'no-messages', 'quiet', 'silent'],
  ...['with-filename', 'no-filename', 'fixed-strings', 'extended-regexp', 'basic-regexp', 'perl-regexp', 'text'],
  ...['byte-offset', 'colou?r', 'initial-tab', 'line-buffered', 'regexp', 'file'],
].join('|');
const GREPS = new RegExp(
  `^-[a-zA-QS-Z0-9]+$|^--(include|exclude|exclude-dir|colou?r|(after-|before-)?context|max-count|regexp)=\\S*$|^--(${GREP_FLAGS})$`,
);
const GREPS_BELOW = /^-[a-zA-Z0-9]*[rd]|^--[rd]/;

const COMMANDS: { readonly [name: string]: ReadingCommand } = {
  cat: { options: LETTERS },
  head: { options: HEADS },
  tail: { options: HEADS },
  ls: { options: UNLINKED, namesOnly: true },
  pwd: { options: /^-[LP]$/, wordsMax: 0 },
  cd: { options: NONE, wordsMax: 1 },
  echo: { options: /^/, words: 'anything', namesOnly: true },
  printf: { options: /^--$/, words: 'anything', namesOnly: true, setsBy: true },
  true: { options: NONE, words: 'anything' },
  false: { options: NONE, words: 'anything' },
  ':': { options: NONE, words: 'anything' },
  test: { options: NONE, words: 'tested', namesOnly: true },
  '[': { options: NONE, words: 'tested', namesOnly: true },
  exit: { options: NONE, words: 'none' },
  break: { options: NONE, words: 'none', wordsMax: 1 },
  continue: { options: NONE, words: 'none', wordsMax: 1 },
  env: { options: NONE, wordsMax: 0 },
  printenv: { options: NONE, words: 'none' },
  wc: { options: /^-[clmwL]+$|^--(bytes|chars|lines|words|max-line-length)$/ },
  nl: { options: LETTERS },
  stat: { options: LETTERS, namesOnly: true },
  file: { options: /^-[bikhr]+$|^--(brief|mime|mime-type|mime-encoding)$/ },
  du: {
    options:
      /^-[abchkmsx0-9d]+$|^--(human-readable|summarize|all|total|apparent-size|((max-depth|exclude|threshold)=\S*))$/,
    namesOnly: true,
  },
  df: { options: LETTERS, namesOnly: true },
  basename: { options: LETTERS, words: 'none' },
  dirname: { options: LETTERS, words: 'none' },
  realpath: { options: LETTERS, namesOnly: true },
  readlink: { options: LETTERS, namesOnly: true },
  whoami: { options: NONE, wordsMax: 0 },
  id: { options: LETTERS, words: 'none' },
  uname: { options: LETTERS, words: 'none' },
  hostname: { options: NONE, wordsMax: 0 },
  nproc: { options: LETTERS, wordsMax: 0 },
  which: { options: LETTERS, namesOnly: true },
  type: { options: LETTERS, namesOnly: true },
  command: { options: /^-[vV]$/, namesOnly: true },
  cut: { options: /^-[bcdfnsz]\S*$|^--[a-z-]+(=\S*)?$/s },
  tr: { options: /^-[cCdst]+$/, words: 'anything' },
  sort: { options: /^-[bdfgiMhnRrVcCmsuz]+$|^-[kt]\S*$/ },
  uniq: { options: /^-[cdDiuz]+$|^-[fsw]\d*$/, wordsMax: 1 },
  comm: { options: /^-[123]+$/ },
  diff: {
    options:
      /^-[abBcdeinNpqstTuwyW0-9]+$|^-[UC]\d+$|^--(colou?r|unified|context|brief|side-by-side|minimal|text)(=\w*)?$/,
    filesOnly: true,
  },
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
    namesOnly: true,
    valued: /^-(i?(name|path|regex)|type|(max|min)depth|size|mtime|mmin|newer|printf|perm|user|group)$/,
  },
  tree: { options: /^-[adfiLsthDprugIPCFn]+$|^--(dirsfirst|gitignore|noreport|prune)$/, namesOnly: true },
  sha256sum: { options: /^--?(b|t|tag)$/ },
  sha1sum: { options: /^--?(b|t|tag)$/ },
  md5sum: { options: /^--?(b|t|tag)$/ },
  seq: { options: /^-[sw]\S*$|^-?\d+$/, words: 'none' },
  sleep: { options: NONE, words: 'none' },
  jq: { options: /^-[rcsenSaj]+$/, words: 'afterPattern', refuses: /\b(import|include|env|modulemeta)\b|\$(ENV|__)/ },
  od: { options: LETTERS },
  hexdump: { options: /^-[bcCdovx]+$|^-[ns]\d*$/ },
  column: { options: LETTERS },
  tac: { options: LETTERS },
  rev: { options: NONE },
};
/**
 * Returns undefined for a command that is not known to be read-only. `words` has no wrappers, and the name is a literal
 * without a path. With `mayBecomeOption`, computed words that may turn into options are accepted; use it only where
 * nothing can be changed.
 */
export function readingOf(words: readonly ShellWord[], mayBecomeOption = false): Reading | undefined {
  const [name, ...args] = words;
  if (!name?.isLiteral) return undefined;
  if (asksVersion(words)) return READS_NOTHING;
  if (name.value === 'git') return gitReading(args);
  if (name.value === 'sed') return ofFiles(sedFiles(args));
  if (name.value === 'awk') return ofFiles(awkFiles(args));
  if (name.value === 'read' && readsIntoVariables(args)) return READS_NOTHING;
  if (name.value === 'set' && isHarmlessSet(args)) return READS_NOTHING;
  if (name.value === 'date')
    return args.every(({ value, isLiteral }) => isLiteral && /^(\+.*|-u|-I\w*|-R)$/.test(value))
      ? READS_NOTHING
      : undefined;
  const readingCommand = Object.hasOwn(COMMANDS, name.value) ? COMMANDS[name.value] : undefined;
  return readingCommand && fits(readingCommand, args, mayBecomeOption);
}

const ofFiles = (files: readonly ShellWord[] | undefined): Reading | undefined =>
  files && { ...READS_NOTHING, paths: files.filter((word) => !word.isProcess), namesOnly: false };

function fits(command: ReadingCommand, args: readonly ShellWord[], mayBecomeOption: boolean): Reading | undefined {
  const { options, words, wordsMax = Number.POSITIVE_INFINITY, descends, walks, refuses } = command;
  const takesAll = words === 'anything' || words === 'tested';
  const plain: ShellWord[] = [];
  let ended = false;
  const checkedArgs = args.filter((each) => !each.isProcess);
  if (!mayBecomeOption && becomesOption(command, checkedArgs)) return undefined;
  for (const [at, word] of checkedArgs.entries()) {
    const isOption = !ended && word.value.startsWith('-') && word.value !== '-';
    if (isOption && word.value === '--') {
      if (!takesAll && mayBeValue(checkedArgs, at, words === 'afterPattern')) return undefined;
      ended = true;
    } else if (isOption && !((word.isLiteral || word.isGlob) && options.test(word.value)) && !takesAll)
      return undefined;
    else if (!isOption || takesAll) plain.push(word);
    // An unquoted computed word may become an option.
    if (!word.isLiteral && !word.isGlob && !word.isQuoted && !takesAll && !mayBecomeOption) return undefined;
  }
  // A glob may become several words; the second file of `uniq` is its output.
  const isTooLong = plain.length > wordsMax || (Number.isFinite(wordsMax) && plain.some(({ isGlob }) => isGlob));
  if (isTooLong || args.some(({ value }) => refuses?.test(value))) return undefined;
  const all = descends !== undefined && args.some(({ value }) => descends.test(value));
  const below = all ? 'all' : walks ? 'visible' : false;
  const { namesOnly = false, filesOnly = false } = command;
  const short = args.filter((word) => /^-[^-]/.test(word.value) && !plain.includes(word));
  const included = walks && { included: includedBy(args) };
  const reading = { options: short, descends: below, namesOnly, filesOnly, usesGit: false, ...included } as const;
  // The shell lists files for a glob, even if the command ignores their names.
  const globs = plain.filter(({ isGlob }) => isGlob);
  if (words === 'none') return { ...reading, paths: globs, namesOnly: true };
  if (words === 'anything') return { ...reading, paths: globs };
  if (words === 'tested') return testsKnown(plain) ? { ...reading, paths: plain.filter(mayBePath) } : undefined;
  if (words !== 'afterPattern') return { ...reading, paths: plain };
  // The first word is the pattern only if no option before it may have taken it. If an option may carry a value, or a
  // glob may become several words, any word may be a path.
  const isFirst =
    plain[0]?.isGlob !== true &&
    args.every(({ value }) => !/^-[a-zA-Z0-9]*([ef]|[ABCmdgt]$)|^--(regexp|file)/.test(value));
  const roots = isFirst && below !== false && args.every(isFlag) ? plain.slice(1) : undefined;
  return { ...reading, paths: isFirst ? plain.slice(1) : plain, ...(roots && roots.length > 0 && { roots }) };
}

const isComputed = ({ isLiteral }: ShellWord): boolean => !isLiteral;

/** A computed word whose value may begin with a dash. A quoted word may become an option too. */
const mayBeginWithDash = ({ value, isLiteral, isGlob }: ShellWord): boolean =>
  !isLiteral && !isGlob && !/^[\w ./:%+=@,#^]/.test(value);

/**
 * True if a computed word may become an option that does more than read: `printf -v` and `test -v` run the commands in
 * an array index, `printf %n` sets a variable, `rg --pre` runs a program, `find -delete` removes files, and
 * `grep -r` reads below directories.
 */
function becomesOption({ words, refuses, setsBy, valued }: ReadingCommand, args: readonly ShellWord[]): boolean {
  if (words === 'tested') return args.some((word, at) => mayBeginWithDash(word) && !endsTest(args[at + 1]));
  if (setsBy) return (args.length > 1 && args.slice(0, 1).some(mayBeginWithDash)) || setsByCount(args, isComputed);
  if (valued) return withoutValues(args, valued).some(mayBeginWithDash);
  if (refuses && args.some(({ isLiteral, isGlob }) => !isLiteral && !isGlob)) return true;
  const end = args.findIndex(({ value }) => value === '--');
  return words === 'afterPattern' && args.slice(0, end === -1 ? args.length : end).some(mayBeginWithDash);
}

/** Leaves out each word that an option takes as its value. */
function withoutValues(args: readonly ShellWord[], valued: RegExp): ShellWord[] {
  let isValue = false;
  return args.filter(({ value }) => {
    const isLeftOut = isValue;
    isValue = !isValue && valued.test(value);
    return !isLeftOut;
  });
}

const TEST_OPERATOR = /^(\]|\)|[=<>]|[=!]=|-(a|o|eq|ne|lt|le|gt|ge|nt|ot|ef))$/;

/** True if the word before this one is the last of a test, or precedes an operator. */
const endsTest = (next: ShellWord | undefined): boolean =>
  next === undefined || (next.isLiteral && TEST_OPERATOR.test(next.value));

/** True if `--` may be the value of the option before it. It then does not end the options. */
function mayBeValue(words: readonly ShellWord[], at: number, isSearch: boolean): boolean {
  const previous = words[at - 1];
  if (!previous?.value.startsWith('-') || (isSearch && isFlag(previous))) return false;
  return words.slice(at + 1).some(({ value, isLiteral }) => !isLiteral || value.startsWith('-'));
}

/** A search option that does not take the next word as its value. */
const FLAG = new RegExp(`^-[rnHhilLcowxvqsFEGPIaz]+$|^-[ABCm]\\d+$|^--[a-z-]+=|^--(${GREP_FLAGS})$`);
const isFlag = ({ value }: ShellWord): boolean =>
  !value.startsWith('-') || (FLAG.test(value) && !/^--(regexp|file)/.test(value));

const mayBePath = ({ isLiteral, isGlob, value }: ShellWord): boolean =>
  isGlob || (isLiteral && value !== ']' && !/^(-[a-zA-Z]{1,2}|[!=<>()]{1,2})$/.test(value));

/** False if a computed word decides which file is tested. */
const testsKnown = (words: readonly ShellWord[]): boolean =>
  words.every((word, at) => word.isLiteral || word.isGlob || !FILE_TEST.test(words[at - 1]?.value ?? ''));
