/**
 * Paths under rules: gitignore patterns, and the places that no rule opens. Rule: a path is judged by its spelling and by
 * where it really leads; to deny, one of both is enough, to allow it takes both. Nothing here reads a file's content.
 */
import { homedir } from 'node:os';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import ignore from 'ignore';
import { PROTECTED_BELOW_HOME, PROTECTED_NAMES, PROTECTED_PARTS } from '../tools/coding/sandbox/protectedNames.ts';
import { isInside, kernelPath, type LinkReader, linksReadOnce, spellingFault } from '../tools/coding/workspace.ts';

/** What relative patterns and paths start from. */
export interface Surroundings {
  cwd: string;
  /** The working directory, links resolved. */
  root: string;
  home: string;
  /** Reads each link once, so that a verdict is about one state of the files. */
  linkAt: LinkReader;
}

export interface PathSubject {
  /** As it was written; for messages. */
  given: string;
  spelled: string;
  /** Links resolved; undefined where that cannot be known. */
  real: string | undefined;
}

export interface PathPattern {
  /** `strict`: to allow. A pattern that names no directory denies outside the working directory too. */
  matches(path: PathSubject, around: Surroundings, strict: boolean): boolean;
  /** May match a file that searches by name pass over no matter what: none with a leading dot in its path. */
  seesVisible: boolean;
  /** Its last part, as it was written. */
  last: string;
  /** Where it begins, and its parts; absent for one that fits at any depth. */
  anchor?: { base: Base; parts: readonly string[] };
}

export async function surroundingsOf(cwd: string): Promise<Surroundings> {
  const linkAt = linksReadOnce();
  const root = await kernelPath('/', resolve(cwd), linkAt).catch(() => resolve(cwd));
  return { cwd: resolve(cwd), root, home: homedir(), linkAt };
}

export async function pathSubject(given: string, from: string, { linkAt }: Surroundings): Promise<PathSubject> {
  const spelled = resolve(from, given);
  if (spellingFault(given) !== undefined) return { given, spelled, real: undefined };
  return { given, spelled, real: await kernelPath(from, given, linkAt).catch(() => undefined) };
}

export const isInsideRoot = ({ real }: PathSubject, { root }: Surroundings): boolean =>
  real !== undefined && isInside(root, real);

type Base = 'root' | 'home' | 'cwd';

/** A gitignore pattern; `//x` is absolute, `~/x` below the home directory. A text says what is wrong with it. */
export function pathPattern(spec: string): PathPattern | string {
  const given = spec.trim();
  if (given.startsWith('!')) return 'begins with !: give it to the other list instead';
  if (/\*{3,}/.test(given)) return 'holds more than two * in a row';
  if (given.split('/').includes('..')) return 'holds a .. part';
  const base: Base = given.startsWith('//') ? 'root' : given.startsWith('~/') ? 'home' : 'cwd';
  const body = base === 'root' ? given.slice(1) : given.replace(/^[~.](?=\/)/, '');
  const parts = body.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0) return 'names no file; ./** is all below the working directory';
  const isFloating = base === 'cwd' && (!body.replace(/\/$/, '').includes('/') || body.startsWith('**/'));
  const exactCase = ignore({ ignorecase: false }).add(body);
  const anyCase = ignore({ ignorecase: true }).add(body.normalize('NFC'));
  const isWhole = parts.every((part) => part === '**' || part === '*');
  const covers = (path: string, from: string, strict: boolean): boolean => {
    // An accented letter has two spellings that look alike: to deny, both are one name.
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

/** As file systems of other machines take a name: whatever its case, without what leaves no mark, dots at its end and streams. */
const foldedName = (name: string): string =>
  name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()
    .replace(/(?<=[^.]):.*$/s, '')
    .replace(/(?<=[^. ])[. ]+$/, '');

/** The place that a write to this path would change though no rule may allow it unasked; undefined for others. */
export function protectedPlace(
  path: PathSubject,
  around: Surroundings,
  more: readonly PathPattern[],
): string | undefined {
  const { XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
  const own = [
    ...PROTECTED_BELOW_HOME.map((place) => resolve(around.home, place)),
    ...[XDG_STATE_HOME, XDG_CONFIG_HOME].flatMap((given) =>
      given && isAbsolute(given) ? [resolve(given, 'runchart')] : [],
    ),
  ];
  for (const [each, from] of [
    [path.spelled, around.cwd],
    [path.real, around.root],
  ] as const) {
    if (each === undefined) continue;
    // What the working directory itself lies in is the host's choice.
    const parts = (isInside(from, each) ? relative(from, each) : each).split(sep).map(foldedName);
    const part = parts.find((name) => PROTECTED_PARTS.has(name)) ?? parts.find((name) => PROTECTED_NAMES.has(name));
    if (part !== undefined) return part;
    const place = own.find((folder) => isInside(folder, each));
    if (place !== undefined) return relative(around.home, place);
  }
  const extra = more.find((pattern) => pattern.matches(path, around, false));
  return extra && path.given;
}

/** The rule for exactly this path; undefined where it has characters that no rule may hold. */
export function pathRule(tool: string, { spelled, real }: PathSubject, { cwd }: Surroundings): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (real === undefined || /[\u0000-\u001f\u007f-\u009f]/.test(spelled)) return undefined;
  const isBelow = spelled !== cwd && isInside(cwd, spelled);
  const path = (isBelow ? relative(cwd, spelled) : spelled.slice(1)).split(sep).join('/');
  const literal = path.replace(/[\\*?[\]]/g, '\\$&').replace(/ +$/, (spaces) => spaces.replaceAll(' ', '\\ '));
  return `${tool}(${isBelow ? './' : '//'}${literal})`;
}
