/**
 * Texts that a program runs: the value of an option such as `rsync -e`, a variable such as `PAGER`, or a script in
 * another language. Rule: deny and ask rules apply to the commands that such a text names.
 */
import { SHELLS, strictForms, textOf } from '../commandForms.ts';
import { readShellLine, type SimpleCommand } from '../shellSyntax.ts';
import type { ShellWord } from '../wordExpansion.ts';
import { baseName, readingsOf } from '../wrappers.ts';
import { groupsOf } from './gitSettings.ts';

interface TextOptions {
  letters?: string;
  /** Names of several letters, after one dash or two. */
  long?: string;
}
type Table = ReadonlyMap<string, TextOptions>;

const tableOf = (rows: readonly (readonly [names: string, TextOptions])[]): Table =>
  new Map(rows.flatMap(([names, options]) => names.split(' ').map((name) => [name, options] as const)));

/** The value of these options is a shell command. */
const SHELL_OPTIONS = tableOf([
  ['rsync', { letters: 'e', long: 'rsh rsync-path' }],
  ['scp sftp', { letters: 'S' }],
  [
    'script su runuser sg newrole flock capsh bpftrace just vagrant',
    { letters: 'c', long: 'command cmd shell session-command' },
  ],
  [
    'tar gtar bsdtar',
    {
      letters: 'IF',
      long: 'use-compress-program info-script new-volume-script rsh-command rmt-command to-command checkpoint-action',
    },
  ],
  ['sort', { long: 'compress-program' }],
  ['zip', { long: 'TT unzip-command' }],
  ['split', { long: 'filter' }],
  ['nc netcat ncat nc.openbsd nc.traditional', { letters: 'ec', long: 'exec sh-exec' }],
  ['man', { letters: 'PH', long: 'pager html' }],
  ['go', { long: 'exec toolexec vettool' }],
  ['gcc g++ cc c++ clang clang++', { long: 'wrapper' }],
  ['fd fdfind', { letters: 'xX', long: 'exec exec-batch' }],
  ['nix nix-shell', { letters: 'c', long: 'run command' }],
  ['nodemon', { letters: 'x', long: 'exec' }],
  ['mapfile readarray complete compgen', { letters: 'C' }],
  ['start-stop-daemon', { letters: 'xa', long: 'exec startas' }],
  ['xterm urxvt konsole gnome-terminal alacritty', { letters: 'e', long: 'command' }],
  ['wget', { long: 'use-askpass' }],
  ['install', { long: 'strip-program' }],
  ['fzf', { long: 'preview' }],
  ['cargo', { letters: 's', long: 'shell' }],
  ['gcloud flatpak', { long: 'command' }],
  ['docker podman nerdctl', { long: 'entrypoint' }],
  ['fly flyctl', { letters: 'C', long: 'command' }],
  ['ansible', { letters: 'a', long: 'args' }],
]);

/** The value of these options is a program in another language. */
const PROGRAM_OPTIONS = tableOf([
  ['python', { letters: 'c' }],
  ['node nodejs bun deno', { letters: 'ep', long: 'eval print' }],
  ['perl ruby lua luajit Rscript julia osascript elixir groovy scala racket', { letters: 'eE', long: 'eval' }],
  ['php', { letters: 'rRBE', long: 'run' }],
  ['pwsh powershell guile tclsh wish expect', { letters: 'c', long: 'Command command' }],
  ['emacs emacsclient sbcl', { letters: 'e', long: 'eval execute' }],
  ['vi vim nvim gvim view rview vimdiff ex nvi', { letters: 'c', long: 'cmd' }],
  ['gdb lldb cgdb', { letters: 'o', long: 'ex iex eval-command init-eval-command one-line' }],
  ['psql', { letters: 'c', long: 'command' }],
  ['mysql mariadb dc lftp', { letters: 'ec', long: 'execute expression' }],
  ['make gmake', { letters: 'E', long: 'eval' }],
  ['fzf', { long: 'bind' }],
  ['cargo', { long: 'config' }],
  ['bind', { letters: 'x' }],
  ['sqlite3 ed m4 ftp sftp telnet less more most', {}],
]);

/** Each argument of these programs is a shell command. */
const RUNS_EACH = /^(hyperfine|concurrently|pee|mispipe)$/;
/** An argument with blanks is a shell command. */
const RUNS_LINES =
  /^(tmux|screen|xterm|urxvt|konsole|kitty|mosh|rsh|remsh|pssh|pdsh|clush|dsh|watchexec|entr|sem|rush|sops|sg|docker|docker-compose|podman|kubectl|heroku)$/;
/** These programs read shell commands. */
const READS_SHELL = /^(at|batch|ssh|su|sudo|doas|runuser|chroot|nsenter|unshare|script)$/;
/** These variables name a program that another one runs. */
const VARIABLE =
  /^((?:\w*(?:PAGER|EDITOR|BROWSER|ASKPASS|_COMMAND|_SHELL|_WRAPPER|_RSH|_RUNNER)|SHELL|VISUAL|GIT_SSH|GIT_EXTERNAL_DIFF|LESSOPEN|LESSCLOSE|CC|CXX|LD|CPP|AR))\+?=(.*)$/s;

/** The shell commands in the options, variables and input of a command. */
export function shellTextsOf({ words, assigned, input }: SimpleCommand): string[] {
  // The words of each reading are words of the command too.
  const settings = [...assigned.map(({ name, value }) => `${name}=${value}`), ...words.slice(1).map(wordValue)];
  const texts = settings.flatMap((setting) => VARIABLE.exec(setting)?.[2] ?? []);
  for (const reading of readingsOf(words)) {
    const name = baseName(reading[0]?.value ?? '');
    const optionTexts = valuesOf(reading, SHELL_OPTIONS.get(name));
    const isWrapper = optionTexts.length > 0 && /wrapper/.test(textOf(reading.slice(1)));
    texts.push(...optionTexts.map((text) => (isWrapper ? text.replaceAll(',', ' ') : text)));
    const values = (): string[] => reading.slice(1).map(wordValue);
    if (/^(ssh|scp|sftp|sshfs)$/.test(name))
      texts.push(...groupsOf(values(), /^(?:-o)?\s*\w*Command\s*[=\s]\s*(.+)$/is));
    if (name === 'socat') texts.push(...groupsOf(values(), /^(?:EXEC|SYSTEM|SHELL):([^,]*)/is));
    if (/^[gm]?make$/.test(name)) texts.push(...groupsOf(values(), /^[A-Z_.]+[:+?]?=(.*\s.*)$/s));
    if (name === 'bun' && reading[1]?.value === 'exec') texts.push(...values().slice(1));
    if (RUNS_EACH.test(name)) texts.push(...values().filter((value) => !value.startsWith('-')));
    if (RUNS_LINES.test(name)) texts.push(...values().filter((value) => /\s/.test(value)));
    if (READS_SHELL.test(name)) texts.push(...input);
    if (name === 'crontab') texts.push(...input.flatMap(scheduled));
  }
  const commands = texts.map((text) => text.replace(/^(exec=|[|!\s])+/, ''));
  return [...new Set(commands)].filter((text) => /[a-z]/i.test(text) && !SHELLS.test(baseName(text)));
}

/** The commands of a table of cron, without their times. */
const scheduled = (table: string): string[] =>
  table.split('\n').map((row) => row.replace(/^\s*(@\w+|(\S+\s+){4}\S+)\s+/, ''));

const wordValue = ({ value }: ShellWord): string => value;

/** The values of these options of a command. */
function valuesOf(reading: readonly ShellWord[], options: TextOptions | undefined): string[] {
  if (!options) return [];
  const words = reading.slice(1);
  const { letters = '', long = '' } = options;
  const names = long.split(' ').filter((name) => name !== '');
  // GNU programs accept the beginning of a long option.
  const isNamed = (name: string, value: string): boolean =>
    names.includes(name) || (/^--[\w-]{3}/.test(value) && names.some((each) => each.startsWith(name)));
  return words.flatMap(({ value }, at) => {
    const next = words[at + 1]?.value ?? '';
    const [, name = '', attached] = /^--?([\w-]+)(?:=(.*))?$/s.exec(value) ?? [];
    if (isNamed(name, value)) return [attached ?? next];
    if (!/^-[^-]/.test(value)) return [];
    const index = [...value].findIndex((letter) => letters.includes(letter));
    if (index < 1) return [];
    const rest = value.slice(index + 1).replace(/^=/, '');
    return rest === '' ? [next] : [rest, next];
  });
}

/** The programs in other languages that a command runs. */
function programsOf({ words, input }: SimpleCommand): Set<string> {
  const programs = new Set<string>();
  for (const reading of readingsOf(words)) for (const text of programsIn(reading, input)) programs.add(text);
  return programs;
}

function programsIn(reading: readonly ShellWord[], input: readonly string[]): string[] {
  const name = baseName(reading[0]?.value ?? '').replace(/^(python|php|lua|tclsh|ruby|perl)[\d.]+$/, '$1');
  const values = (): string[] => reading.slice(1).map(wordValue);
  if (/^[gmn]?awk$/.test(name)) return [...values(), ...input].filter((text) => /system|getline|\|/.test(text));
  if (/^g?sed$/.test(name)) return values().flatMap(sedCommands);
  const options = PROGRAM_OPTIONS.get(name);
  if (!options) return [];
  const commands = groupsOf(values(), /^\+?([:!.\\].*)$/s);
  return [...valuesOf(reading, options), ...commands, ...input];
}

/** The shell commands of a sed script: after `e`, and the texts of `s` with the flag `e`. */
const sedCommands = (script: string): string[] => [
  ...[...script.matchAll(/(?:^|[\n;{}\d$/])\s*e\s+([^\n]+)/g)].map(([, command = '']) => command),
  ...(/[^\w\s][gpiImM\d]*e[gpiImMe\d]*\s*(?:[;}\n]|$)/.test(script) ? script.split(/[/|#,:@!]/) : []),
];

/** Words of other languages before a command. */
const VERB = /^[\W\d]*(?:silent|call|shell|system|spawn|exec|execute|run|pipe|program|e|r|sh)\s+/;

/** The texts in programs of other languages that may be commands. A list of texts counts as one command. */
export function commandsInPrograms(command: SimpleCommand): string[] {
  const pieces = [...programsOf(command)].flatMap((text) =>
    [text, text.replace(/(["'])\s*,\s*\[?\s*(["'])/g, ' ')].flatMap((each) => each.split(/[\n;&|(){}[\]`"'$<>!]+/)),
  );
  const plain = pieces
    .map((piece) => piece.trim())
    .flatMap((piece) => [piece, piece.replace(/^\W+/, ''), piece.replace(VERB, '')]);
  return [...new Set(plain)].flatMap((piece) => [piece, ...readShellLine(piece).commands.flatMap(strictForms)]);
}
