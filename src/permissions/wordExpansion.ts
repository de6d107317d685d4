/**
 * Expands a shell word as bash does before it matches file names: brace forms become several words, and `$PWD`, `$HOME`
 * and `$(pwd)` become paths. Rule: an expansion is applied only if its value is certain. Any other expansion leaves the
 * word marked as computed.
 */
import type { DoubleQuotedChild, Word, WordPart } from 'unbash';

export interface ShellWord {
  /** The word without quotes and escapes. */
  value: string;
  source: string;
  /** The word is exactly `value` when the command runs. */
  isLiteral: boolean;
  /** The word is a glob: bash matches it against file names, and all its other parts are literal. */
  isGlob: boolean;
  /** The whole word is quoted, so it stays one word. */
  isQuoted: boolean;
  /** The whole word is a process substitution. It names a pipe, and the commands inside are checked separately. */
  isProcess?: boolean;
  /** The word is computed, and bash may match its unknown value against file names. */
  mayBecomeGlob?: boolean;
}

/** Values of variables that are certain. A variable that the line may change is absent. */
export interface KnownValues {
  readonly PWD?: string;
  readonly HOME?: string;
}

/** One possible text of a part of a word. */
interface Piece {
  value: string;
  isGlob: boolean;
}

const ALTERNATIVES_MAX = 200;
/** Bash leaves such a value unchanged when it is unquoted: it neither splits it nor matches it against file names. */
const UNSPLIT = /^[\w@%+=:,./#-]*$/;
const PLAIN_BRACES = /^[\w@%+=:,./~^*?#{}-]*$/;
const GLOB = /[*?[\]]/;

/** The values of `PWD` and `HOME` in a line; a variable that the line may change is left out. */
export function knownValuesIn(text: string, { cwd, home }: { cwd: string; home: string }): KnownValues {
  const mayMove = /\b(cd|pushd|popd|chdir)\b/.test(text) || /(?<!\$|\$\{)\bPWD\b/.test(text);
  const maySetHome = /(?<!\$|\$\{)\bHOME\b/.test(text);
  return { ...(!mayMove && { PWD: cwd }), ...(!maySetHome && { HOME: home }) };
}

/** The words that bash makes of one word. A computed word is returned unchanged. */
export function expandedWords(word: Word, values: KnownValues): ShellWord[] {
  const source = word.text;
  const parts = word.parts ?? [];
  const isQuoted = parts.length === 1 && ['DoubleQuoted', 'SingleQuoted'].includes(parts[0]?.type ?? '');
  // Bash also expands a tilde after the `=` of a word that looks like an assignment.
  const isTilde = /^([A-Za-z_]\w*=(.*:)?~(?!\/)|~(?!\/|$))/.test(source);
  const mayBecomeGlob = parts.some(isMatched) || (isTilde && GLOB.test(source));
  const computed: ShellWord = { value: word.value, source, isLiteral: false, isGlob: false, isQuoted, mayBecomeGlob };
  if (parts.length === 1 && parts[0]?.type === 'ProcessSubstitution') return [{ ...computed, isProcess: true }];
  if (isTilde) return [computed];
  if (parts.length === 0) return [{ ...computed, isLiteral: true }];
  let texts: Piece[] = [{ value: '', isGlob: false }];
  for (const part of parts) {
    const pieces = piecesOf(part, values);
    if (pieces === undefined || texts.length * pieces.length > ALTERNATIVES_MAX) return [computed];
    texts = texts.flatMap((head) =>
      pieces.map(({ value, isGlob }) => ({ value: head.value + value, isGlob: head.isGlob || isGlob })),
    );
  }
  const hasBraces = parts.some(({ type }) => type === 'BraceExpansion');
  const isBare = parts.every(({ type }) => ['Literal', 'BraceExpansion'].includes(type));
  return texts.flatMap(({ value, isGlob }) => {
    // Bash drops an empty word without quotes.
    if (value === '' && hasBraces && isBare) return [];
    const spelled = hasBraces ? value : source;
    if (spelled.startsWith('~') && !/^~(\/|$)/.test(spelled)) return { ...computed, mayBecomeGlob: GLOB.test(spelled) };
    return { value, source: spelled, isLiteral: !isGlob, isGlob, isQuoted };
  });
}

/** These expand to numbers or to option letters. */
const NUMBERS = /^\$([?#$!-]|\{#\w+\})$|^\$\(\s*(seq( -?\d+)+|wc -[lcmw]( <? ?[\w./-]+)?|nproc|date \+%[\w%-]+)\s*\)$/;

/** Bash splits the value of an unquoted part and matches it against file names. */
function isMatched({ type, text }: WordPart): boolean {
  if (/^(Literal|SingleQuoted|AnsiCQuoted|DoubleQuoted|LocaleString|ProcessSubstitution|Arithmetic\w+)$/.test(type))
    return false;
  return type !== 'BraceExpansion' || /[*?[$`]/.test(text) ? !NUMBERS.test(text) : false;
}

/** The possible texts of a part; undefined if they are unknown. */
function piecesOf(part: WordPart, values: KnownValues): Piece[] | undefined {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
      return [{ value: part.value, isGlob: false }];
    case 'AnsiCQuoted':
      // The parser joins the lines of this text; bash does not.
      return /\\\r?\n/.test(part.text) ? undefined : [{ value: part.value, isGlob: false }];
    case 'Glob':
      return [{ value: part.text, isGlob: true }];
    case 'DoubleQuoted': {
      let value = '';
      for (const inner of part.parts) {
        const text = inner.type === 'Literal' ? inner.value : knownText(inner, values);
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
      const value = knownText(part, values);
      return value !== undefined && UNSPLIT.test(value) ? [{ value, isGlob: false }] : undefined;
    }
    default:
      return undefined;
  }
}

/** The value of `$PWD`, `${HOME}`, `$(pwd)` and similar forms. */
function knownText({ text }: DoubleQuotedChild | WordPart, values: KnownValues): string | undefined {
  const name = /^(?:\$(PWD|HOME)|\$\{(PWD|HOME)\})$/.exec(text);
  if (name) return values[(name[1] ?? name[2]) as keyof KnownValues];
  return /^(\$\(\s*pwd\s*\)|`\s*pwd\s*`)$/.test(text) ? values.PWD : undefined;
}

/** The texts of a plain brace form, including nested ones; undefined if bash may read it differently. */
function bracesOf(text: string): string[] | undefined {
  const body = text.slice(1, -1);
  const sequence = /^(-?\d{1,6})\.\.(-?\d{1,6})$/.exec(body);
  if (sequence) return numbersBetween(sequence[1] ?? '', sequence[2] ?? '');
  const choices = splitAtCommas(body);
  if (choices === undefined || choices.length < 2) return undefined;
  const expandedChoices: string[] = [];
  for (const choice of choices) {
    const texts = withNested(choice);
    if (texts === undefined) return undefined;
    expandedChoices.push(...texts);
    if (expandedChoices.length > ALTERNATIVES_MAX) return undefined;
  }
  return expandedChoices;
}

function numbersBetween(from: string, to: string): string[] | undefined {
  const [first, last] = [Number(from), Number(to)];
  // A leading zero makes bash pad all numbers to the same length.
  if (/^-?0\d/.test(from) || /^-?0\d/.test(to) || Math.abs(last - first) >= ALTERNATIVES_MAX) return undefined;
  const step = first <= last ? 1 : -1;
  return Array.from({ length: Math.abs(last - first) + 1 }, (_, at) => String(first + at * step));
}

/** Returns undefined if the braces are not balanced. */
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

/** A choice that may contain one nested brace form. */
function withNested(choice: string): string[] | undefined {
  const open = choice.indexOf('{');
  if (open === -1) return choice.includes('}') ? undefined : [choice];
  const close = choice.lastIndexOf('}');
  const [head, inner, tail] = [choice.slice(0, open), choice.slice(open, close + 1), choice.slice(close + 1)];
  return bracesOf(inner)?.map((text) => head + text + tail);
}
