/**
 * Finds JSON objects in text. Invariant: one pass without recursion or backtracking. A broken object is abandoned at
 * the place of its fault, so every text is read in linear time.
 */

/** The position of a value in the text. */
type Span = readonly [from: number, to: number];
export interface FoundObject {
  /** The position after the closing brace. */
  end: number;
  /** The values of its own keys. For a repeated key the last one counts. */
  fields: ReadonlyMap<string, Span>;
}
export interface BrokenObject {
  broken: number;
}

/** One more than arguments may have. */
const DEPTH_MAX = 65;
const isSpace = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9;
/** Numbers, true, false, null. The parser validates them when the object is complete. */
const isAtom = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 97 && code <= 122) || code === 43 || code === 45 || code === 46 || code === 69;

export function afterSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

/** Returns the position after the string that opens at `from`, or the negative position of its fault. */
function afterString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 34) return at + 1;
    if (code === 92) at += 1;
    else if (code < 32) return -at;
  }
  return -text.length;
}

class Scan {
  readonly #text: string;
  /** The expected closing brackets. */
  readonly #open: string[] = [];
  readonly #keys: [Span, Span][] = [];
  #key: Span | undefined;
  #valueFrom = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the object that opens at `from`. */
  read(from: number): FoundObject | BrokenObject {
    let at = this.#opens(from);
    while (at > 0 && this.#open.length > 0) at = this.#step(afterSpace(this.#text, at));
    return at <= 0 ? { broken: Math.max(from + 1, -at) } : (this.#found(from, at) ?? { broken: at });
  }

  /** Returns the position after an opening bracket: its closing bracket, or its first value. */
  #opens(at: number): number {
    const isObject = this.#text[at] === '{';
    if (this.#open.length === DEPTH_MAX) return -at;
    this.#open.push(isObject ? '}' : ']');
    const next = afterSpace(this.#text, at + 1);
    if (this.#text[next] === this.#open.at(-1)) return next;
    return isObject ? this.#keyAt(next) : next;
  }

  /** Reads a key with its colon. */
  #keyAt(at: number): number {
    if (this.#text[at] !== '"') return -at;
    const end = afterString(this.#text, at);
    if (end < 0) return end;
    const colon = afterSpace(this.#text, end);
    if (this.#text[colon] !== ':') return -colon;
    const value = afterSpace(this.#text, colon + 1);
    if (this.#open.length === 1) {
      this.#key = [at, end];
      this.#valueFrom = value;
    }
    return value;
  }

  /** Reads one value, comma or closing bracket. */
  #step(at: number): number {
    const sign = this.#text[at];
    if (sign === '{' || sign === '[') return this.#opens(at);
    if (sign === '"') return afterString(this.#text, at);
    if (sign === ',' || (sign !== undefined && sign === this.#open.at(-1))) return this.#ends(at, sign);
    let end = at;
    while (isAtom(this.#text.charCodeAt(end))) end += 1;
    return end === at ? -at : end;
  }

  #ends(at: number, sign: string): number {
    if (this.#open.length === 1 && this.#key) this.#keys.push([this.#key, [this.#valueFrom, at]]);
    if (sign !== ',') {
      this.#open.pop();
      return at + 1;
    }
    const next = afterSpace(this.#text, at + 1);
    return this.#open.at(-1) === '}' ? this.#keyAt(next) : next;
  }

  /** Commas and values were only counted, so the parser decides whether the object is JSON. */
  #found(from: number, end: number): FoundObject | undefined {
    try {
      JSON.parse(this.#text.slice(from, end));
      const keys = this.#keys.map(([[a, b], span]) => [JSON.parse(this.#text.slice(a, b)) as string, span] as const);
      return { end, fields: new Map(keys) };
    } catch {
      return undefined;
    }
  }
}

/** Returns the object that opens at `from`, or the position of its fault. */
export const objectAt = (text: string, from: number): FoundObject | BrokenObject => new Scan(text).read(from);
