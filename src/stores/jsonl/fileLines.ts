/**
 * Reads the lines of an open file, and the records of a line. Invariant: only `\n` ends a line. At most one piece of
 * the file and one line are in memory, and a line has a limit. A line is split only if it contains whole records and
 * nothing else. A byte order mark at the start of the file is skipped.
 */
import type { FileHandle } from 'node:fs/promises';
import { CorruptLogError } from '../../errors.ts';
import { parsed } from '../entryJson.ts';
import { endOfObject, ignoredBefore, markBefore } from './lineBytes.ts';
import { HEADER_PREFIX, isRecord, MAX_LINE_BYTES, RECORD_KEY } from './lineFormat.ts';

const PIECE_BYTES = 128 * 1024;
export const NEWLINE = 0x0a;

export interface Line {
  /** Without the newline. Valid until the next piece is read. */
  bytes: Buffer;
  offset: number;
  /** True if a newline ends it. */
  whole: boolean;
  /** Counted from 1 at the start of the read range. */
  number: number;
}

/** Whole lines, or the last line of a file without a newline. */
export interface Piece {
  /** With the newlines. Valid until the next piece is read. */
  bytes: Buffer;
  offset: number;
  whole: boolean;
  /** The number of its first line. */
  number: number;
}

/** Yields the lines between two offsets. Throws like `piecesOf`. */
export async function* linesOf(file: FileHandle, from: number, to: number): AsyncGenerator<Line> {
  for await (const piece of piecesOf(file, from, to)) yield* linesIn(piece);
}

/** Yields the records between two offsets. Throws like `piecesOf`. */
export async function* recordsOf(file: FileHandle, from: number, to: number): AsyncGenerator<Line> {
  for await (const line of linesOf(file, from, to)) yield* recordsIn(line);
}

/** Throws CorruptLogError `line_too_long`; its line number is counted from `from`. */
export async function* piecesOf(file: FileHandle, from: number, to: number): AsyncGenerator<Piece> {
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.min(PIECE_BYTES, to - from)));
  let held: Buffer[] = [];
  let heldBytes = 0;
  let offset = from;
  let number = 1;
  for (let position = from; position < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - position), position);
    if (bytesRead === 0) break;
    const mark = position === 0 ? markBefore(buffer.subarray(0, bytesRead)) : 0;
    position += bytesRead;
    offset += mark;
    const read = buffer.subarray(mark, bytesRead);
    const first = read.indexOf(NEWLINE);
    if (heldBytes + (first === -1 ? read.length : first) > MAX_LINE_BYTES) throw tooLong(number);
    const end = first === -1 ? 0 : read.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      const lines = read.subarray(0, end);
      const bytes = held.length === 0 ? lines : Buffer.concat([...held, lines]);
      yield { bytes, offset, whole: true, number };
      offset += bytes.length;
      number += newlinesIn(bytes);
      held = [];
      heldBytes = 0;
    }
    // The buffer is reused, so an incomplete line is copied.
    if (end < read.length) held.push(Buffer.from(read.subarray(end)));
    heldBytes += read.length - end;
  }
  if (heldBytes > 0) yield { bytes: Buffer.concat(held), offset, whole: false, number };
}

/** Splits a piece after its first line. */
export function firstLineApart(piece: Piece): Piece[] {
  const { bytes, offset, number } = piece;
  const end = bytes.indexOf(NEWLINE) + 1;
  if (end === 0 || end === bytes.length) return [piece];
  return [
    { ...piece, bytes: bytes.subarray(0, end) },
    { ...piece, bytes: bytes.subarray(end), offset: offset + end, number: number + 1 },
  ];
}

export function* linesIn(piece: Piece): Generator<Line> {
  let { number } = piece;
  for (let at = 0; at < piece.bytes.length; number += 1) {
    const cut = piece.bytes.indexOf(NEWLINE, at);
    const end = cut === -1 ? piece.bytes.length : cut;
    yield { bytes: piece.bytes.subarray(at, end), offset: piece.offset + at, whole: cut !== -1, number };
    at = end + 1;
  }
}

/** The beginnings of records and headers. */
const PREFIXES = [`{${RECORD_KEY}:`, HEADER_PREFIX];

/**
 * Yields the records of a line: the line itself, or its parts if it consists of whole records only. A whole record at
 * the start of a line cannot be nested in another one, so nothing is guessed.
 */
export function* recordsIn(line: Line): Generator<Line> {
  const joined = PREFIXES.some((prefix) => line.bytes.indexOf(prefix, 1) !== -1) ? wholeIn(line) : null;
  if (joined && joined.length > 1) yield* joined;
  else yield line;
}

/** Returns null if the line contains anything else. */
function wholeIn(line: Line): Line[] | null {
  const records: Line[] = [];
  for (let at = ignoredBefore(line.bytes); at < line.bytes.length; ) {
    const rest = line.bytes.subarray(at);
    const length = endOfObject(rest);
    const text = rest.toString('utf8', 0, Math.max(0, length));
    if (length === -1 || !isRecord(parsed(text))) return null;
    // Zero bytes between two records are damage.
    const between = rest.subarray(length, length + ignoredBefore(rest.subarray(length)));
    const next = at + length + between.length;
    const first = records.length === 0;
    const last = next === line.bytes.length;
    if (!last && between.includes(0)) return null;
    const bytes = line.bytes.subarray(first ? 0 : at, last ? next : at + length);
    records.push({ ...line, bytes, offset: line.offset + (first ? 0 : at), whole: last ? line.whole : true });
    at = next;
  }
  return records;
}

function tooLong(number: number): CorruptLogError {
  const limit = `line ${number} of the log is longer than ${MAX_LINE_BYTES} bytes`;
  return new CorruptLogError('line_too_long', `${limit}: no runchart wrote it, move the file away`, number);
}

function newlinesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
