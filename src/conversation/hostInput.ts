/** Reads the fields that a host sends about a call. Invariant: only own JSON fields of bounded length are read. */
import type { Json } from '../../machines/internal.ts';
import { InvalidDecisionError } from '../errors.ts';
import { exactJson } from '../json.ts';

const BYTES_MAX = 1_048_576;
export type Fields = { readonly [key: string]: Json };

export function refuse(expected: string, what = 'a decision'): never {
  throw new InvalidDecisionError(`${what} needs ${expected}; nothing was changed`);
}

/** The fields of an object that is JSON. */
export function fieldsOf(input: unknown, what: string): Fields {
  const json = exactJson(input, BYTES_MAX);
  if (json.kind === 'refused') refuse(`to be JSON of at most ${BYTES_MAX} bytes (${json.why})`, what);
  const { value } = json;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('to be an object', what);
  return value;
}

/** Own fields only: every object inherits `constructor` and others. */
export const field = (fields: Fields, key: string): Json | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

export function textField(fields: Fields, key: string): string | undefined {
  const value = field(fields, key);
  if (value === undefined || typeof value === 'string') return value;
  return refuse(`${key} to be a text`);
}

/** The id of the call. Throws InvalidDecisionError. */
export function readCallId(callId: unknown, what = 'a decision'): string {
  return typeof callId === 'string' && callId !== '' ? callId : refuse('callId, the id of the call', what);
}
