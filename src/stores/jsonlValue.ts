/**
 * Values of any shape, as a line or a caller may give them. Rule: own properties only, and none of it throws.
 */
import type { StoredRecord } from './jsonlVersions.ts';

const MAX_SHOWN = 80;

/** Undefined for what is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is StoredRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function own(value: StoredRecord, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** For a message. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  // These have no JSON of their own: NaN, Infinity and what is no value of JSON at all.
  if (typeof value !== 'string' && typeof value !== 'object') return String(value).slice(0, MAX_SHOWN);
  try {
    return JSON.stringify(value).slice(0, MAX_SHOWN);
  } catch {
    return 'an object that is no JSON';
  }
}
