/**
 * JSON that a server sent. Rule: it is read by name from plain records only, and what is kept of it is a bounded copy
 * of own properties without `__proto__`.
 */
import type { Json } from '../../machines/vocabulary.ts';

export interface WireRecord {
  readonly [key: string]: unknown;
}

export const isRecord = (value: unknown): value is WireRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The parsed value; undefined, which JSON cannot say, where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A copy of parsed JSON; undefined where it is nested deeper than `depth`. */
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
