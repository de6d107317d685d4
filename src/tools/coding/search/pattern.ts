/**
 * Translates the patterns of a model to RE2 syntax. Rule: this syntax has no backtracking, so every pattern takes time
 * linear in the text. Patterns are only translated here, never run. `picomatch` is not used: its expressions contain
 * lookaheads, which RE2 lacks.
 */
import { type Refusal, refused } from '../workspace.ts';

export interface Pattern {
  kind: 'pattern';
  source: string;
  /** The search looks for texts that do not match. */
  inverted?: true;
}

export const EXPRESSION_CHARACTERS_MAX = 2_000;
export const GLOB_CHARACTERS_MAX = 400;

/** An expression as the model wrote it. The engine checks its syntax. */
export const expression = (source: string): Pattern => ({ kind: 'pattern', source });

/** Translates a glob for paths with `/` between their parts. */
export function globPattern(text: string): Pattern | Refusal {
  const inverted = text.startsWith('!') && text[1] !== '(';
  const glob = (inverted ? text.slice(1) : text).replace(/^(?:\.\/)+/, '');
  if (glob.startsWith('/')) return refused('invalid_arguments', `the glob ${text} must be relative to path`);
  if (glob.split('/').includes('..')) {
    return refused('outside_workspace', `the glob ${text} leads upwards; globs match what is below path only`);
  }
  const { source, fault } = new GlobReader(glob).read();
  if (fault !== undefined) return refused('invalid_arguments', `the glob ${text} is not valid: ${fault}`);
  // Names may contain line breaks, and a wildcard matches them too.
  const pattern: Pattern = { kind: 'pattern', source: `(?s)\\A(?:${source})\\z` };
  return inverted ? { ...pattern, inverted } : pattern;
}

const literal = (character: string): string => character.replace(/[\\.+*?()|[\]{}^$]/u, '\\$&');

/** An open brace or group: its position in the output, and the character that closes it. */
interface Open {
  closer: '}' | ')';
  at: number;
  /** The repetition sign after a group. */
  times: string;
  /** The brace or group has more than one branch. */
  split: boolean;
}

/** Reads a glob once from left to right. */
class GlobReader {
  readonly #glob: string;
  readonly #written: string[] = [];
  readonly #open: Open[] = [];
  #at = 0;
  #fault: string | undefined;

  constructor(glob: string) {
    this.#glob = glob;
  }

  read(): { source: string; fault: string | undefined } {
    while (this.#at < this.#glob.length && this.#fault === undefined) this.#next();
    const unclosed = this.#open.at(-1);
    if (unclosed) this.#fault ??= `it lacks a ${unclosed.closer}`;
    return { source: this.#written.join(''), fault: this.#fault };
  }

  /** Consumes a match of the form at this position; returns undefined if there is none. */
  #take(form: RegExp): RegExpExecArray | undefined {
    const match = form.exec(this.#glob.slice(this.#at)) ?? undefined;
    this.#at += match?.[0].length ?? 0;
    return match;
  }

  #next(): void {
    const group = this.#take(/^([@?*+!])\(/);
    if (group) return this.#group(group[1] ?? '');
    const isPartBegun = this.#at === 0 || /[/{,(|]/.test(this.#glob[this.#at - 1] ?? '');
    if (isPartBegun && this.#take(/^\*\*(?:\/\*\*)*\//)) return this.#write('(?:[^/]+/)*');
    if (isPartBegun && this.#take(/^\*\*(?=$|[},)|])/)) return this.#write('.*');
    if (this.#take(/^\*+/)) return this.#write('[^/]*');
    if (this.#take(/^\?/)) return this.#write('[^/]');
    const range = this.#take(/^\{([a-z0-9])\.\.([a-z0-9])\}/i);
    if (range) return this.#write(`[${[range[1], range[2]].sort().join('-')}]`);
    if (this.#take(/^\[/)) return this.#set();
    if (this.#take(/^\\/)) return this.#escaped();
    const [character = ''] = this.#take(/^./su) ?? [];
    const open = this.#open.at(-1);
    if (character === '{') return this.#begin('}', '');
    if (character === open?.closer) return this.#end(open);
    if (open && character === (open.closer === '}' ? ',' : '|')) {
      open.split = true;
      return this.#write('|');
    }
    this.#write(literal(character));
  }

  #write(source: string): void {
    this.#written.push(source);
  }

  #group(sign: string): void {
    if (sign === '!') this.#fault = '!( … ) is not supported; begin the whole glob with ! for what does not match it';
    this.#begin(')', sign === '@' ? '' : sign);
  }

  #begin(closer: Open['closer'], times: string): void {
    this.#open.push({ closer, at: this.#written.length, times, split: false });
    this.#write('(?:');
  }

  #end({ closer, at, times, split }: Open): void {
    this.#open.pop();
    // Braces around a single text are literal.
    const isText = closer === '}' && !split;
    if (isText) this.#written[at] = '\\{';
    this.#write(isText ? '\\}' : `)${times}`);
  }

  #set(): void {
    const set = this.#take(/^([!^]?)((?:\]|)(?:\\.|\[:[a-z]+:\]|[^\]\\])*)\]/s);
    if (!set) {
      this.#fault = 'it lacks a ]';
      return;
    }
    const [, not = '', members = ''] = set;
    const safe = members.replace(/^\]/, '\\]').replace(/\[(?!:)|\^|&&/g, (special) => `\\${special}`);
    this.#write(`[${not && '^/'}${safe.replace(/\\([a-z0-9])/gi, '$1')}]`);
  }

  #escaped(): void {
    const [character] = this.#take(/^./su) ?? [];
    if (character === undefined) this.#fault = 'nothing follows its last backslash';
    else this.#write(literal(character));
  }
}
