/**
 * The entries of a log as JSON texts. Invariant: an entry that could not be read back is not written, and a text that is
 * not an entry is not read.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { CorruptLogError, RunchartError } from '../errors.ts';

/** A few thousand levels overflow the stack of other readers. */
export const MAX_DEPTH = 512;

/** Describes a fault in the fields that every entry has. Used for writing and reading. */
export function envelopeFault(at: unknown, conversationId: unknown, runId: unknown, type: unknown): string | null {
  if (!Number.isFinite(at)) return `its time is ${display(at)}, expected a finite number`;
  if (typeof conversationId !== 'string') return 'its conversationId is not a text';
  if (runId !== null && typeof runId !== 'string') return 'its runId is neither a text nor null';
  return typeof type === 'string' ? null : `its type is ${display(type)}, expected a text`;
}

/** A level has at least two characters, so short texts need no check. */
export function isTooDeep(value: object, length: number): boolean {
  return length > 2 * MAX_DEPTH && isDeeper(value, MAX_DEPTH);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/** Throws RunchartError `store` for an entry that could not be read back. */
export function refuseUnreadable(entry: LogEntry): void {
  const fault = envelopeFault(entry.at, entry.conversationId, entry.runId, entry.type);
  if (fault !== null) throw new RunchartError('store', `${nameOf(entry)} cannot be stored: ${fault}`);
}

/** Returns the JSON of an entry, or of a part of it. Throws RunchartError `store`. */
export function jsonOf(entry: LogEntry, value: object = entry): string {
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new RunchartError('store', `${nameOf(entry)} is not JSON: ${String(cause)}`, { cause });
  }
  if (!isTooDeep(entry, text.length)) return text;
  throw new RunchartError('store', `${nameOf(entry)} is nested deeper than ${MAX_DEPTH} levels`);
}

/** An entry that is to be stored, as it was at the call. */
export interface WrittenEntry {
  readonly seq: number;
  readonly text: string;
  /** Does not change any more. */
  readonly entry: LogEntry;
}

/** A frozen entry counts as deeply frozen, like the library's own entries. Throws RunchartError `store`. */
export function writtenEntry(entry: LogEntry): WrittenEntry {
  refuseUnreadable(entry);
  const text = jsonOf(entry);
  return { seq: entry.seq, text, entry: Object.isFrozen(entry) ? entry : JSON.parse(text) };
}

const nameOf = ({ seq, type }: LogEntry): string => `entry ${seq} (${type})`;

/** Returns the entry of a text. Throws CorruptLogError `corrupt`, or `gap` for an entry of another seq. */
export function entryIn(text: unknown, seq: number, id: string): LogEntry {
  const refuse = (code: string, why: string): never => {
    throw new CorruptLogError(code, `entry ${seq} of the log of conversation "${id}" cannot be used: ${why}`, seq + 1);
  };
  const entry = (typeof text === 'string' ? parsed(text) : undefined) as Partial<LogEntry> | undefined;
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    return refuse('corrupt', 'it is no JSON object');
  const fault = envelopeFault(entry.at, entry.conversationId, entry.runId, entry.type);
  if (fault !== null) return refuse('corrupt', fault);
  if (entry.seq !== seq) return refuse('gap', `it holds entry ${display(entry.seq)}`);
  return entry as LogEntry;
}

/** Returns undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MAX_SHOWN = 80;

/** Returns a short form for messages. */
export function display(value: unknown): string {
  if (value === undefined) return 'nothing';
  // NaN and Infinity have no JSON.
  if (typeof value !== 'string' && typeof value !== 'object') return String(value).slice(0, MAX_SHOWN);
  try {
    return JSON.stringify(value).slice(0, MAX_SHOWN);
  } catch {
    return 'an object that is no JSON';
  }
}
