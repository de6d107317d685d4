/**
 * The texts of a simple command that rules are compared with. Rule: a deny or ask rule applies if any reading of the
 * command matches: its base name, the command inside a wrapper, the command without assignments or global options. An
 * allow rule must match one strict reading. A command that runs a program or text which the rules cannot see needs a
 * rule for exactly that command.
 */
import { QUOTED, withSingleBlanks } from './rules.ts';
import { isHarmlessEnvironment, isHarmlessVariable, type SimpleCommand } from './shellSyntax.ts';
import type { ShellWord } from './wordExpansion.ts';
import { baseName, isLauncher, isWrapper, readingsOf, unwrapped } from './wrappers.ts';

const SAFE_TEXT = /^[\w@%+=:,./~^{}[\]*?!#-]+$/;

const quoted = (value: string): string => (SAFE_TEXT.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);

export const textOf = (words: readonly ShellWord[]): string =>
  words.map(({ value, source, isLiteral }) => (isLiteral ? quoted(value) : source)).join(' ');

const plainTextOf = (words: readonly ShellWord[]): string => words.map(({ value }) => value).join(' ');

/** `valued` matches the options before the subcommand that take the next word as their value. */
const GLOBAL_OPTIONS: { readonly [name: string]: { valued: RegExp } } = {
  git: {
    valued:
      /^(-C|-c|--git-dir|--work-tree|--namespace|--exec-path|--super-prefix|--config-env|--attr-source|--shallow-file)$/,
  },
  npm: { valued: /^(--prefix|-C|--workspace|-w|--loglevel|--registry|--userconfig|--cache)$/ },
  docker: { valued: /^(-H|--host|-c|--context|--config|-l|--log-level|--tlscacert|--tlscert|--tlskey)$/ },
};

/** Returns undefined if the command has no global options. */
export function withoutGlobalOptions(words: readonly ShellWord[]): readonly ShellWord[] | undefined {
  const [name] = words;
  const options = name && Object.hasOwn(GLOBAL_OPTIONS, baseName(name.value)) && GLOBAL_OPTIONS[baseName(name.value)];
  if (!name || !options) return undefined;
  let at = 1;
  while (words[at]?.value.startsWith('-')) at += options.valued.test(words[at]?.value ?? '') ? 2 : 1;
  return at === 1 ? undefined : [name, ...words.slice(at)];
}

/** Programs with options before their subcommand. */
const HAS_SUBCOMMANDS: ReadonlySet<string> = new Set(
  `git npm pnpm yarn docker podman nerdctl kubectl helm terraform tofu gh glab aws gcloud az cargo systemctl pip pip3 uv poetry
   fly vercel netlify wrangler firebase brew apt apt-get`
    .trim()
    .split(/\s+/),
);

/** The number of words from each one that may be the subcommand. The word after an option may be the option's value. */
function fromSubcommand(words: readonly ShellWord[]): number[] {
  const [name] = words;
  if (!name || !HAS_SUBCOMMANDS.has(baseName(name.value))) return [];
  const args = words.slice(1);
  const isOption = (word: ShellWord | undefined): boolean => word?.value.startsWith('-') === true;
  const isLast = (word: ShellWord, at: number): boolean => !isOption(word) && !isOption(args[at - 1]);
  const last = args.findIndex(isLast);
  const upTo = last === -1 ? args.length : last + 1;
  return args.slice(0, upTo).flatMap((word, at) => (isOption(word) ? [] : [args.length - at]));
}

/** For each word, the text from it to the end of the command. The texts share their memory. */
function endsOf(words: readonly ShellWord[], formOf: typeof textOf): string[] {
  const pieces = words.map((word) => formOf([word]));
  const whole = pieces.join(' ');
  let at = 0;
  return pieces.map((piece) => {
    const end = whole.slice(at);
    at += piece.length + 1;
    return end;
  });
}

/** The program as written, by its base name, and in small letters: on a case-insensitive file system, `RM` also runs `rm`. */
function spellingsOf(program: ShellWord): ShellWord[] {
  const name = baseName(program.value);
  const others = new Set([name, name.toLowerCase()]);
  others.delete(program.value);
  return [program, ...[...others].map((value) => ({ ...program, value }))];
}

/** All texts of this command that deny and ask rules are compared with. */
export function strictForms(command: SimpleCommand): string[] {
  const texts = [command.source, withSingleBlanks(command.source, QUOTED)];
  for (const formOf of [textOf, plainTextOf]) texts.push(...formsOf(command.words, formOf));
  return texts;
}

function formsOf(all: readonly ShellWord[], formOf: typeof textOf): string[] {
  const texts: string[] = [];
  const ends = endsOf(all, formOf);
  // Several readings may have the same program before the same words.
  const made = new Set<string>();
  for (const reading of readingsOf(all)) {
    // Every reading ends as the command does.
    const end = ends[all.length - reading.length];
    if (end !== undefined) texts.push(end);
    const programs = reading.slice(0, 1).flatMap(spellingsOf);
    for (const count of [reading.length - 1, ...fromSubcommand(reading)])
      for (const program of programs) {
        const name = formOf([program]);
        const key = `${count} ${name}`;
        if (made.has(key) || (count === reading.length - 1 && program === reading[0])) continue;
        made.add(key);
        texts.push(count === 0 ? name : `${name} ${ends[all.length - count]}`);
      }
  }
  return texts;
}

/** The text that an allow rule must match; undefined if the command sets variables that may change what runs. */
export function allowForm(command: SimpleCommand): string | undefined {
  if (!command.assigned.every(({ name }) => isHarmlessEnvironment(name))) return undefined;
  return textOf(unwrapped(command.words));
}

/** The texts that a rule for exactly this command may have. */
export function exactForms({ assigned, words, source }: SimpleCommand): string[] {
  const whole = [...assigned.map((each) => each.source), textOf(words)].join(' ');
  return [whole, source];
}

export const SHELLS = /^(r?ba|z|da|k|a|c|tc|fi)?sh$/;
const INTERPRETERS = /^(python[\d.]*|node|nodejs|deno|bun|perl|ruby|php|lua|Rscript|osascript|tclsh)$/;
const ALWAYS: ReadonlySet<string> = new Set(
  `eval source . exec trap sudo doas su ssh npx bunx pnpx env alias unalias enable hash bind complete shopt set setsid
   export declare typeset readonly local unset read mapfile readarray getopts let parallel watch chroot busybox coproc
   nsenter unshare script flock systemd-run runuser strace ltrace entr at batch crontab`
    .trim()
    .split(/\s+/),
);
const FIND_RUNS = /^-(exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/;
const GIT_OPTIONS: readonly string[] = [
  ...['--output', '--ext-diff', '--textconv', '--exec-path', '--config-env', '--git-dir', '--work-tree', '--exec'],
  ...['--upload-pack', '--receive-pack', '--open-files-in-pager', '--extcmd', '--tool', '--namespace', '--no-index'],
  ...['--show-signature', '--submodule', '--recurse-submodules'],
];
const GIT_RUNNERS: ReadonlySet<string> = new Set([
  ...['config', 'difftool', 'mergetool', 'filter-branch', 'submodule', 'bisect', 'daemon', 'send-email'],
]);

/** True if the command runs a text or a program that no rule pattern can see. */
export function needsExactRule(unstripped: readonly ShellWord[]): boolean {
  const words = unwrapped(unstripped);
  const [name, ...args] = words;
  if (!name) return false;
  if (!name.isLiteral) return true;
  if (asksVersion(words)) return false;
  const command = baseName(name.value);
  const values = args.map(({ value }) => value);
  const [first] = values;
  if (isLauncher(command)) return true;
  if (ALWAYS.has(command)) return !isHarmlessUse(name.value, args);
  if (isWrapper(command)) return !/^-[vV]$/.test(first ?? '');
  if (SHELLS.test(command)) return first === undefined || first.startsWith('-') || !args[0]?.isLiteral;
  if (INTERPRETERS.test(command)) return runsText(values, args);
  if (command === 'find' || command === 'fd')
    return args.some(({ value, isLiteral, isGlob, isQuoted }) =>
      isLiteral
        ? FIND_RUNS.test(value) || /^(-x|-X|--exec)/.test(value)
        : value.startsWith('-') || !(isGlob || isQuoted),
    );
  if (command === 'xargs') return first === undefined || first.startsWith('-') || needsExactRule(args);
  if (command === 'git') return gitRunsMore(args);
  if (command === 'rg') return values.some((value) => /^--(pre|hostname-bin)/.test(value));
  if (command === 'printf') return first?.startsWith('-v') === true || setsByCount(args, hasCount);
  if (command === 'test' || command === '[') return values.some((value) => /^-[vR]$/.test(value));
  const second = values.find((value) => !value.startsWith('-'));
  if (/^(docker|podman|kubectl|nerdctl)$/.test(command)) return /^(exec|run|compose|debug)$/.test(second ?? '');
  if (/^(npm|pnpm|yarn)$/.test(command)) return /^(exec|x|dlx)$/.test(second ?? '') || values.some(movesNpm);
  return false;
}

/** In `printf %n PATH`, this conversion sets the variable `PATH`. */
const COUNT = /%[-#' +0]*(\*|\d*)(\.(\*|-?\d*))?[hjlLtz]*n/;
const hasCount = ({ value, isLiteral }: ShellWord): boolean => isLiteral && COUNT.test(value.replaceAll('%%', ''));

/** True if printf sets a variable that programs may read, where its format is one that `mayCount`. */
export function setsByCount(args: readonly ShellWord[], mayCount: (format: ShellWord) => boolean): boolean {
  const [format, ...words] = args[0]?.value === '--' ? args.slice(1) : args;
  if (!format || !mayCount(format)) return false;
  return words.some(
    ({ value, isLiteral }) => !isLiteral || (/^[a-zA-Z_]\w*(\[|$)/.test(value) && !isHarmlessVariable(value)),
  );
}

/** True for uses of the listed commands that set nothing which affects a later command. */
function isHarmlessUse(command: string, args: readonly ShellWord[]): boolean {
  if (command === 'export') return args.length > 0 && args.every(isHarmlessExport);
  if (command === 'read') return readsIntoVariables(args);
  if (command === 'set') return isHarmlessSet(args);
  return command === 'env' && args.length === 0;
}

/** `read -r line`: no option names a file or descriptor, and no program reads the variable. */
export const readsIntoVariables = (words: readonly ShellWord[]): boolean =>
  words.length > 0 && words.every(({ value, isLiteral }) => isLiteral && (value === '-r' || isHarmlessVariable(value)));

/** `set -euo pipefail` or a part of it. */
export const isHarmlessSet = (words: readonly ShellWord[]): boolean =>
  words.length > 0 &&
  words.every(({ isLiteral }) => isLiteral) &&
  /^(([-+][eux]+|[-+][eux]*o (pipefail|errexit|nounset|xtrace)) ?)+$/.test(plainTextOf(words));

/**
 * The runner with the program that it runs (`npx tsc`); an allow rule must name both. Expects a command without
 * wrappers.
 */
export function namedProgram([runner, program]: readonly ShellWord[]): string | undefined {
  if (!runner?.isLiteral || !program?.isLiteral || !/^(npx|bunx|pnpx)$/.test(runner.value)) return undefined;
  return /^[\w@][\w@./-]*$/.test(program.value) ? `${runner.value} ${program.value}` : undefined;
}

const NPM_OPTIONS: readonly string[] = [
  ...['--script-shell', '--node-options', '--prefix', '--userconfig', '--globalconfig', '--cwd', '--dir', '--shell'],
];

/**
 * True for an option that makes npm work in another directory or with another shell. npm accepts any prefix of an
 * option, with one or two dashes.
 */
function movesNpm(value: string, at: number, values: readonly string[]): boolean {
  const end = values.indexOf('--');
  if (!value.startsWith('-') || (end !== -1 && at > end)) return false;
  const option = (value.split('=')[0] ?? '').replace(/^-(?=[^-]{2})/, '--');
  return option === '-C' || (option.length > 4 && NPM_OPTIONS.some((long) => long.startsWith(option)));
}

const VERSIONS: { readonly [option: string]: RegExp } = {
  '--version':
    /^(node|npm|npx|pnpm|yarn|bun|deno|python3?|pip3?|cargo|rustc|tsc|git|java|javac|ruby|php|docker|make|cmake|gcc|clang|rg|bash)$/,
  '-v': /^(node|npm|pnpm|yarn|tsc|git)$/,
  '-V': /^(python3?|rustc|cargo)$/,
  version: /^go$/,
};

/** True if the command only prints the version of a tool. */
export function asksVersion([name, option, ...rest]: readonly ShellWord[]): boolean {
  if (!name?.isLiteral || !option?.isLiteral || rest.length > 0) return false;
  return Object.hasOwn(VERSIONS, option.value) && VERSIONS[option.value]?.test(name.value) === true;
}

const isHarmlessExport = ({ value, isLiteral }: ShellWord): boolean =>
  isLiteral && isHarmlessEnvironment(value.split('=')[0] ?? '');

/**
 * True for `-c`, `-e` and similar options, also in a group of letters. Without a program, an interpreter reads one from
 * its input.
 */
function runsText(values: readonly string[], args: readonly ShellWord[]): boolean {
  if (values.length === 0) return true;
  for (const [at, value] of values.entries()) {
    if (!value.startsWith('-')) return !args[at]?.isLiteral;
    if (value === '-') return true;
    if (
      /^-[a-zA-Z]*[cepErR]|^--(eval|print|exec|import|require|loader|experimental-loader|env-file|run|input)/.test(
        value,
      )
    )
      return true;
    if (value === '-m') return false;
  }
  return false;
}

/** True if the arguments make git run another program, or may do so. */
export function gitRunsMore(args: readonly ShellWord[]): boolean {
  const [subcommand] = args;
  if (!subcommand) return false;
  if (!subcommand.isLiteral || subcommand.value.startsWith('-')) return true;
  if (GIT_RUNNERS.has(subcommand.value)) return true;
  return args.some((word, at) => {
    const { value, isLiteral, isQuoted } = word;
    const before = args[at - 1]?.value ?? '';
    // A commit message may be computed, because git never reads it as anything else.
    if (!isLiteral) return !(isQuoted && /^(-m|--message|-am|-F|--file)$/.test(before)) && !(word.isGlob && at > 0);
    const option = value.split('=')[0] ?? '';
    if (subcommand.value === 'rebase' && /^-x/.test(value)) return true;
    if (subcommand.value === 'grep' && /^-O/.test(value)) return true;
    // git accepts any unambiguous prefix of an option.
    return option.length > 3 && option.startsWith('--') && GIT_OPTIONS.some((long) => long.startsWith(option));
  });
}

const CONFIG_READS = /^(--(get|list|show|name-only)[\w-]*|-l|-z|get|list)$/;
const CONFIG_WRITES = /^(--(add|unset|replace-all|rename-section|remove-section|edit)[\w-]*|-e|set|unset|edit)$/;

/** The protected file that a git command changes without naming it. */
export function settingsChangedBy(unstripped: readonly ShellWord[]): string | undefined {
  const words = unwrapped(unstripped);
  const [name, subcommand, ...rest] = withoutGlobalOptions(words) ?? words;
  if (baseName(name?.value ?? '') !== 'git') return undefined;
  const values = rest.map(({ value }) => value);
  if (subcommand?.value === 'submodule')
    return values.some((value) => /^(add|set-url|set-branch)$/.test(value)) ? '.gitmodules' : undefined;
  if (subcommand?.value !== 'config' || values.some((value) => CONFIG_READS.test(value))) return undefined;
  const sets = values.filter((value) => !value.startsWith('-')).length > 1;
  if (!sets && !values.some((value) => CONFIG_WRITES.test(value))) return undefined;
  return values.includes('--global') ? '.gitconfig' : '.git/config';
}
