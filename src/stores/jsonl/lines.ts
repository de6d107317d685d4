/**
 * The lines of an open file, and the records of a line. Rule: lines are cut at `\n` only (U+2028 belongs to a text) and
 * read in pieces of whole lines; at most one piece and one line are held, and a line has a limit. A byte order mark in
 * front of a file belongs to no line; a line is cut further only where it holds whole records and nothing else.
 */
import type { FileHandle } from 'node:fs/promises';
import { CorruptLogError } from '../../errors.ts';
import { endOfObject, markBefore, voidBefore } from './bytes.ts';
import { HEADER_PREFIX, isRecord, MAX_LINE_BYTES, parsed, RECORD_KEY } from './format.ts';

const PIECE_BYTES = 128 * 1024;
const NEWLINE = 0x0a;

export interface Line {
  /** Without its newline; valid until the next piece is asked for. */
  bytes: Buffer;
  offset: number;
  /** A newline ends it. */
  whole: boolean;
  /** 1 is the first of the file's part that is read. */
  number: number;
}

/** Whole lines, or the last one of a file if no newline ends it. */
export interface Piece {
  /** With the newlines; valid until the next piece is asked for. */
  bytes: Buffer;
  offset: number;
  whole: boolean;
  /** Of its first line. */
  number: number;
}

/** The lines between two offsets. Throws as `piecesOf` does. */
export async function* linesOf(file: FileHandle, from: number, to: number): AsyncGenerator<Line> {
  for await (const piece of piecesOf(file, from, to)) yield* linesIn(piece);
}

/** Their records. */
export async function* recordsOf(file: FileHandle, from: number, to: number): AsyncGenerator<Line> {
  for await (const line of linesOf(file, from, to)) yield* recordsIn(line);
}

/** Throws CorruptLogError `line_too_long` with the line's number counted from `from`. */
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
    // The buffer is read into again, so what waits for its newline is copied.
    if (end < read.length) held.push(Buffer.from(read.subarray(end)));
    heldBytes += read.length - end;
  }
  if (heldBytes > 0) yield { bytes: Buffer.concat(held), offset, whole: false, number };
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

/** The fronts of what stands behind another record on its line. */
const PREFIXES = [`{${RECORD_KEY}:`, HEADER_PREFIX];

/**
 * The records of a line: the line itself, or its parts where it is one whole record behind the other. What begins the line
 * and is whole cannot be a part of anything, so nothing is guessed; a line with anything else in it stays as it is.
 */
export function* recordsIn(line: Line): Generator<Line> {
  const joined = PREFIXES.some((front) => line.bytes.indexOf(front, 1) !== -1) ? wholeIn(line) : null;
  if (joined && joined.length > 1) yield* joined;
  else yield line;
}

/** Null where something else is in the line. */
function wholeIn(line: Line): Line[] | null {
  const records: Line[] = [];
  for (let at = voidBefore(line.bytes); at < line.bytes.length; ) {
    const rest = line.bytes.subarray(at);
    const length = endOfObject(rest);
    const text = rest.toString('utf8', 0, Math.max(0, length));
    if (length === -1 || !isRecord(parsed(text))) return null;
    // Zero bytes between two of them are damage.
    const between = rest.subarray(length, length + voidBefore(rest.subarray(length)));
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

/** By hand: a search from one newline to the next costs more where lines are short. */
function newlinesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === NEWLINE) count += 1;
  return count;
}
