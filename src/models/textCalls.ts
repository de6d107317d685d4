/**
 * Tool calls that a model wrote into its text (policy `textToolCalls`). Rule: formats are tried in the order given and
 * the first one with a hit is taken alone; what is not whole is text; arguments stay as they were written.
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

/** Finds strings further and further on; what was found ahead is not looked for again. */
class Ahead {
  readonly #text: string;
  readonly #found = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  /** Where `wanted` comes next, or -1. `from` never goes back. */
  next(wanted: string, from: number): number {
    const known = this.#found.get(wanted);
    if (known !== undefined && (known < 0 || known >= from)) return known;
    const at = this.#text.indexOf(wanted, from);
    this.#found.set(wanted, at);
    return at;
  }
}

/** The text of the first of these fields that is there. */
function fieldOf(text: string, { fields }: FoundObject, keys: readonly string[]): string | undefined {
  const span = fields.get(keys.find((key) => fields.has(key)) ?? '');
  return span && text.slice(...span).trim();
}
const isString = (json: string | undefined): json is string => json?.startsWith('"') === true;

/** The call that an object stands for. `none`: its arguments where it has none; without it, it is no call then. */
function callOf(text: string, object: FoundObject, none?: string): RawCall | undefined {
  const name = fieldOf(text, object, NAME_KEYS);
  const args = fieldOf(text, object, ARGS_KEYS) ?? none;
  if (!isString(name) || args === undefined) return undefined;
  const written = JSON.parse(name) as string;
  // Some models write the arguments as a string of JSON, as it stands in the structured form.
  return isName(written) ? { name: written, args: isString(args) ? (JSON.parse(args) as string) : args } : undefined;
}

/** Calls among the outermost objects from `from` on, up to `stop` where that is given. */
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

/** Blocks that say nothing of their language, or json. */
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

/** What stands between two tags: `read` is given the place behind the first, and answers where the second must be. */
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

/** The calls that stand in these texts, in order, by the first format that finds any. */
export function textCalls(texts: readonly string[], formats: readonly TextCallFormat[]): RawCall[] {
  for (const format of formats) {
    const calls = texts.flatMap((text) => FORMATS[format](text));
    if (calls.length > 0) return calls;
  }
  return [];
}
export type TextCalls = typeof textCalls;
