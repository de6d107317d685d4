/**
 * Copies foreign values as frozen JSON. Rule: own keys only, deeply frozen, bounded in depth and size; a value that is
 * not JSON (a function, NaN, a class instance, a cycle) gives undefined as a whole.
 */
import type { Json } from '../../machines/vocabulary.ts';

const DEPTH_MAX = 512;
const VALUES_MAX = 1_000_000;

interface Budget {
  left: number;
}

/** A frozen copy, or undefined where the value is not JSON. A throwing getter or proxy throws. */
export const copyJson = (value: unknown): Json | undefined => copy(value, 0, { left: VALUES_MAX });

/** Does `copyJson` take it? Never throws. */
export function isJson(value: unknown): value is Json {
  try {
    return copyJson(value) !== undefined;
  } catch {
    return false;
  }
}

function copy(value: unknown, depth: number, budget: Budget): Json | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  // A stored log has no negative zero, so a live one must not show it either.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== 'object' || depth >= DEPTH_MAX) return undefined;
  if (Array.isArray(value)) return copyList(value, depth, budget);
  return isPlain(value) ? copyRecord(value as Record<string, unknown>, depth, budget) : undefined;
}

function copyList(list: readonly unknown[], depth: number, budget: Budget): Json[] | undefined {
  const { length } = list;
  budget.left -= length;
  if (budget.left < 0) return undefined;
  const copies = new Array<Json>(length);
  for (let i = 0; i < length; i++) {
    const one = copy(list[i], depth + 1, budget);
    if (one === undefined) return undefined;
    copies[i] = one;
  }
  return freezeList(copies);
}

function copyRecord(record: Record<string, unknown>, depth: number, budget: Budget): Json | undefined {
  const copies: { [key: string]: Json } = {};
  for (const key of Object.keys(record)) {
    // Data under this key would become the prototype of whatever it is assigned to later.
    if (key === '__proto__') continue;
    if (--budget.left < 0) return undefined;
    const one = copy(record[key], depth + 1, budget);
    if (one === undefined) return undefined;
    copies[key] = one;
  }
  return Object.freeze(copies);
}

/** A record of any realm: its prototype is none, or one that has none. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

const EMPTY: never[] = [];
Object.freeze(EMPTY);

/** Frozen in fact, while the public types say a plain list. All empty lists are one. */
export function freezeList<T>(list: T[]): T[] {
  if (list.length === 0) return EMPTY;
  Object.freeze(list);
  return list;
}
