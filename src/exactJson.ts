/**
 * Values that a host hands over as JSON: decisions and settlements. Rule: they are JSON already or they are refused.
 * Nothing is converted, since a person's answer must mean in the log what it meant to the person.
 */
import type { Json } from '../machines/internal.ts';
import { bytesOf, DEPTH_MAX, jsonNumber, type Parsed } from './json.ts';
import { thrownMessage } from './thrown.ts';

type Spend = (bytes: number) => void;

/** Objects of another realm are plain too: their prototype is a root. */
function isPlain(value: object): value is { [key: string]: unknown } {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function exactObject(value: object, depth: number, spend: Spend): Json {
  if (!isPlain(value)) throw new TypeError('an object of a class is not JSON');
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new TypeError('the key __proto__ is not taken');
    const child = value[key];
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
 * A frozen copy of a value that is JSON already, of at most `bytesMax`; refuses everything that JSON would change or
 * leave out, but for fields that are undefined.
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
