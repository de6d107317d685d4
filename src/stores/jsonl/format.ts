/**
 * The format of a log's lines, both ways. Rule: the first line names the format, its version and the conversation; each
 * further line is one entry, begins with its seq, and leaves out what the header above it says. A later header stands
 * where a run begins, and says its id and the time its lines count from; or where lines of a newer version begin. The
 * first line below the header of a run has no time of its own, so that a header that was lost is missed.
 * Reading judges and never throws; what a reader would refuse is not written.
 */
import { isUtf8 } from 'node:buffer';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import { isBlank, isBraced, otherEncoding, voidBefore } from './bytes.ts';
import { lengthened, type StoredRecord, shortened } from './shortForms.ts';

export const FORMAT = 'runchart-log';
/** A file of another version is refused. */
export const VERSION = 1;
/** What every header begins with. */
export const HEADER_PREFIX = `{"format":"${FORMAT}","version":`;
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** Beyond a few thousand levels other readers overflow their stack; entries stay far below. */
const MAX_DEPTH = 512;
/** How many places of a damaged line are tried for the complete record behind it. */
const MAX_SPLICES = 8;

/** What the header above a line says. */
export interface LineFormat {
  conversationId: string;
  /** The run of the lines behind it that name none. */
  runId: string | null;
  /** What the time of each line is counted from. */
  at: number;
  /** It is a run's, and no line stands below it yet. */
  begins?: true;
}

/** The same, for what stands further down. */
export function belowFirst(format: LineFormat): LineFormat {
  if (!format.begins) return format;
  const { begins: _, ...below } = format;
  return below;
}

export type Judged =
  /** `zeros`: bytes of 0x00, and white space among them, before the record. `spliced`: a torn record stands before it. */
  | { kind: 'entry'; entry: LogEntry; zeros: number; spliced: boolean }
  /** Nothing but white space and zero bytes. */
  | { kind: 'blank' }
  /** The lines after it are those of a run. */
  | { kind: 'header'; format: LineFormat }
  /** `gap`: the header of its run is missing. */
  | { kind: 'encoding' | 'not_json' | 'corrupt' | 'version' | 'gap'; why: string };

export type JudgedHeader =
  | { kind: 'header'; format: LineFormat }
  | { kind: 'blank' }
  | { kind: 'encoding' | 'not_json' | 'no_header' | 'version'; why: string };

/** The first header of a file names a run only if its first entry is part of one. */
export function headerLine({ conversationId, runId, at }: LineFormat, isFirst: boolean): string {
  const run = isFirst && runId === null ? {} : { runId, at };
  return `${JSON.stringify({ format: FORMAT, version: VERSION, conversationId, ...run })}\n`;
}

/** What every record holds, as its first key. */
export const RECORD_KEY = '"seq"';

/** What the record with this seq begins with. */
function recordPrefix(seq: number): string {
  return `{${RECORD_KEY}:${seq},`;
}

/** An entry as it was when it was handed over; its line depends on the header that it will stand under. */
export interface Pending {
  readonly seq: number;
  readonly at: number;
  readonly conversationId: string;
  readonly runId: string | null;
  /** The entry's own fields: JSON behind its opening brace. */
  readonly fields: string;
}

/** Throws RunchartError `store` for an entry no reader would take back. */
export function pendingOf(entry: LogEntry, headerId: string): Pending {
  const { seq, at, conversationId, runId, ...rest } = entry;
  const odd = envelopeFault(at, conversationId, runId, rest.type);
  if (odd !== null) throw new RunchartError('store', `entry ${seq} (${entry.type}) cannot be stored: ${odd}`);
  let fields: string;
  try {
    fields = JSON.stringify(shortened(rest, conversationId)).slice(1);
  } catch (cause) {
    throw new RunchartError('store', `entry ${seq} (${entry.type}) is not JSON: ${String(cause)}`, { cause });
  }
  if (isTooDeep(entry, fields.length)) {
    throw new RunchartError('store', `entry ${seq} (${entry.type}) is nested deeper than ${MAX_DEPTH} levels`);
  }
  const pending: Pending = { seq, at, conversationId, runId, fields };
  const longest = { conversationId: headerId, runId: null, at: 0 };
  // A character takes at most three bytes.
  if (fields.length * 3 < MAX_LINE_BYTES / 2) return pending;
  const { length } = Buffer.from(lineOf(pending, longest));
  if (length <= MAX_LINE_BYTES) return pending;
  throw new RunchartError(
    'store',
    `entry ${seq} (${entry.type}) takes ${length} bytes, at most ${MAX_LINE_BYTES} fit: store it as a blob`,
  );
}

/** The header that must stand above the entry: the one that does, or one that names its run. */
export function formatFor({ at, runId }: Pending, above: LineFormat): LineFormat {
  const isExact = above.at + (at - above.at) === at;
  if ((runId === null || runId === above.runId) && isExact) return above;
  // Outside of every run no header saves anything; a time that is no whole number is counted from 0.
  const from = runId === null || !Number.isSafeInteger(at) ? 0 : at;
  return { conversationId: above.conversationId, ...runFrom(runId, from) };
}

export function lineOf({ seq, at, conversationId, runId, fields }: Pending, format: LineFormat): string {
  const time = format.begins && at === format.at ? '' : `"at":${at - format.at},`;
  const foreign = conversationId === format.conversationId ? '' : `"conversationId":${JSON.stringify(conversationId)},`;
  const run = runId === format.runId ? '' : `"runId":${JSON.stringify(runId)},`;
  return `{${RECORD_KEY}:${seq},${time}${foreign}${run}${fields}\n`;
}

/** `id`: the conversation of a header that names none. */
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

/** The run that a header names, and the time its lines count from. */
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

/** `expected`: the seq that fits here. `whole`: a newline ends the line, so it was not cut by a crash of its writer. */
export function judgeLine(bytes: Buffer, format: LineFormat, expected: number, whole: boolean): Judged {
  const before = voidBefore(bytes);
  if (before === bytes.length) return { kind: 'blank' };
  const rest = before === 0 ? bytes : bytes.subarray(before);
  if (!isUtf8(rest)) return notUtf8(rest);
  if (!isBraced(rest)) return notJson(rest);
  const zeros = bytes.subarray(0, before).includes(0) ? before : 0;
  const text = rest.toString();
  const value = parsed(text);
  if (isRecord(value) && own(value, 'format') === FORMAT && !Object.hasOwn(value, 'seq')) {
    const version = own(value, 'version');
    if (version !== VERSION) return unreadable(version);
    if (!Object.hasOwn(value, 'runId')) return { kind: 'corrupt', why: 'it is a second header' };
    return { kind: 'header', format: { conversationId: format.conversationId, ...runIn(value) } };
  }
  if (isRecord(value) && lacksHeader(value, format)) return { kind: 'gap', why: 'the header of its run is missing' };
  if (value !== undefined) {
    const entry = restored(value, format, text.length);
    return typeof entry === 'string'
      ? { kind: 'corrupt', why: entry }
      : { kind: 'entry', entry, zeros, spliced: false };
  }
  const spliced = whole ? spliceOf(text, format, expected) : null;
  if (spliced) return { kind: 'entry', entry: spliced, zeros, spliced: true };
  return notJson(rest);
}

/** It counts on a header right above it, and there is none. */
const lacksHeader = (record: StoredRecord, { begins }: LineFormat): boolean =>
  !begins && Object.hasOwn(record, 'type') && !Object.hasOwn(record, 'at');

/** Behind these a torn record may go on with an object of its own. */
const BEFORE_VALUE = new Set([':', ',', '[']);

/**
 * The complete record behind a torn one on the same line. Only in a line that is whole, and not where the torn record
 * could go on with an object: arguments that look like a record could be taken for one.
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

/** The full entry, or what is wrong with it. */
function restored(found: unknown, format: LineFormat, length: number): LogEntry | string {
  if (!isRecord(found)) return 'it is not an object';
  if (isTooDeep(found, length)) return `it is nested deeper than ${MAX_DEPTH} levels`;
  const value = asWritten(found, format);
  const { seq, at, conversationId, runId, ...rest } = value;
  if (!Number.isSafeInteger(seq) || (seq as number) < 0) return `its seq is ${display(seq)}, expected a whole number`;
  const odd = envelopeFault(at, conversationId, runId, own(value, 'type'));
  if (odd !== null) return odd;
  // The reader validates the fields of each type.
  return { seq, at, conversationId, runId, ...rest } as unknown as LogEntry;
}

/** The record with what its header says of it, in the long forms. */
function asWritten(record: StoredRecord, format: LineFormat): StoredRecord {
  const { conversationId = format.conversationId, runId = format.runId, ...rest } = record;
  const { at = format.begins && 0 } = record;
  const full = { ...rest, at: typeof at === 'number' ? format.at + at : at, conversationId, runId };
  return typeof conversationId === 'string' ? lengthened(full, conversationId) : full;
}

/** What is wrong with the fields every entry has; the same is asked when it is written and when it is read. */
function envelopeFault(at: unknown, conversationId: unknown, runId: unknown, type: unknown): string | null {
  if (!Number.isFinite(at)) return `its time is ${display(at)}, expected a finite number`;
  if (typeof conversationId !== 'string') return 'its conversationId is not a text';
  if (runId !== null && typeof runId !== 'string') return 'its runId is neither a text nor null';
  return typeof type === 'string' ? null : `its type is ${display(type)}, expected a text`;
}

/** A level takes at least two characters, so a short line needs no walk. */
function isTooDeep(value: object, length: number): boolean {
  return length > 2 * MAX_DEPTH && isDeeper(value, MAX_DEPTH);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

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

function own(value: StoredRecord, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** For a message. */
export function display(value: unknown): string {
  if (value === undefined) return 'nothing';
  // These have no JSON of their own: NaN, Infinity and what is no value of JSON at all.
  if (typeof value !== 'string' && typeof value !== 'object') return String(value).slice(0, MAX_SHOWN);
  try {
    return JSON.stringify(value).slice(0, MAX_SHOWN);
  } catch {
    return 'an object that is no JSON';
  }
}
