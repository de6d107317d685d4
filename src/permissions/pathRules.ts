/**
 * Path rules: gitignore patterns, and the protected places that no rule opens. Rule: a path is checked by its spelling
 * and by its real target. A deny rule applies if one of them matches; an allow rule must match both. This module never
 * reads file contents.
 */
import { homedir } from 'node:os';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import ignore from 'ignore';
import { PROTECTED_BELOW_HOME, PROTECTED_NAMES, PROTECTED_PARTS } from '../tools/coding/sandbox/protectedNames.ts';
import { isInside, kernelPath, linksReadOnce, spellingFault } from '../tools/coding/workspace.ts';

/** The directories that relative patterns and paths start from. */
export interface Surroundings {
  cwd: string;
  /** The working directory with links resolved. */
  root: string;
  home: string;
  /** Reads each link once, so that a verdict describes one state of the file system. */
  linkAt(path: string): Promise<string | undefined>;
}

export interface PathSubject {
  /** The path as the caller wrote it, for messages. */
  written: string;
  spelled: string;
  /** The path with links resolved; undefined if it cannot be resolved. */
  real: string | undefined;
}

export interface PathPattern {
  /**
   * `strict` is true for allow rules. Without it, a pattern that names no directory also matches outside the working
   * directory.
   */
  matches(path: PathSubject, around: Surroundings, strict: boolean): boolean;
  /** True if no part of the pattern has a leading dot, so that a search without dotfiles may find its files. */
  seesVisible: boolean;
  /** The last part of the pattern, as the rule wrote it. */
  last: string;
  /** The parts of the pattern, without its base. */
  parts: readonly string[];
  /** The base and parts of the pattern; absent if it matches at any depth. */
  anchor?: { base: Base; parts: readonly string[] };
}

export async function surroundingsOf(cwd: string): Promise<Surroundings> {
  const linkAt = linksReadOnce();
  const root = await kernelPath('/', resolve(cwd), linkAt).catch(() => resolve(cwd));
  return { cwd: resolve(cwd), root, home: homedir(), linkAt };
}

export async function pathSubject(written: string, from: string, { linkAt }: Surroundings): Promise<PathSubject> {
  const spelled = resolve(from, written);
  if (spellingFault(written) !== undefined) return { written, spelled, real: undefined };
  return { written, spelled, real: await kernelPath(from, written, linkAt).catch(() => undefined) };
}

export const isInsideRoot = ({ real }: PathSubject, { root }: Surroundings): boolean =>
  real !== undefined && isInside(root, real);

type Base = 'root' | 'home' | 'cwd';

/** Escaped characters, and sets. The first character of a set may be a ] itself. */
const ESCAPED_OR_SET = /\\.|\[([!^](\\.|[^\\])|\\.|[^\\!^])(\[:\w+:\]|\\.|[^\]\\])*\]/gs;

/** The range of a set whose end is before its beginning, so that it matches nothing. */
function emptyRange(pattern: string): string | undefined {
  for (const [set] of pattern.matchAll(ESCAPED_OR_SET))
    for (const [range, low = '', high = ''] of set.startsWith('[')
      ? set.matchAll(/(\\.|[^\\[!^])-(\\.|[^\\\]])/gs)
      : [])
      if (low.slice(-1) > high.slice(-1)) return range;
  return undefined;
}

/** The fault of a pattern that would silently match nothing, because another program reads it in another way. */
function foreignFault(pattern: string): string | undefined {
  const bare = pattern.replace(ESCAPED_OR_SET, '_');
  const [, group] = /([@?*+!])\(/.exec(bare) ?? [];
  if (group !== undefined)
    return `has ${group}( … ), which patterns of gitignore lack: write \\( for the character itself`;
  if (/^~[\w.-]*(\/|$)/.test(pattern) && !pattern.startsWith('~/'))
    return 'begins with ~ and is below no home directory: write ~/ for your own, or ./~ for the character itself';
  if (/^\$(\w+|\{\w+\})(\/|$)/.test(pattern))
    return 'begins with a variable, and rules have none: write ~/ for the home directory, or ./$ for the character itself';
  const range = emptyRange(pattern);
  return range && `has the range ${range}, which is empty`;
}

const ALTERNATIVES_MAX = 100;

/** The patterns without the braces, as bash expands `{a,b}`. A text with the fault of invalid braces. */
function alternativesOf(spec: string): readonly string[] | string {
  const expanded = new Set<string>();
  const rest = [spec];
  for (let pattern = rest.pop(); pattern !== undefined; pattern = rest.pop()) {
    const found = firstBraces(pattern);
    if (typeof found === 'string') return found;
    if (found === undefined) expanded.add(pattern);
    else {
      const { at, commas, end } = found;
      const [head, tail, starts] = [pattern.slice(0, at), pattern.slice(end + 1), [at, ...commas]];
      rest.push(...starts.map((start, index) => head + pattern.slice(start + 1, commas[index] ?? end) + tail));
    }
    if (expanded.size + rest.length > ALTERNATIVES_MAX) return `has more than ${ALTERNATIVES_MAX} alternatives`;
  }
  return [...expanded];
}

/** The first braces that end and contain a comma. Others are plain characters, as in bash. */
function firstBraces(pattern: string): { at: number; commas: number[]; end: number } | string | undefined {
  const open: { at: number; commas: number[] }[] = [];
  for (let at = 0; at < pattern.length; at += 1) {
    if (pattern[at] === '\\') at += 1;
    else if (pattern[at] === '{') open.push({ at, commas: [] });
    else if (pattern[at] === ',') open.at(-1)?.commas.push(at);
    else if (pattern[at] === '}') {
      const braces = open.pop();
      if (braces && braces.commas.length > 0) return { ...braces, end: at };
      if (braces && /^(-?\d+|[a-z])(\.\.(-?\d+|[a-z])){1,2}$/i.test(pattern.slice(braces.at + 1, at)))
        return 'has a range in braces: write its names with commas';
    }
  }
  return open.some(({ commas }) => commas.length > 0) ? 'has { without }: write \\{ for the brace itself' : undefined;
}

/** Parses a path pattern with braces: one pattern for each alternative, or a text with the fault. */
export function pathPatterns(spec: string): readonly PathPattern[] | string {
  const alternatives = alternativesOf(spec);
  if (typeof alternatives === 'string') return alternatives;
  const patterns: PathPattern[] = [];
  for (const alternative of alternatives) {
    const pattern = pathPattern(alternative);
    if (typeof pattern === 'string') return pattern;
    patterns.push(pattern);
  }
  return patterns;
}

/**
 * Parses a gitignore pattern without braces; `//x` is absolute and `~/x` is below the home directory. Returns a text with
 * the fault of an invalid pattern.
 */
export function pathPattern(spec: string): PathPattern | string {
  // An escaped blank at the end is part of the name.
  const pattern = spec.trimStart().replace(/(?<!\\)\s+$/, '');
  if (pattern.startsWith('!')) return 'begins with !: give it to the other list instead';
  if (/\*{3,}/.test(pattern)) return 'holds more than two * in a row';
  if (pattern.split('/').includes('..')) return 'holds a .. part';
  const base: Base = pattern.startsWith('//') ? 'root' : pattern.startsWith('~/') ? 'home' : 'cwd';
  const written = base === 'root' ? pattern.slice(1) : pattern.replace(/^[~.](?=\/)/, '');
  // In a file of git, # begins a comment, and a path with an empty part fits nothing.
  const body = written
    .replace(/\/(\.?\/)+/g, '/')
    .replace(/\/\.$/, '/')
    .replace(/^#/, '\\#');
  const parts = body.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0) return 'names no file; ./** is all below the working directory';
  if (/(?<!\\)(\\\\)*\\$/.test(body)) return 'ends with \\: write \\\\ for a backslash';
  if (parts.some((part) => part.replace(ESCAPED_OR_SET, '').includes('[')))
    return 'has [ without ]: write \\[ for the bracket itself';
  const foreign = foreignFault(pattern);
  if (foreign !== undefined) return foreign;
  const isFloating = base === 'cwd' && (!body.replace(/\/$/, '').includes('/') || body.startsWith('**/'));
  const exactCase = ignore({ ignorecase: false }).add(body);
  const anyCase = ignore({ ignorecase: true }).add(body.normalize('NFC'));
  const isWhole = parts.every((part) => part === '**' || part === '*');
  const covers = (path: string, from: string, strict: boolean): boolean => {
    // An accented letter has two Unicode spellings that look alike. Deny rules treat them as one name.
    const name = strict ? path : path.normalize('NFC');
    const rest = relative(strict ? from : from.normalize('NFC'), name)
      .split(sep)
      .join('/');
    if (rest === '') return isWhole;
    const matcher = strict ? exactCase : anyCase;
    const below = !(rest === '..' || rest.startsWith('../') || isAbsolute(rest));
    if (below) return matcher.ignores(rest) || (!strict && matcher.ignores(`${rest}/`));
    const whole = name.split(sep).join('/').replace(/^\/+/, '');
    return !strict && isFloating && whole !== '' && anyCase.ignores(whole);
  };
  return {
    seesVisible: !parts.some((part) => part.startsWith('.')),
    last: parts.at(-1) ?? '',
    parts,
    ...(!isFloating && { anchor: { base, parts } }),
    matches({ spelled, real }, { cwd, root, home }, strict) {
      const from = { root: '/', home, cwd }[base];
      const realFrom = base === 'cwd' ? root : from;
      const bySpelling = covers(spelled, from, strict);
      const byReal = real !== undefined && covers(real, realFrom, strict);
      return strict ? bySpelling && byReal : bySpelling || byReal;
    },
  };
}

/**
 * The name as other file systems read it: lower case, without invisible characters, trailing dots and stream suffixes.
 */
const foldedName = (name: string): string =>
  name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .replace(/(?<=[^.]):.*$/s, '')
    .replace(/(?<=[^. ])[. ]+$/, '');

/**
 * The protected place that a write to this path would change; undefined if there is none. No allow rule covers such a
 * write.
 */
export function protectedPlace(
  path: PathSubject,
  around: Surroundings,
  more: readonly PathPattern[],
): string | undefined {
  const { XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
  const own = [
    ...PROTECTED_BELOW_HOME.map((place) => resolve(around.home, place)),
    ...[XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((directory) =>
      directory && isAbsolute(directory) ? [resolve(directory, 'runchart')] : [],
    ),
  ];
  for (const [each, from] of [
    [path.spelled, around.cwd],
    [path.real, around.root],
  ] as const) {
    if (each === undefined) continue;
    // Protected names above the working directory do not count: the host chose that directory.
    const parts = (isInside(from, each) ? relative(from, each) : each).split(sep).map(foldedName);
    const part = parts.find((name) => PROTECTED_PARTS.has(name)) ?? parts.find((name) => PROTECTED_NAMES.has(name));
    if (part !== undefined) return part;
    const place = own.find((folder) => isInside(folder, each));
    if (place !== undefined) return relative(around.home, place);
  }
  const extra = more.find((pattern) => pattern.matches(path, around, false));
  return extra && path.written;
}

/**
 * The rule for exactly this path; undefined if no rule would allow it: a path with characters that rules cannot hold, or one
 * that a link leads elsewhere.
 */
export function pathRule(tool: string, path: PathSubject, around: Surroundings): string | undefined {
  const { spelled } = path;
  const { cwd } = around;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f-\u009f]/.test(spelled)) return undefined;
  const isBelow = spelled !== cwd && isInside(cwd, spelled);
  const parts = (isBelow ? relative(cwd, spelled) : spelled.slice(1)).split(sep).join('/');
  const literal = parts
    .replace(/[\\*?[\]{]/g, '\\$&')
    .replace(/(?<=[@+!])\(/g, '\\(')
    .replace(/ +$/, (spaces) => spaces.replaceAll(' ', '\\ '));
  const spec = `${isBelow ? './' : '//'}${literal}`;
  const pattern = pathPattern(spec);
  return typeof pattern !== 'string' && pattern.matches(path, around, true) ? `${tool}(${spec})` : undefined;
}
