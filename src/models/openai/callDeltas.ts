/**
 * Reads the `tool_calls` of one delta of a chat completion. Invariant: fields of a wrong type are ignored. Unknown
 * fields are kept for servers that need them back.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import type { CallDelta } from '../wire/callAssembly.ts';
import { isRecord, plainCopy, type WireRecord } from '../wire/wireJson.ts';

const EXTRA_DEPTH = 32;

/** Reads the `tool_calls` of one delta. `oddly` receives the codes of unreadable data. */
export function readCallDeltas(list: readonly unknown[], oddly: (code: string) => void): readonly CallDelta[] {
  const calls: CallDelta[] = [];
  for (const item of list) {
    if (!isRecord(item)) {
      oddly('call_not_object');
      continue;
    }
    const fn = isRecord(item.function) ? item.function : undefined;
    const extra = extraOf(item, fn);
    if (extra === null) oddly('extra_too_deep');
    calls.push({
      index: indexOf(item.index),
      id: idOf(item.id),
      name: typeof fn?.name === 'string' ? fn.name : '',
      args: argsOf(fn?.arguments),
      extra: extra ?? undefined,
    });
  }
  return calls;
}

const indexOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

function idOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the arguments as text. Some servers send them as an object. */
function argsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  try {
    return JSON.stringify(value);
  } catch {
    // Nested too deep to be written. This is not JSON, so the call fails instead of running with other arguments.
    return '[arguments nested too deep]';
  }
}

const KNOWN = new Set(['index', 'id', 'type', 'function', '__proto__']);
const KNOWN_OF_FUNCTION = new Set(['name', 'arguments', '__proto__']);

/** Returns the unknown fields of a call and of its `function`, or null if they are nested too deep to keep. */
function extraOf(item: WireRecord, fn: WireRecord | undefined): { [key: string]: Json } | null | undefined {
  const outer = unknownFields(item, KNOWN);
  const inner = fn === undefined ? undefined : unknownFields(fn, KNOWN_OF_FUNCTION);
  if (outer === undefined && inner === undefined) return undefined;
  const copy = plainCopy(inner === undefined ? outer : { ...outer, function: inner }, EXTRA_DEPTH);
  return copy === undefined ? null : (copy as { [key: string]: Json });
}

function unknownFields(record: WireRecord, knownKeys: ReadonlySet<string>): WireRecord | undefined {
  let unknown: { [key: string]: unknown } | undefined;
  for (const key of Object.keys(record)) {
    if (knownKeys.has(key) || record[key] === null) continue;
    unknown ??= {};
    unknown[key] = record[key];
  }
  return unknown;
}
