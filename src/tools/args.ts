/**
 * The arguments of a call. Rule: parsed once, own properties only, bounded and frozen, so that log, check and tool see
 * the same value; what does not parse to an object is kept as text and never handed to a tool.
 */
import type { Json, ToolCall } from '../../machines/index.ts';
import { bytesOf, isShared, parseJson } from '../json.ts';

/** Bytes of unreadable arguments that are kept. */
const TEXT_BYTES = 65_536;
/** Longer arguments are not looked at. */
export const ARGS_LONGEST = 4 * 1_048_576;
const LAST_CHARACTER = 4;
const NAME_LONGEST = 256;
const SHOWN = 200;

const encoder = new TextEncoder();
const room = new Uint8Array(TEXT_BYTES);

const isRecord = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A model's call with its arguments parsed once; an empty text is no arguments. */
export function parsedCall(callId: string, name: string, argsText: string, extra?: Json): ToolCall {
  const base = { callId, name: name.slice(0, NAME_LONGEST) };
  const parsed =
    argsText.length > ARGS_LONGEST ? undefined : parseJson(argsText.trim() === '' ? '{}' : argsText, isShared);
  const args = parsed?.kind === 'parsed' && isRecord(parsed.value) ? parsed.value : null;
  const kept = args ? undefined : argsText.slice(0, encoder.encodeInto(argsText, room).read);
  const call: ToolCall = kept === undefined ? { ...base, args } : { ...base, args, argsText: kept };
  return extra === undefined ? call : { ...call, extra };
}

/** Why arguments cannot be given to a tool, in words for the model; nothing where they can. */
export function unreadable({ name, args, argsText }: ToolCall): string | undefined {
  if (argsText === undefined) {
    return isRecord(args)
      ? undefined
      : `The arguments of ${name} must be a JSON object, not ${JSON.stringify(args)?.slice(0, SHOWN)}`;
  }
  const shown = JSON.stringify(argsText.slice(0, SHOWN));
  // What was cut off is no fault of the model's.
  const parsed = bytesOf(argsText) > TEXT_BYTES - LAST_CHARACTER ? undefined : parseJson(argsText);
  const why = parsed?.kind === 'refused' ? ` (${parsed.why})` : '';
  return `The arguments of ${name} are no JSON object${why}: ${shown}`;
}

/**
 * A frozen copy of what a schema made of the arguments: objects and lists own property by own property; anything of a
 * class (a Date, a handle the schema looked up) is the schema's own and stays as it is.
 */
export function ownArgs(value: unknown, copies = new Map<object, object>()): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const known = copies.get(value);
  if (known) return known;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    copies.set(value, list);
    for (const item of value) list.push(ownArgs(item, copies));
    return Object.freeze(list);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return value;
  const copy: { [key: string]: unknown } = {};
  copies.set(value, copy);
  for (const [key, child] of Object.entries(value)) if (!isShared(key)) copy[key] = ownArgs(child, copies);
  return Object.freeze(copy);
}
