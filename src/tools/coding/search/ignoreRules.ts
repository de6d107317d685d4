/**
 * The rules of `.gitignore` files. Rule: such a file is untrusted, so no rule backtracks without bound, and all rules of
 * one walk together have a budget of steps; when it is used up, nothing more is left out. The last rule that fits
 * decides, and a file in a directory counts before the files above it.
 */

export interface IgnoreRule {
  /** The parts of the path; `**` is any number of parts. */
  parts: readonly (Pattern | '**')[];
  isNegated: boolean;
  forDirectories: boolean;
}
type Token = { kind: 'star' } | { kind: 'one'; fits(character: string): boolean };
type Pattern = readonly Token[];

const RULES_MAX = 1_000;
const LINE_CHARACTERS_MAX = 1_024;
const STEPS_MAX = 20_000_000;

/** Counts the steps of all rules of one walk. */
export type IgnoreBudget = { steps: number };
export const ignoreBudget = (): IgnoreBudget => ({ steps: STEPS_MAX });

export const ignoreRules = (text: string): IgnoreRule[] =>
  text
    .split(/\r?\n/, RULES_MAX)
    .filter((line) => line.length <= LINE_CHARACTERS_MAX)
    .flatMap((line) => ruleOf(line) ?? []);

function ruleOf(line: string): IgnoreRule | undefined {
  // Blanks at the end count only where they are escaped.
  let text = line;
  while (/[ \t]$/.test(text) && !/\\[ \t]$/.test(text)) text = text.slice(0, -1);
  if (text === '' || text.startsWith('#')) return undefined;
  const isNegated = text.startsWith('!');
  if (isNegated) text = text.slice(1);
  const forDirectories = text.endsWith('/');
  if (forDirectories) text = text.slice(0, -1);
  const isAnchored = text.includes('/');
  const written = (text.startsWith('/') ? text.slice(1) : text).split('/');
  if (written.includes('')) return undefined;
  const parts = written.map((part) => (part === '**' ? part : patternOf(part)));
  // `a/**` is all that is in `a`, and not `a`.
  const inside = parts.at(-1) === '**' ? [...parts, patternOf('*')] : parts;
  return { parts: isAnchored ? inside : ['**' as const, ...inside], isNegated, forDirectories };
}

function patternOf(text: string): Pattern {
  const characters = Array.from(text);
  const tokens: Token[] = [];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? '';
    if (character === '*') {
      if (tokens.at(-1)?.kind !== 'star') tokens.push({ kind: 'star' });
      continue;
    }
    const set = character === '[' ? setAt(characters, at) : undefined;
    if (set) at = set.end;
    else if (character === '\\' && at + 1 < characters.length) at += 1;
    const literal = characters[at];
    const fits = set?.fits ?? (character === '?' ? () => true : (each: string) => each === literal);
    tokens.push({ kind: 'one', fits });
  }
  return tokens;
}

const CLASSES: { readonly [name: string]: RegExp } = {
  ...{
    alpha: /[a-z]/i,
    digit: /\d/,
    alnum: /[a-z\d]/i,
    upper: /[A-Z]/,
    lower: /[a-z]/,
    space: /\s/,
    xdigit: /[\da-f]/i,
  },
  punct: /[!-/:-@[-`{-~]/,
};

/** A set such as `[a-z]` or `[!a]`. Undefined where it has no end. */
function setAt(characters: readonly string[], from: number) {
  const isNegated = characters[from + 1] === '!' || characters[from + 1] === '^';
  const first = from + (isNegated ? 2 : 1);
  const tests: ((character: string) => boolean)[] = [];
  for (let at = first; at < characters.length; at += 1) {
    if (characters[at] === ']' && at > first) {
      const fits = (character: string): boolean => tests.some((test) => test(character)) !== isNegated;
      return { end: at, fits };
    }
    const [whole = '', name = ''] = /^\[:([a-z]+):\]/.exec(characters.slice(at, at + 12).join('')) ?? [];
    const named = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
    if (named) {
      tests.push((character) => named.test(character));
      at += whole.length - 1;
      continue;
    }
    if (characters[at] === '\\') at += 1;
    const low = characters[at] ?? '';
    const isRange = characters[at + 1] === '-' && characters[at + 2] !== ']' && characters[at + 2] !== undefined;
    const high = isRange ? (characters[at + 2] ?? low) : low;
    if (isRange) at += 2;
    tests.push((character) => low <= character && character <= high);
  }
  return undefined;
}

/** Whether the last rule that fits leaves the entry out; undefined if none fits. `path`: relative to the rules' file. */
export function isLeftOut(
  rules: readonly IgnoreRule[],
  path: readonly string[],
  isDirectory: boolean,
  budget: IgnoreBudget,
): boolean | undefined {
  for (let index = rules.length - 1; index >= 0 && budget.steps > 0; index -= 1) {
    const rule = rules[index];
    if (rule && (isDirectory || !rule.forDirectories) && fitsPath(rule.parts, path, budget)) return !rule.isNegated;
  }
  return undefined;
}

const fitsPath = (parts: IgnoreRule['parts'], path: readonly string[], budget: IgnoreBudget): boolean =>
  fitsAll(parts, path, budget, {
    isAny: (part) => part === '**',
    fits: (part, name) => part !== '**' && fitsName(part, Array.from(name), budget),
  });

const fitsName = (pattern: Pattern, name: readonly string[], budget: IgnoreBudget): boolean =>
  fitsAll(pattern, name, budget, {
    isAny: ({ kind }) => kind === 'star',
    fits: (token, character) => token.kind === 'one' && token.fits(character),
  });

/** Wildcards, of which only the last one is tried again: at most one step for each pair of a token and an item. */
function fitsAll<Token, Item>(
  tokens: readonly Token[],
  items: readonly Item[],
  budget: IgnoreBudget,
  { isAny, fits }: { isAny(token: Token): boolean; fits(token: Token, item: Item): boolean },
): boolean {
  let token = 0;
  let retry: { token: number; item: number } | undefined;
  for (let item = 0; item < items.length; ) {
    budget.steps -= 1;
    if (budget.steps <= 0) return false;
    const current = tokens[token];
    if (current !== undefined && isAny(current)) {
      token += 1;
      retry = { token, item };
    } else if (current !== undefined && fits(current, items[item] as Item)) {
      token += 1;
      item += 1;
    } else if (retry) {
      retry.item += 1;
      ({ token, item } = retry);
    } else return false;
  }
  while (token < tokens.length && isAny(tokens[token] as Token)) token += 1;
  return token === tokens.length;
}
