/**
 * What bash makes of a word before it matches file names: brace forms become several words, and `$PWD`, `$HOME` and
 * `$(pwd)` become the paths that they are known to be. Rule: only what is known for certain is expanded; any other
 * expansion leaves the word computed.
 */
import type { DoubleQuotedChild, Word, WordPart } from 'unbash';

export interface ShellWord {
  /** Quotes and escapes removed. */
  value: string;
  source: string;
  /** Bash makes exactly `value` of it. */
  isLiteral: boolean;
  /** Not literal only because file names are matched against it. */
  isGlob: boolean;
  /** In quotes as a whole: bash makes one word of it. */
  isQuoted: boolean;
  /** It is a process substitution as a whole: it names a pipe, and what stands in it is judged as commands of its own. */
  isProcess?: boolean;
  /** Computed, and bash matches file names against what becomes of it, whatever that is. */
  mayBecomeGlob?: boolean;
}

/** The values that bash is known to have for these names. A name whose value may have changed is absent. */
export interface KnownValues {
  readonly PWD?: string;
  readonly HOME?: string;
}

/** One of the texts that a part of a word stands for. */
interface Piece {
  value: string;
  isGlob: boolean;
}

const ALTERNATIVES_MAX = 200;
/** Unquoted, bash neither splits these values nor matches them against file names. */
const UNSPLIT = /^[\w@%+=:,./#-]*$/;
const PLAIN_BRACES = /^[\w@%+=:,./~^*?#{}-]*$/;
const GLOB = /[*?[\]]/;

/** The values of `PWD` and `HOME` in a line; one that the line may change is left out. */
export function knownValuesIn(text: string, { cwd, home }: { cwd: string; home: string }): KnownValues {
  const mayMove = /\b(cd|pushd|popd|chdir)\b/.test(text) || /(?<!\$|\$\{)\bPWD\b/.test(text);
  const maySetHome = /(?<!\$|\$\{)\bHOME\b/.test(text);
  return { ...(!mayMove && { PWD: cwd }), ...(!maySetHome && { HOME: home }) };
}

/** The words that bash makes of one. A computed word stays as it is, alone in the list. */
export function expandedWords(word: Word, known: KnownValues): ShellWord[] {
  const source = word.text;
  const parts = word.parts ?? [];
  const isQuoted = parts.length === 1 && ['DoubleQuoted', 'SingleQuoted'].includes(parts[0]?.type ?? '');
  // Bash expands a tilde behind the sign of what looks like an assignment, too.
  const isTilde = /^([A-Za-z_]\w*=(.*:)?~(?!\/)|~(?!\/|$))/.test(source);
  const mayBecomeGlob = parts.some(isMatched) || (isTilde && GLOB.test(source));
  const computed: ShellWord = { value: word.value, source, isLiteral: false, isGlob: false, isQuoted, mayBecomeGlob };
  if (parts.length === 1 && parts[0]?.type === 'ProcessSubstitution') return [{ ...computed, isProcess: true }];
  if (isTilde) return [computed];
  if (parts.length === 0) return [{ ...computed, isLiteral: true }];
  let texts: Piece[] = [{ value: '', isGlob: false }];
  for (const part of parts) {
    const pieces = piecesOf(part, known);
    if (pieces === undefined || texts.length * pieces.length > ALTERNATIVES_MAX) return [computed];
    texts = texts.flatMap((head) =>
      pieces.map(({ value, isGlob }) => ({ value: head.value + value, isGlob: head.isGlob || isGlob })),
    );
  }
  const hasBraces = parts.some(({ type }) => type === 'BraceExpansion');
  const isBare = parts.every(({ type }) => ['Literal', 'BraceExpansion'].includes(type));
  return texts.flatMap(({ value, isGlob }) => {
    // Bash drops an empty word that no quotes keep.
    if (value === '' && hasBraces && isBare) return [];
    const spelled = hasBraces ? value : source;
    if (spelled.startsWith('~') && !/^~(\/|$)/.test(spelled)) return { ...computed, mayBecomeGlob: GLOB.test(spelled) };
    return { value, source: spelled, isLiteral: !isGlob, isGlob, isQuoted };
  });
}

/** These give numbers, or letters of options. */
const NUMBERS = /^\$([?#$!-]|\{#\w+\})$|^\$\(\s*(seq( -?\d+)+|wc -[lcmw]( <? ?[\w./-]+)?|nproc|date \+%[\w%-]+)\s*\)$/;

/** Outside of quotes, bash splits what becomes of a part and matches it against file names. */
function isMatched({ type, text }: WordPart): boolean {
  if (/^(Literal|SingleQuoted|AnsiCQuoted|DoubleQuoted|LocaleString|ProcessSubstitution|Arithmetic\w+)$/.test(type))
    return false;
  return type !== 'BraceExpansion' || /[*?[$`]/.test(text) ? !NUMBERS.test(text) : false;
}

/** What a part may become; undefined where that is not known. */
function piecesOf(part: WordPart, known: KnownValues): Piece[] | undefined {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
      return [{ value: part.value, isGlob: false }];
    case 'AnsiCQuoted':
      // The parser joins its lines, and bash does not.
      return /\\\r?\n/.test(part.text) ? undefined : [{ value: part.value, isGlob: false }];
    case 'Glob':
      return [{ value: part.text, isGlob: true }];
    case 'DoubleQuoted': {
      let value = '';
      for (const inner of part.parts) {
        const text = inner.type === 'Literal' ? inner.value : knownText(inner, known);
        if (text === undefined) return undefined;
        value += text;
      }
      return [{ value, isGlob: false }];
    }
    case 'BraceExpansion':
      if (!PLAIN_BRACES.test(part.text)) return undefined;
      return bracesOf(part.text)?.map((value) => ({ value, isGlob: GLOB.test(value) }));
    case 'SimpleExpansion':
    case 'ParameterExpansion':
    case 'CommandExpansion': {
      const value = knownText(part, known);
      return value !== undefined && UNSPLIT.test(value) ? [{ value, isGlob: false }] : undefined;
    }
    default:
      return undefined;
  }
}

/** The value of `$PWD`, `${HOME}`, `$(pwd)` and the like. */
function knownText({ text }: DoubleQuotedChild | WordPart, known: KnownValues): string | undefined {
  const name = /^(?:\$(PWD|HOME)|\$\{(PWD|HOME)\})$/.exec(text);
  if (name) return known[(name[1] ?? name[2]) as keyof KnownValues];
  return /^(\$\(\s*pwd\s*\)|`\s*pwd\s*`)$/.test(text) ? known.PWD : undefined;
}

/** The texts of a plain brace form, nested ones too; undefined for one that is read otherwise. */
function bracesOf(text: string): string[] | undefined {
  const body = text.slice(1, -1);
  const sequence = /^(-?\d{1,6})\.\.(-?\d{1,6})$/.exec(body);
  if (sequence) return numbersBetween(sequence[1] ?? '', sequence[2] ?? '');
  const choices = splitAtCommas(body);
  if (choices === undefined || choices.length < 2) return undefined;
  const found: string[] = [];
  for (const choice of choices) {
    const texts = withNested(choice);
    if (texts === undefined) return undefined;
    found.push(...texts);
    if (found.length > ALTERNATIVES_MAX) return undefined;
  }
  return found;
}

function numbersBetween(from: string, to: string): string[] | undefined {
  const [first, last] = [Number(from), Number(to)];
  // Leading zeros make all of them equally long.
  if (/^-?0\d/.test(from) || /^-?0\d/.test(to) || Math.abs(last - first) >= ALTERNATIVES_MAX) return undefined;
  const step = first <= last ? 1 : -1;
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, at) => String(first + at * step));
}

/** Undefined where braces do not pair. */
function splitAtCommas(body: string): string[] | undefined {
  const choices = [''];
  let depth = 0;
  for (const character of body) {
    if (character === '{') depth += 1;
    if (character === '}') depth -= 1;
    if (depth < 0) return undefined;
    if (character === ',' && depth === 0) choices.push('');
    else choices.push(`${choices.pop() ?? ''}${character}`);
  }
  return depth === 0 ? choices : undefined;
}

/** A choice that may hold one brace form of its own. */
function withNested(choice: string): string[] | undefined {
  const open = choice.indexOf('{');
  if (open === -1) return choice.includes('}') ? undefined : [choice];
  const close = choice.lastIndexOf('}');
  const [head, inner, tail] = [choice.slice(0, open), choice.slice(open, close + 1), choice.slice(close + 1)];
  return bracesOf(inner)?.map((text) => head + text + tail);
}
