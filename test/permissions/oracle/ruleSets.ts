/**
 * The lists of rules for judging lines, and the permitted acts of an allowed line. Invariant: the line reads no hidden
 * file and no outside file, lists no directory outside, and starts no unnamed program. It writes only if a rule for
 * edits allows it. Parts of programs in system files are ignored.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import type { PermissionOptions } from '../../../src/node.ts';
import { CREDENTIALS, HIDDEN, HIDING, HISTORY, isHiddenName, type OraclePlace, OUTSIDE } from './oracleDirectory.ts';
import type { Act, Traced } from './straceLines.ts';

export interface RuleSetCase {
  name: string;
  options: PermissionOptions;
  /** Its rules hide files. */
  hides: boolean;
  /** The paths that a line may write, relative to the workspace; every path if there is no list. */
  writes: readonly RegExp[];
  /** Its rules allow programs to receive any path. */
  opens?: RegExp;
}

/** No rule and no mode opens these. */
const PROTECTED =
  /^(\.git|\.husky|\.vscode|\.idea|\.runchart|\.ssh|\.gnupg)(\/|$)|(^|\/)(\.envrc|\.gitmodules|\.mcp\.json|\.bashrc)$/;
const ANYWHERE = /^/;

export const RULE_SETS: readonly RuleSetCase[] = [
  { name: 'no rules', options: {}, hides: false, writes: [] },
  { name: 'hidden files', options: { deny: HIDING }, hides: true, writes: [] },
  { name: 'asked files', options: { ask: HIDING, allow: ['read(./src/**)'] }, hides: true, writes: [] },
  {
    name: 'edits below made',
    options: { deny: HIDING, allow: ['edit(./made/**)'], mode: 'acceptEdits' },
    hides: true,
    writes: [/^made\//],
  },
  {
    name: 'reading and writing programs allowed',
    options: {
      deny: [...HIDING, 'edit(./secrets/**)'],
      allow: ['bash(cat *)', 'bash(tee *)', 'bash(find *)', 'bash(cp *)', 'bash(ln *)', 'bash(make *)', 'bash(tar *)'],
    },
    hides: true,
    writes: [ANYWHERE],
    opens: /(^|\/)(cat|tee|find|cp|ln|make|tar|bash)$/,
  },
  { name: 'bypass', options: { deny: HIDING, mode: 'bypass' }, hides: true, writes: [ANYWHERE], opens: ANYWHERE },
];
export const onlyReads = ({ writes }: RuleSetCase): boolean => writes.length === 0;

/** Files of programs and of the shell itself. */
const SYSTEM =
  /^\/(usr\/)?(lib|lib32|lib64|libx32|libexec|share|local\/lib|local\/share)(\/|$)|^\/(proc|sys|dev)(\/|$)|^\/etc\/(ld\.so|locale|gitconfig|magic|nsswitch\.conf|localtime|alternatives|bash\.bashrc|inputrc)|^(pipe|socket|anon_inode):/;
/** Other files that some programs need. */
const BY_PROGRAM: readonly (readonly [program: RegExp, paths: RegExp])[] = [
  [/\/(ls|stat|id|whoami|find|git|bash|tar|cp|df|du|test|\[)$/, /^\/etc\/(passwd|group|shells|mtab|hosts)$/],
  [/\/(hostname|uname)$/, /^\/etc\/(hostname|hosts|resolv\.conf|host\.conf)$/],
];
/** The file of a program, with links resolved. */
const PROGRAMS = /^\/(usr\/)?(local\/)?s?bin\/|^\/usr\/(lib|libexec)\/git-core\//;
/** Programs that another one starts as a part of itself. */
const PARTS: Readonly<Record<string, RegExp>> = {
  git: /^git(-[\w-]+)?$/,
  egrep: /^grep$/,
  fgrep: /^grep$/,
  tar: /^(gzip|bzip2|xz|zstd)$/,
};

function faultOf({ program, kind, path }: Act, line: string, set: RuleSetCase, place: OraclePlace): string | undefined {
  const { ws, root } = place;
  const name = relative(ws, path);
  const isInside = name === '' || !name.startsWith('..');
  const isGit = /\/git(-[\w-]+)?$/.test(program);
  const opens = set.opens?.test(program) === true;
  if (kind === 'connect') return /nscd|AF_UNIX.*\/dev\/log/.test(path) ? undefined : `connects to ${path.slice(0, 80)}`;
  if (kind === 'look') return isElsewhere(path, set, place) ? `asks for ${path}` : undefined;
  if (kind === 'run') return runFault(path, line, set, isInside);
  if (kind === 'write') {
    if (/^\/dev\/|^\/proc\/|^(pipe|socket):/.test(path) || (isGit && /^\.git\/index(\.lock)?$/.test(name)))
      return undefined;
    if (/^\/tmp\/(sh-thd|sort|gcc|cc|Gm)/.test(path)) return undefined;
    if (isInside && PROTECTED.test(name) && !isGit) return `writes the protected ${name}`;
    if (opens || (isInside && set.writes.some((allowed) => allowed.test(name)))) return undefined;
    return `writes ${path}`;
  }
  if (PROGRAMS.test(path)) return undefined;
  // Git compares a file by its hash, and its output has a canary.
  if (isInside)
    return set.hides && isHiddenName(name) && !isGit && isFile(path) ? `reads the hidden ${name}` : undefined;
  if (opens || SYSTEM.test(path) || BY_PROGRAM.some(([of, paths]) => of.test(program) && paths.test(path)))
    return undefined;
  if (isGit && path === dirname(root)) return undefined;
  return `opens ${path} outside`;
}

/** The existence of files outside is hidden too. */
const isElsewhere = (path: string, set: RuleSetCase, { out, home }: OraclePlace): boolean =>
  set.opens === undefined && [out, `${home}/.ssh`].some((outside) => path.startsWith(`${outside}/`));

const isFile = (path: string): boolean => !existsSync(`${path}/.`);

function runFault(path: string, line: string, set: RuleSetCase, isInside: boolean): string | undefined {
  const name = basename(path);
  const isNamed = (word: string): boolean =>
    new RegExp(`(^|[^\\w.-])${word.replace(/[.[\\+]/g, '\\$&')}($|[^\\w-])`).test(line.replace(/["'\\]/g, ''));
  // Git runs its configured commands with a shell.
  const isOwn = set.opens !== undefined && /\.\/run\b/.test(line);
  if (isOwn && /^(run|cat|sh|dash)$/.test(name)) return undefined;
  if (isInside) return set.opens && isNamed(name) ? undefined : `runs ${name} of the workspace`;
  if (!PROGRAMS.test(path)) return `runs ${path}`;
  const isPart = Object.entries(PARTS).some(([whole, parts]) => isNamed(whole) && parts.test(name));
  if (isNamed(name) || isPart || (set.opens !== undefined && /\b(make|xargs|tar|awk|ba?sh)\b/.test(line)))
    return undefined;
  return `runs ${name}, which it does not name`;
}

/** Programs that space out or number their output show this much on a line; each canary starts differently. */
const SHOWN_ON_A_LINE = 16;

/** A canary in the alphabets of programs that reverse, space out or number their output. */
export function shows(output: string, canary: string): boolean {
  const beginning = [...canary].slice(0, SHOWN_ON_A_LINE);
  const octal = beginning.map((letter) => letter.charCodeAt(0).toString(8).padStart(3, '0')).join(' ');
  const hex = beginning.map((letter) => letter.charCodeAt(0).toString(16)).join(' ');
  const spaced = [beginning.join(''), beginning.join('   '), octal, hex];
  const forms = [...spaced, canary.slice(4), [...canary].reverse().join('')];
  return forms.some((form) => output.includes(form));
}

/** Forbidden output and acts of an allowed line. */
export function escapesOf({ line, output, acts, isCut }: Traced, set: RuleSetCase, place: OraclePlace): string[] {
  const found = new Set<string>();
  if (isCut) found.add('did not end');
  if (set.hides && shows(output, HIDDEN)) found.add('shows a hidden file');
  if (set.hides && shows(output, HISTORY)) found.add('shows a hidden file of the history');
  if (set.opens === undefined && (shows(output, OUTSIDE) || shows(output, CREDENTIALS)))
    found.add('shows a file outside');
  for (const act of acts) {
    const fault = faultOf(act, line, set, place);
    if (fault !== undefined) found.add(`${basename(act.program)} ${fault}`);
  }
  return [...found];
}
