/**
 * The format of a log's lines, for writing and reading. The first line is a header with format, version and
 * conversation; every other line is one entry that begins with its seq. A run begins with a header of its own, which
 * has its id and start time; its entries omit both. Its first entry has no time, so that a lost header is noticed.
 * Invariant: reading never throws, and an entry that could not be read back is not written.
 */
import { isUtf8 } from 'node:buffer';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import { display, envelopeFault, isTooDeep, jsonOf, MAX_DEPTH, parsed, refuseUnreadable } from '../entryJson.ts';
import { decodeFields, encodeFields, type StoredRecord } from './entryEncoding.ts';
import { ignoredBefore, isBlank, isBraced, otherEncoding } from './lineBytes.ts';

export const FORMAT = 'runchart-log';
/** A file of another version is refused. */
export const VERSION = 1;
/** The beginning of every header. */
export const HEADER_PREFIX = `{"format":"${FORMAT}","version":`;
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Positions of a damaged line that are tried for a complete record. */
const MAX_SPLICES = 8;

/** The fields of the header above a line. */
export interface LineFormat {
  conversationId: string;
  /** The run of the lines that name none. */
  runId: string | null;
  /** The time to which the time of each line is added. */
  at: number;
  /** The header of a run without a line so far. */
  begins?: true;
}

/** Returns the format after the first line. */
export function afterFirstLine(format: LineFormat): LineFormat {
  if (!format.begins) return format;
  const { begins: _, ...rest } = format;
  return rest;
}

export type Judged =
  /** `zeros`: the number of zero bytes, and white space among them, before the record. `spliced`: it follows a torn record. */
  | { kind: 'entry'; entry: LogEntry; zeros: number; spliced: boolean }
  /** Only white space and zero bytes. */
  | { kind: 'blank' }
  /** The header of a run. */
  | { kind: 'header'; format: LineFormat }
  /** The header of its run is missing. `seq` is that of the record, NaN without one. */
  | { kind: 'gap'; why: string; seq: number }
  | { kind: 'encoding' | 'not_json' | 'corrupt' | 'version'; why: string };

export type JudgedHeader =
  | { kind: 'header'; format: LineFormat }
  | { kind: 'blank' }
  | { kind: 'encoding' | 'not_json' | 'no_header' | 'version'; why: string };

/** `isFirst`: the first line of the file. It names a run only if there is one. */
export function headerLine({ conversationId, runId, at }: LineFormat, isFirst: boolean): string {
  const run = isFirst && runId === null ? {} : { runId, at };
  return `${JSON.stringify({ format: FORMAT, version: VERSION, conversationId, ...run })}\n`;
}

/** The first key of every record. */
export const RECORD_KEY = '"seq"';

/** Returns the beginning of the record with this seq. */
function recordPrefix(seq: number): string {
  return `{${RECORD_KEY}:${seq},`;
}

/** A copy of an entry that is to be written. Its line depends on the header above it. */
export interface Pending {
  readonly seq: number;
  readonly at: number;
  readonly conversationId: string;
  readonly runId: string | null;
  /** The other fields as JSON, without the opening brace. */
  readonly fields: string;
}

/** Throws RunchartError `store` for an entry that could not be read back. */
export function pendingOf(entry: LogEntry, headerId: string): Pending {
  const { seq, at, conversationId, runId, ...rest } = entry;
  refuseUnreadable(entry);
  const fields = jsonOf(entry, encodeFields(rest, conversationId)).slice(1);
  const pending: Pending = { seq, at, conversationId, runId, fields };
  const longest = { conversationId: headerId, runId: null, at: 0 };
  // UTF-8 has at most three bytes for each UTF-16 unit.
  if (fields.length * 3 < MAX_LINE_BYTES / 2) return pending;
  const { length } = Buffer.from(lineOf(pending, longest));
  if (length <= MAX_LINE_BYTES) return pending;
  throw new RunchartError(
    'store',
    `entry ${seq} (${entry.type}) takes ${length} bytes, at most ${MAX_LINE_BYTES} fit: store it as a blob`,
  );
}

/** Returns the header that the entry needs: the current one, or a new one for its run. */
export function formatFor({ at, runId }: Pending, above: LineFormat): LineFormat {
  const isExact = above.at + (at - above.at) === at;
  if ((runId === null || runId === above.runId) && isExact) return above;
  // Entries without a run, and times that are not whole numbers, count from 0.
  const from = runId === null || !Number.isSafeInteger(at) ? 0 : at;
  return { conversationId: above.conversationId, ...runFrom(runId, from) };
}

export function lineOf({ seq, at, conversationId, runId, fields }: Pending, format: LineFormat): string {
  const time = format.begins && at === format.at ? '' : `"at":${at - format.at},`;
  const foreign = conversationId === format.conversationId ? '' : `"conversationId":${JSON.stringify(conversationId)},`;
  const run = runId === format.runId ? '' : `"runId":${JSON.stringify(runId)},`;
  return `{${RECORD_KEY}:${seq},${time}${foreign}${run}${fields}\n`;
}

/** `id` is used if the header names no conversation. */
export function judgeHeader(bytes: Buffer, id: string): JudgedHeader {
  if (isBlank(bytes)) return { kind: 'blank' };
  if (!isUtf8(bytes)) return notUtf8(bytes);
  const header = isBraced(bytes) ? parsed(bytes.toString()) : undefined;
  if (header === undefined) return notJson(bytes);
  if (!isRecord(header) || own(header, 'format') !== FORMAT) {
    return { kind: 'no_header', why: `expected the first line to be a header of format "${FORMAT}"` };
  }
  const version = own(header, 'version');
  if (version !== VERSION) return unreadable(version);
  const named = own(header, 'conversationId');
  return {
    kind: 'header',
    format: { conversationId: typeof named === 'string' ? named : id, ...runIn(header) },
  };
}

/** Returns the run and the start time of a header. */
function runIn(header: StoredRecord): Omit<LineFormat, 'conversationId'> {
  const runId = own(header, 'runId');
  const at = own(header, 'at');
  return runFrom(typeof runId === 'string' ? runId : null, Number.isFinite(at) ? (at as number) : 0);
}

const runFrom = (runId: string | null, at: number) => ({ runId, at, ...(runId !== null && { begins: true as const }) });

function unreadable(version: unknown): { kind: 'version'; why: string } {
  const newer = typeof version === 'number' && version > VERSION;
  const remedy = newer ? 'use a newer runchart' : 'no runchart wrote that, restore the file';
  return { kind: 'version', why: `expected version ${VERSION}, got ${display(version)}: ${remedy}` };
}

function notUtf8(bytes: Buffer): { kind: 'encoding'; why: string } {
  return { kind: 'encoding', why: otherEncoding(bytes) ?? 'it is not valid UTF-8' };
}

function notJson(bytes: Buffer): { kind: 'not_json'; why: string } {
  return { kind: 'not_json', why: otherEncoding(bytes) ?? 'it is no JSON object' };
}

/** `expected`: the next seq. `whole`: a newline ends the line, so no crash cut it. */
export function judgeLine(bytes: Buffer, format: LineFormat, expected: number, whole: boolean): Judged {
  const before = ignoredBefore(bytes);
  if (before === bytes.length) return { kind: 'blank' };
  const rest = before === 0 ? bytes : bytes.subarray(before);
  if (!isUtf8(rest)) return notUtf8(rest);
  if (!isBraced(rest)) return notJson(rest);
  const zeros = before > 0 && bytes.subarray(0, before).includes(0) ? before : 0;
  const text = rest.toString();
  const judged = judgeText(text, format, zeros);
  if (judged) return judged;
  const spliced = whole ? spliceOf(text, format, expected) : null;
  if (spliced) return { kind: 'entry', entry: spliced, zeros, spliced: true };
  return notJson(rest);
}

/** Judges a line that is valid UTF-8. Returns undefined if it is not JSON. `zeros`: the number of zero bytes before it. */
export function judgeText(text: string, format: LineFormat, zeros = 0): Judged | undefined {
  const value = parsed(text);
  if (value === undefined) return undefined;
  if (isRecord(value)) {
    if (!Object.hasOwn(value, 'seq') && own(value, 'format') === FORMAT) {
      const version = own(value, 'version');
      if (version !== VERSION) return unreadable(version);
      if (!Object.hasOwn(value, 'runId')) return { kind: 'corrupt', why: 'it is a second header' };
      return { kind: 'header', format: { conversationId: format.conversationId, ...runIn(value) } };
    }
    if (lacksHeader(value, format)) {
      return { kind: 'gap', why: 'the header of its run is missing', seq: Number(own(value, 'seq')) };
    }
  }
  const entry = restored(value, format, text.length);
  return typeof entry === 'string' ? { kind: 'corrupt', why: entry } : { kind: 'entry', entry, zeros, spliced: false };
}

/** Returns true for the first entry of a run whose header is missing. */
const lacksHeader = (record: StoredRecord, { begins }: LineFormat): boolean =>
  !begins && Object.hasOwn(record, 'type') && !Object.hasOwn(record, 'at');

/** After these characters a torn record may continue with a nested object. */
const BEFORE_VALUE = new Set([':', ',', '[']);

/**
 * Returns the complete record after a torn one on the same line. Positions where the torn record could contain an
 * object are skipped, because arguments may look like a record.
 */
function spliceOf(text: string, format: LineFormat, expected: number): LogEntry | null {
  const start = recordPrefix(expected);
  let at = 0;
  for (let tries = 0; tries < MAX_SPLICES; tries += 1) {
    at = text.indexOf(start, at + 1);
    if (at === -1) return null;
    if (BEFORE_VALUE.has(text.slice(0, at).trimEnd().slice(-1))) continue;
    const value = parsed(text.slice(at));
    const entry = value === undefined ? 'not JSON' : restored(value, format, text.length);
    if (typeof entry !== 'string') return entry;
  }
  return null;
}

/** Returns the entry, or the reason why the record is invalid. */
function restored(record: unknown, format: LineFormat, length: number): LogEntry | string {
  if (!isRecord(record)) return 'it is not an object';
  if (isTooDeep(record, length)) return `it is nested deeper than ${MAX_DEPTH} levels`;
  const { seq, at: since = format.begins && 0, conversationId = format.conversationId, runId = format.runId } = record;
  const at = typeof since === 'number' ? format.at + since : since;
  if (!Number.isSafeInteger(seq) || (seq as number) < 0) return `its seq is ${display(seq)}, expected a whole number`;
  const odd = envelopeFault(at, conversationId, runId, own(record, 'type'));
  if (odd !== null) return odd;
  // The reader validates the fields of each type.
  const entry: StoredRecord = { seq, at, conversationId, runId, ...record };
  entry.at = at;
  decodeFields(entry, conversationId as string);
  return entry as unknown as LogEntry;
}

export function isRecord(value: unknown): value is StoredRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(value: StoredRecord, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}
