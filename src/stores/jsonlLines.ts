/**
 * The lines of an open file. Rule: cut at `\n` only (U+2028 belongs to a text), read in pieces, and never hold more
 * than one line, which has a limit.
 */
import type { FileHandle } from 'node:fs/promises';
import { CorruptLogError } from '../errors.ts';
import { MAX_LINE_BYTES } from './jsonlLine.ts';

const PIECE_BYTES = 128 * 1024;
const NEWLINE = 0x0a;

export interface Line {
  /** Without its newline; valid until the next line is asked for. */
  bytes: Buffer;
  offset: number;
  /** A newline ends it. */
  whole: boolean;
}

/** The lines between two offsets. Throws CorruptLogError `line_too_long` with the line's number counted from `from`. */
export async function* linesOf(file: FileHandle, from: number, to: number): AsyncGenerator<Line> {
  const piece = Buffer.allocUnsafe(Math.max(1, Math.min(PIECE_BYTES, to - from)));
  let held: Buffer[] = [];
  let heldBytes = 0;
  let offset = from;
  let number = 1;
  const hold = (bytes: Buffer) => {
    heldBytes += bytes.length;
    if (heldBytes > MAX_LINE_BYTES) {
      const limit = `line ${number} of the log is longer than ${MAX_LINE_BYTES} bytes`;
      throw new CorruptLogError('line_too_long', `${limit}: no runchart wrote it, move the file away`, number);
    }
    held.push(bytes);
  };
  for (let position = from; position < to; ) {
    const { bytesRead } = await file.read(piece, 0, Math.min(piece.length, to - position), position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let rest = piece.subarray(0, bytesRead);
    for (let cut = rest.indexOf(NEWLINE); cut !== -1; cut = rest.indexOf(NEWLINE)) {
      hold(rest.subarray(0, cut));
      yield { bytes: held.length === 1 ? rest.subarray(0, cut) : Buffer.concat(held), offset, whole: true };
      offset += heldBytes + 1;
      number += 1;
      held = [];
      heldBytes = 0;
      rest = rest.subarray(cut + 1);
    }
    // The piece is read into again, so what waits for its newline is copied.
    if (rest.length > 0) hold(Buffer.from(rest));
  }
  if (heldBytes > 0) yield { bytes: Buffer.concat(held), offset, whole: false };
}
