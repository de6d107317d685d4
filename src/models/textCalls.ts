/**
 * Finds tool calls that a model wrote into its text (policy `textToolCalls`). Invariant: formats are tried in the
 * configured order, and only the first one with a match is used. Incomplete calls remain text. Arguments stay as they were
 * written.
 */

import type { RawCall } from './attempt.ts';
import { afterSpace, type FoundObject, objectAt } from './jsonScan.ts';
import type { TextCallFormat } from './model.ts';

const NAME_KEYS = ['name', 'tool', 'function'];
const ARGS_KEYS = ['arguments', 'args', 'parameters'];
const NAME_LONGEST = 256;
const NO_ARGS = '{}';
const FENCE = '```';

const isName = (name: string): boolean => name.length <= NAME_LONGEST && /^[^\s<>"]+$/.test(name);

/** Finds strings in ascending order. A position that was found ahead is not searched again. */
class Ahead {
  readonly #text: string;
  readonly #positions = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the next position of `wanted`, or -1. `from` must not decrease. */
  next(wanted: string, from: number): number {
    const position = this.#positions.get(wanted);
    if (position !== undefined && (position < 0 || position >= from)) return position;
    const at = this.#text.indexOf(wanted, from);
    this.#positions.set(wanted, at);
    return at;
  }
}

/** Returns the text of the first of these fields that exists. */
function fieldOf(text: string, { fields }: FoundObject, keys: readonly string[]): string | undefined {
  const span = fields.get(keys.find((key) => fields.has(key)) ?? '');
  return span && text.slice(...span).trim();
}
const isString = (json: string | undefined): json is string => json?.startsWith('"') === true;

/**
 * Returns the call in an object. `none`: the arguments of a call without any; if it is missing, arguments are
 * required.
 */
function callOf(text: string, object: FoundObject, none?: string): RawCall | undefined {
  const name = fieldOf(text, object, NAME_KEYS);
  const args = fieldOf(text, object, ARGS_KEYS) ?? none;
  if (!isString(name) || args === undefined) return undefined;
  const written = JSON.parse(name) as string;
  // Some models write the arguments as a string of JSON, as in the structured form.
  return isName(written) ? { name: written, args: isString(args) ? (JSON.parse(args) as string) : args } : undefined;
}

/** Returns calls among the outermost objects after `from`, and before `stop` if that is set. */
function objectsIn(text: string, ahead: Ahead, from: number, stop?: string): { calls: RawCall[]; end: number } {
  const calls: RawCall[] = [];
  for (let at = from; ; ) {
    const brace = ahead.next('{', at);
    const end = stop === undefined ? -1 : ahead.next(stop, at);
    if (brace < 0 || (end >= 0 && end < brace)) return { calls, end };
    const object = objectAt(text, brace);
    const call = 'end' in object ? callOf(text, object) : undefined;
    if (call) calls.push(call);
    at = 'end' in object ? object.end : object.broken;
  }
}

const inText = (text: string): RawCall[] => objectsIn(text, new Ahead(text), 0).calls;

/** Searches blocks without a language, or with json. */
function inFences(text: string): RawCall[] {
  const ahead = new Ahead(text);
  const calls: RawCall[] = [];
  let open = ahead.next(FENCE, 0);
  while (open >= 0) {
    let body = open + FENCE.length;
    while (/[\w+-]/.test(text[body] ?? '')) body += 1;
    const language = text.slice(open + FENCE.length, body).toLowerCase();
    const inside = language === '' || language === 'json';
    const block = inside ? objectsIn(text, ahead, body, FENCE) : { calls: [], end: ahead.next(FENCE, body) };
    if (block.end < 0) break;
    calls.push(...block.calls);
    open = ahead.next(FENCE, block.end + FENCE.length);
  }
  return calls;
}

/**
 * Finds calls between two tags: `read` receives the position after the first one, and returns where the second must
 * be.
 */
function inTags(
  text: string,
  [open, close]: readonly [string, string],
  read: (from: number, ahead: Ahead) => { call?: RawCall; end: number },
): RawCall[] {
  const ahead = new Ahead(text);
  const calls: RawCall[] = [];
  for (let at = ahead.next(open, 0); at >= 0; ) {
    const { call, end } = read(at + open.length, ahead);
    if (call && text.startsWith(close, afterSpace(text, end))) calls.push(call);
    at = ahead.next(open, end);
  }
  return calls;
}

const inCallTags = (text: string): RawCall[] =>
  inTags(text, ['<tool_call>', '</tool_call>'], (from) => {
    const start = afterSpace(text, from);
    const object = text[start] === '{' ? objectAt(text, start) : { broken: start };
    if (!('end' in object)) return { end: object.broken };
    const call = callOf(text, object, NO_ARGS);
    return call ? { call, end: object.end } : { end: object.end };
  });

const CLOSE_FUNCTION = '</function>';
const inFunctionTags = (text: string): RawCall[] =>
  inTags(text, ['<function=', CLOSE_FUNCTION], (from, ahead) => {
    const close = ahead.next('>', from);
    if (close < 0 || close - from > NAME_LONGEST) return { end: from };
    const name = text.slice(from, close);
    if (!isName(name)) return { end: from };
    const start = afterSpace(text, close + 1);
    if (text.startsWith(CLOSE_FUNCTION, start)) return { call: { name, args: NO_ARGS }, end: start };
    const object = text[start] === '{' ? objectAt(text, start) : { broken: start };
    if (!('end' in object)) return { end: object.broken };
    return { call: { name, args: text.slice(start, object.end) }, end: object.end };
  });

const FORMATS: { readonly [format in TextCallFormat]: (text: string) => RawCall[] } = {
  tool_call: inCallTags,
  function: inFunctionTags,
  fence: inFences,
  json: inText,
};

/** Returns the calls in these texts, in order, by the first format with a match. */
export function textCalls(texts: readonly string[], formats: readonly TextCallFormat[]): RawCall[] {
  for (const format of formats) {
    const calls = texts.flatMap((text) => FORMATS[format](text));
    if (calls.length > 0) return calls;
  }
  return [];
}
export type TextCalls = typeof textCalls;
