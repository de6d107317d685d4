/**
 * JSON from outside. Invariant: JSON is parsed once, limited in depth, and frozen, with own properties only
 * (`__proto__` is dropped). A value to store becomes JSON completely or is refused.
 */
import type { Json } from '../machines/internal.ts';
import { thrownMessage } from './errors.ts';
import { isLiteral } from './validation.ts';

export const DEPTH_MAX = 64;

const encoder = /* @__PURE__ */ new TextEncoder();
export const bytesOf = (text: string): number => encoder.encode(text).length;

/**
 * Returns how deep brackets nest in a JSON text, without strings, and whether a bracket or string is open at its end.
 */
function nesting(text: string): { deepest: number; open: boolean } {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 34) {
      for (i++; i < text.length && text.charCodeAt(i) !== 34; i++) if (text.charCodeAt(i) === 92) i++;
      // A string that is open counts like a bracket.
      if (i >= text.length) depth += 1;
    } else if (code === 123 || code === 91) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (code === 125 || code === 93) depth -= 1;
  }
  return { deepest, open: depth > 0 };
}

/** Throws for NaN and Infinity, and turns -0 into 0, because JSON text would change these numbers. */
export function jsonNumber(value: number): number {
  if (!Number.isFinite(value)) throw new RangeError(`the number ${value} is not JSON`);
  return value === 0 ? 0 : value;
}

type Dropped = (key: string) => boolean;
const isPrototype: Dropped = (key) => key === '__proto__';
/**
 * Arguments never contain these keys, because code that follows names through objects would reach shared prototypes.
 */
export const isShared: Dropped = (key) => isPrototype(key) || key === 'constructor' || key === 'prototype';

/** A frozen copy with own properties only. */
function ownCopy(value: Json, dropped: Dropped): Json {
  if (typeof value === 'number') return jsonNumber(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((item) => ownCopy(item, dropped))) as Json[];
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) if (!dropped(key)) copy[key] = ownCopy(value[key] as Json, dropped);
  return Object.freeze(copy);
}
/** A frozen copy of arguments from a person or a plugin. */
export const ownArgsJson = (args: Json): Json => ownCopy(args, isShared);

export type Parsed = { kind: 'parsed'; value: Json } | { kind: 'refused'; why: string };

/** Explains a refused text in its own words, because logs keep the message and those of engines differ between versions. */
export function parseJson(text: string, dropped: Dropped = isPrototype): Parsed {
  const { deepest, open } = nesting(text);
  if (deepest > DEPTH_MAX) return { kind: 'refused', why: `nested deeper than ${DEPTH_MAX}` };
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return { kind: 'refused', why: open ? 'it ends before it is closed' : 'it is not valid JSON' };
  }
  try {
    return { kind: 'parsed', value: ownCopy(value, dropped) };
  } catch (error) {
    return { kind: 'refused', why: thrownMessage(error) };
  }
}

/** Classes whose JSON text is always `{}`. */
const OPAQUE = [ArrayBuffer, DataView, Promise, WeakMap, WeakSet, WeakRef] as const;
const BOXES = [String, Number, Boolean] as const;
const isBinaryList = (value: object): value is Uint8Array => ArrayBuffer.isView(value) && !(value instanceof DataView);

function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} is not JSON`);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (value instanceof Map || value instanceof Set || isBinaryList(value)) return [...value];
  if (value instanceof Error) return { ...value, name: value.name, message: value.message };
  if (value instanceof RegExp) return String(value);
  for (const kind of OPAQUE) if (value instanceof kind) throw new TypeError(`the content of ${kind.name} is not JSON`);
  return value;
}

/** An instance without `toJSON` is refused, because JSON makes `{}` of most of them. */
function literal(key: string, original: unknown): unknown {
  const value = plain(key, original);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject || isLiteral(value) || BOXES.some((box) => value instanceof box)) return value;
  throw new TypeError(`an object of the class ${value.constructor?.name} is not JSON`);
}

/** Returns a JSON copy of any value. Refuses cycles, BigInt, functions and values whose getters throw. */
export function toJson(value: unknown, instances: 'taken' | 'refused' = 'taken'): Parsed {
  try {
    const text = JSON.stringify(value, instances === 'taken' ? plain : literal);
    return text === undefined ? { kind: 'parsed', value: null } : parseJson(text);
  } catch (error) {
    return { kind: 'refused', why: thrownMessage(error) };
  }
}

type Spend = (bytes: number) => void;

function exactObject(value: object, depth: number, spend: Spend): Json {
  if (!isLiteral(value)) throw new TypeError('an object of a class is not JSON');
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new TypeError('the key __proto__ is not taken');
    const child = (value as { [key: string]: unknown })[key];
    if (child === undefined) continue;
    spend(key.length);
    copy[key] = exactValue(child, depth + 1, spend);
  }
  return Object.freeze(copy);
}

function exactValue(value: unknown, depth: number, spend: Spend): Json {
  spend(1);
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return jsonNumber(value);
  if (typeof value === 'string') {
    spend(value.length);
    return value;
  }
  if (typeof value !== 'object') throw new TypeError(`a value of type ${typeof value} is not JSON`);
  if (depth >= DEPTH_MAX) throw new RangeError(`nested deeper than ${DEPTH_MAX}`);
  if (!Array.isArray(value)) return exactObject(value, depth, spend);
  const copy: Json[] = [];
  for (let i = 0; i < value.length; i++) copy.push(exactValue(value[i], depth + 1, spend));
  return Object.freeze(copy) as Json[];
}

/**
 * Returns a frozen copy of a JSON value of at most `bytesMax`. Refuses everything that JSON would change or drop,
 * except undefined fields.
 */
export function exactJson(value: unknown, bytesMax: number): Parsed {
  const tooLong = `longer than ${bytesMax} bytes`;
  let spent = 0;
  try {
    const copy = exactValue(value, 0, (bytes) => {
      spent += bytes;
      if (spent > bytesMax) throw new RangeError(tooLong);
    });
    if (bytesOf(JSON.stringify(copy)) > bytesMax) return { kind: 'refused', why: tooLong };
    return { kind: 'parsed', value: copy };
  } catch (error) {
    return { kind: 'refused', why: thrownMessage(error) };
  }
}
