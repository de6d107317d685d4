/**
 * The two kinds of patterns a model gives, each as an expression in the syntax of RE2. Rule: that syntax has nothing that
 * backtracks, so every pattern runs in time that is linear in the text; a pattern is only written here, never run.
 * `picomatch` is not used: its expressions have lookaheads, which RE2 lacks.
 */
import { type Refusal, refused } from '../workspace.ts';

export interface Pattern {
  kind: 'pattern';
  source: string;
  /** What does not match is sought. */
  inverted?: true;
}

export const EXPRESSION_CHARACTERS_MAX = 2_000;
export const GLOB_CHARACTERS_MAX = 400;

/** An expression as the model wrote it; whether it is one shows where it is run. */
export const expression = (source: string): Pattern => ({ kind: 'pattern', source });

/** A glob over paths with `/` between their parts. */
export function globPattern(text: string): Pattern | Refusal {
  const inverted = text.startsWith('!') && text[1] !== '(';
  const glob = (inverted ? text.slice(1) : text).replace(/^(?:\.\/)+/, '');
  if (glob.startsWith('/')) return refused('invalid_arguments', `the glob ${text} must be relative to path`);
  if (glob.split('/').includes('..')) {
    return refused('outside_workspace', `the glob ${text} leads upwards; globs match what is below path only`);
  }
  const { source, fault } = new GlobReader(glob).read();
  if (fault !== undefined) return refused('invalid_arguments', `the glob ${text} is not valid: ${fault}`);
  // Names may hold line breaks, and a wildcard matches them too.
  const pattern: Pattern = { kind: 'pattern', source: `(?s)\\A(?:${source})\\z` };
  return inverted ? { ...pattern, inverted } : pattern;
}

const literal = (character: string): string => character.replace(/[\\.+*?()|[\]{}^$]/u, '\\$&');

/** An open brace or group: where it begins in what is written, and what ends it. */
interface Open {
  closer: '}' | ')';
  at: number;
  /** Behind a group: how often it may stand. */
  times: string;
  /** It has more than one branch. */
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

  /** What stands here in the form, taken; undefined where it does not. */
  #take(form: RegExp): RegExpExecArray | undefined {
    const taken = form.exec(this.#glob.slice(this.#at)) ?? undefined;
    this.#at += taken?.[0].length ?? 0;
    return taken;
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
    // Braces around a single text stand for themselves.
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
    const safe = members.replace(/^\]/, '\\]').replace(/\[(?!:)|\^|&&/g, (found) => `\\${found}`);
    this.#write(`[${not && '^/'}${safe.replace(/\\([a-z0-9])/gi, '$1')}]`);
  }

  #escaped(): void {
    const [character] = this.#take(/^./su) ?? [];
    if (character === undefined) this.#fault = 'nothing follows its last backslash';
    else this.#write(literal(character));
  }
}
