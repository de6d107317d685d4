/**
 * Commands in texts that a command passes to a shell: `bash -c "…"`, `eval`, `trap`, `env -S`. Rule: deny rules, ask
 * rules and protected places apply inside such a text. The text never allows anything.
 */
import { gitRunsMore, SHELLS, strictForms } from '../commandForms.ts';
import type { Rule } from '../rules.ts';
import { readShellLine, type ShellLine, type ShellRedirect, type SimpleCommand } from '../shellSyntax.ts';
import type { ShellWord } from '../wordExpansion.ts';
import { baseName, startsTooMany } from '../wrappers.ts';
import { gitTextsOf, unseenSetting } from './gitSettings.ts';
import { commandsInPrograms, shellTextsOf } from './programTexts.ts';
import { type Aliases, aliasesIn, definesUnknownAlias, expandedAlias } from './shellAliases.ts';

const NESTED_MAX = 4;
/** The most characters in the texts of one line, more than a command of Bash can have. */
const TEXTS_MAX = 40_000;

/** Replaces texts that are nested too deep or too long. A line with it is asked about. */
const UNREAD: ShellLine = {
  ...{ commands: [], words: [], lists: [], tested: [] },
  ...{ redirects: [], doubts: [], isUnread: true },
};

/** The shell lines in the texts of each command, including nested ones, with the aliases that the line defines. */
export function innerLinesOf({ commands }: ShellLine): Map<SimpleCommand, readonly ShellLine[]> {
  const linesWith = (aliases: Aliases): ShellLine[][] => {
    const room = { characters: TEXTS_MAX };
    return commands.map((command) => innerLines(command, aliases, room));
  };
  const all = linesWith(new Map()).flatMap((lines) => lines.flatMap((line) => line.commands));
  const inner = linesWith(aliasesIn([...commands, ...all]));
  return new Map(commands.map((command, at) => [command, inner[at] ?? []]));
}

/** Reads each text once, where it is nested the least. So it finds all that is nested in the text. */
function innerLines(command: SimpleCommand, aliases: Aliases, room: { characters: number }): ShellLine[] {
  const lines = new Map<string, ShellLine>();
  let outer = [command];
  for (let depth = 0; depth <= NESTED_MAX; depth += 1) {
    const nested: SimpleCommand[] = [];
    for (const each of outer)
      for (const text of textsOf(each, aliases)) {
        if (lines.has(text)) continue;
        room.characters -= text.length;
        if (room.characters < 0) return [...lines.values(), UNREAD];
        const line = readShellLine(text);
        lines.set(text, line);
        nested.push(...line.commands);
      }
    outer = nested;
  }
  // An alias may contain its own name, which bash does not expand again.
  const isDeeper = outer.some((each) => innerScripts(each).some((text) => !lines.has(text)));
  return [...lines.values(), ...(isDeeper ? [UNREAD] : [])];
}

function textsOf(command: SimpleCommand, aliases: Aliases): Set<string> {
  const alias = expandedAlias(command.words, aliases);
  return new Set([...innerScripts(command), ...(alias === undefined ? [] : [alias])]);
}

/** The reason why one of these commands may run another one that a rule names. */
export function programDoubt(commands: readonly SimpleCommand[], rules: readonly Rule[]): string | undefined {
  const limiting = rules.filter(({ subject }) => subject.kind === 'command' || subject.kind === 'path');
  if (limiting.length === 0) return undefined;
  for (const command of commands) {
    if (startsTooMany(command.words)) return 'too many programs start each other';
    const setting = unseenSetting(command);
    if (setting !== undefined) return `${setting} may set an alias for any command`;
    if (definesUnknownAlias(command)) return 'it defines an alias that is not known';
    const texts = commandsInPrograms(command);
    const rule = limiting.find(
      ({ subject }) => subject.kind === 'command' && texts.some((text) => subject.pattern.matches(text)),
    );
    if (rule) return `its program may run a command of ${rule.text}`;
  }
  return undefined;
}

export const redirectsOf = ({ redirects, commands }: ShellLine): ShellRedirect[] => [
  ...redirects,
  ...commands.flatMap((command) => command.redirects),
];

/** Files that are the input of a command. */
const INPUT = /^\/dev\/(stdin|fd\/\d+)$|^\/proc\/self\/fd\/\d+$/;

/** True for a shell that reads its commands from a pipe or from another process. */
export function readsCommands({ words, input, redirects }: SimpleCommand): boolean {
  const [name, ...options] = words;
  const program = baseName(name?.value ?? '');
  const values = options.map(({ value }) => value);
  const script = options.find(({ value }) => !/^[-+]/.test(value));
  const runsFile = SHELLS.test(program) || /^(source|\.)$/.test(program);
  if (runsFile && script && (script.isProcess || INPUT.test(script.value))) return input.length === 0;
  const takesFile = redirects.some(({ operator, target }) => operator === '<' && target?.isProcess !== true);
  return takesInput(program, values) && input.length === 0 && !takesFile;
}

/** True for a shell without a script, and for a program that stores its input as commands for later. */
function takesInput(program: string, options: readonly string[]): boolean {
  if (/^(at|batch)$/.test(program)) return !options.some((option) => /^-[lrdc]/.test(option));
  if (!/^(ba|z|da|k|a)?sh$/.test(program)) return false;
  const isFlag = (option: string): boolean => /^[-+][a-bd-zA-Z]*$/.test(option);
  return options.every(isFlag) || options.some((option) => isFlag(option) && option.includes('s'));
}

/** Splits a text that is no valid shell line into the pieces that may be commands. */
export function piecesOf(text: string): string[] {
  const pieces = text.split(/[\n;&|(){}`"'$<>]+/).map((piece) => piece.trim());
  const forms = (piece: string): string[] => [piece, ...readShellLine(piece).commands.flatMap(strictForms)];
  return [...new Set(pieces)].filter((piece) => piece !== '').flatMap(forms);
}

/** Options of several programs whose value is a program or a shell command line. */
const NAMES_PROGRAM =
  /^--(to-command|checkpoint-action|use-compress-program|compress-program|pre|hostname-bin|rsh|upload-pack|receive-pack|extcmd)(=.+)?$/s;

const programsOf = (words: readonly ShellWord[]): string[] =>
  words.flatMap(({ value }, at) => {
    const option = NAMES_PROGRAM.exec(value);
    return option ? [(option[2]?.slice(1) ?? words[at + 1]?.value ?? '').replace(/^exec=/, '')] : [];
  });

/** Texts inside a command that a shell will read. Deny rules apply to the commands in them. */
function innerScripts(command: SimpleCommand): string[] {
  const { words, input } = command;
  const texts: string[] = [];
  // A shell certainly reads these, so one word is a command too.
  const scripts: string[] = [];
  for (const [at, { value }] of words.entries()) {
    const name = baseName(value);
    const rest = words.slice(at + 1);
    const values = rest.map((word) => word.value);
    if (/^(source|\.)$/.test(name) && INPUT.test(values[0] ?? '')) scripts.push(...input);
    if (SHELLS.test(name)) {
      texts.push(...values);
      scripts.push(...input, ...valuesAfter(rest, /^[-+][a-zA-Z]*c[a-zA-Z]*$/));
    }
    if (name === 'trap') scripts.push(...values.slice(0, 1));
    if (name === 'git') scripts.push(...valuesAfter(rest, /^(-x|--exec)$/), ...parts(rest, GIT_ALIAS));
    if (name === 'env') scripts.push(...valuesAfter(rest, /^(-\w*S|--split-string)$/), ...parts(rest, SPLIT));
    if (name === 'eval') texts.push(values.join(' '));
    if (name === 'git' && gitRunsMore(rest)) {
      texts.push(...values.map((each) => each.replace(/^(--?[\w-]+=|[\w.]+=)?!?/, '')));
    }
    if (['trap', 'ssh', 'su', 'watch', 'env', 'parallel', 'alias'].includes(name)) {
      texts.push(...values.map((each) => (name === 'alias' ? each.replace(/^[^=]*=/, '') : each)));
    }
    if (at > 8) break;
  }
  const lines = texts.filter((text) => /[\s<>;&|]/.test(text));
  const stripped = lines.flatMap((text) => [text, text.replace(/^-(S|-[\w-]+=)/, '')]);
  return [
    ...new Set([
      ...stripped,
      ...scripts,
      ...gitTextsOf(command, TEXTS_MAX),
      ...shellTextsOf(command),
      ...programsOf(words),
    ]),
  ];
}

const GIT_ALIAS = /^alias\.[^=]*=!(.+)$/s;
const SPLIT = /^(?:-\w*?S|--split-string=)(.+)$/s;

/** The first group of each word that matches. */
const parts = (words: readonly ShellWord[], pattern: RegExp): string[] =>
  words.flatMap(({ value }) => pattern.exec(value)?.[1] ?? []);

/** The words after the options that match. */
const valuesAfter = (words: readonly ShellWord[], option: RegExp): string[] =>
  words.filter((_, at) => option.test(words[at - 1]?.value ?? '')).map(({ value }) => value);
