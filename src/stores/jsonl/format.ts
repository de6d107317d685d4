/**
 * The format of a log's lines, both ways. Rule: the first line names the format, its version and the conversation; each
 * further line is one entry, begins with its seq, and leaves out what the header says and a `runId` of null; a later
 * header says that the lines behind it are of a newer version. Reading judges and never throws; what a reader would
 * refuse is not written.
 */
import { isUtf8 } from 'node:buffer';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { RunchartError } from '../../errors.ts';
import { isBlank, isBraced, otherEncoding, voidBefore } from './bytes.ts';
import { type StoredRecord, UPGRADES, VERSION } from './versions.ts';

export const FORMAT = 'runchart-log';
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
  version: number;
}

export type Judged =
  /** `zeros`: bytes of 0x00, and white space among them, before the record. `spliced`: a torn record stands before it. */
  | { kind: 'entry'; entry: LogEntry; zeros: number; spliced: boolean }
  /** Nothing but white space and zero bytes. */
  | { kind: 'blank' }
  /** The lines behind it have another version. */
  | { kind: 'header'; version: number }
  | { kind: 'encoding' | 'not_json' | 'corrupt' | 'version'; why: string };

export type JudgedHeader =
  | { kind: 'header'; conversationId: string | null; version: number }
  | { kind: 'blank' }
  | { kind: 'encoding' | 'not_json' | 'no_header' | 'version'; why: string };

export function headerLine(conversationId: string): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, conversationId })}\n`;
}

/** What every record holds, as its first key. */
export const RECORD_KEY = '"seq"';

/** What the record with this seq begins with. */
function recordPrefix(seq: number): string {
  return `{${RECORD_KEY}:${seq},`;
}

/** Throws RunchartError `store` for an entry no reader would take back. */
export function entryLine(entry: LogEntry, headerId: string): Buffer {
  const { seq, at, conversationId, runId, ...rest } = entry;
  const odd = envelopeFault(at, conversationId, runId, rest.type);
  if (odd !== null) throw new RunchartError('store', `entry ${seq} (${entry.type}) cannot be stored: ${odd}`);
  const short: { [key: string]: unknown } = { seq, at };
  if (conversationId !== headerId) short.conversationId = conversationId;
  if (runId !== null) short.runId = runId;
  let line: string;
  try {
    line = `${JSON.stringify({ ...short, ...rest })}\n`;
  } catch (cause) {
    throw new RunchartError('store', `entry ${seq} (${entry.type}) is not JSON: ${String(cause)}`, { cause });
  }
  if (isTooDeep(entry, line.length)) {
    throw new RunchartError('store', `entry ${seq} (${entry.type}) is nested deeper than ${MAX_DEPTH} levels`);
  }
  const bytes = Buffer.from(line);
  if (bytes.length > MAX_LINE_BYTES) {
    throw new RunchartError(
      'store',
      `entry ${seq} (${entry.type}) takes ${bytes.length} bytes, at most ${MAX_LINE_BYTES} fit: store it as a blob`,
    );
  }
  return bytes;
}

export function judgeHeader(bytes: Buffer): JudgedHeader {
  if (isBlank(bytes)) return { kind: 'blank' };
  if (!isUtf8(bytes)) return notUtf8(bytes);
  const header = isBraced(bytes) ? parsed(bytes.toString()) : undefined;
  if (header === undefined) return notJson(bytes);
  if (!isRecord(header) || own(header, 'format') !== FORMAT) {
    return { kind: 'no_header', why: `expected the first line to be a header of format "${FORMAT}"` };
  }
  const version = own(header, 'version');
  if (!isReadable(version)) return unreadable(version);
  const id = own(header, 'conversationId');
  return { kind: 'header', conversationId: typeof id === 'string' ? id : null, version };
}

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
    if (!isReadable(version)) return unreadable(version);
    return version > format.version ? { kind: 'header', version } : { kind: 'corrupt', why: 'it is a second header' };
  }
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
  const value = upgraded(found, format.version);
  if (value === null) return `it is no record of version ${format.version}`;
  const { seq, at, conversationId = format.conversationId, runId = null, ...rest } = value;
  if (!Number.isSafeInteger(seq) || (seq as number) < 0) return `its seq is ${display(seq)}, expected a whole number`;
  const odd = envelopeFault(at, conversationId, runId, own(value, 'type'));
  if (odd !== null) return odd;
  // What a type's own fields hold is the reader's to judge: a newer version may know more types.
  return { seq, at, conversationId, runId, ...rest } as unknown as LogEntry;
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

/** A way leads from this version to the newest. */
function isReadable(version: unknown): version is number {
  let reached = version;
  while (typeof reached === 'number' && UPGRADES.has(reached)) reached += 1;
  return reached === VERSION;
}

/** Null for a record that a step cannot make anything of. */
function upgraded(record: StoredRecord, from: number): StoredRecord | null {
  let value = record;
  try {
    for (let version = from; version < VERSION; version += 1) value = UPGRADES.get(version)?.(value) ?? value;
    return value;
  } catch {
    return null;
  }
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
