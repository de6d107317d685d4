/**
 * JSON from a server. Invariant: fields are read by name from plain records only. Kept values are limited copies of
 * own properties without `__proto__`.
 */
import type { Json } from '../../../machines/vocabulary.ts';

export interface WireRecord {
  readonly [key: string]: unknown;
}

export const isRecord = (value: unknown): value is WireRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the parsed value, or undefined, which is not a JSON value, if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a copy of parsed JSON, or undefined if it is nested deeper than `depth`. */
export function plainCopy(value: unknown, depth: number): Json | undefined {
  if (value === null || typeof value !== 'object') return value as Json;
  if (depth === 0) return undefined;
  if (Array.isArray(value)) {
    const list: Json[] = [];
    for (const item of value) {
      const copy = plainCopy(item, depth - 1);
      if (copy === undefined) return undefined;
      list.push(copy);
    }
    return list;
  }
  const record: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') continue;
    const copy = plainCopy((value as WireRecord)[key], depth - 1);
    if (copy === undefined) return undefined;
    record[key] = copy;
  }
  return record;
}

/** Returns a count of tokens, or undefined for anything else. */
export const tokenCount = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;

/**
 * Replaces halves of characters in JSON, because some servers refuse a request that contains one. `JSON.stringify` writes a half
 * as an escape, and a whole character as itself.
 */
export const wholeCharacters = (json: string): string =>
  json.includes('\\ud')
    ? json.replace(/\\(?:ud[89a-f][\da-f]{2}|.)/g, (escaped) => (escaped.length > 2 ? '\\ufffd' : escaped))
    : json;
