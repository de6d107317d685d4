/**
 * Reads a text file line by line. Rule: memory is bounded by one chunk and one cut line, for any file, and nothing is read beyond the
 * lines that the caller takes. Lines end with LF; a CR before it is dropped. Bytes that are not
 * UTF-8 become U+FFFD.
 */
import type { FileHandle } from 'node:fs/promises';
import { beginning } from '../../printable.ts';
import { shownName } from './search/listing.ts';
import { openFile, type Place, type Refusal, refused } from './workspace.ts';

const CHUNK_BYTES = 64 * 1_024;
const PROBE_BYTES = 8 * 1_024;

export interface Line {
  /** Counted from 1. */
  number: number;
  text: string;
  /** The line is longer than `text`. */
  cut: boolean;
}

/** Opens a file for reading as text. The caller closes it. */
export async function openText(place: Place): Promise<{ kind: 'opened'; file: FileHandle } | Refusal> {
  const opened = await openFile(place);
  if (opened.kind === 'refused' || !(await looksBinary(opened.file))) return opened;
  await opened.file.close();
  return refused('binary', `${shownName(place.name)} is not UTF-8 text (it holds NUL bytes)`);
}

/** True if a NUL byte is near the beginning: UTF-8 text has none, but programs, archives, images and UTF-16 do. */
async function looksBinary(file: FileHandle): Promise<boolean> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(PROBE_BYTES), 0, PROBE_BYTES, 0);
  return buffer.subarray(0, bytesRead).includes(0);
}

/** Yields the lines of a file in chunks, each line cut at `charactersMax`. Throws the signal's reason on abort. */
export async function* linesOf(file: FileHandle, charactersMax: number, signal: AbortSignal): AsyncGenerator<Line[]> {
  const decoder = new TextDecoder();
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let number = 0;
  let rest = '';
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, position);
    position += bytesRead;
    const parts = decoder.decode(buffer.subarray(0, bytesRead), { stream: bytesRead > 0 }).split('\n');
    const open = parts.pop() ?? '';
    const lines: Line[] = [];
    for (const part of parts) {
      lines.push(lineOf(++number, rest + part, charactersMax));
      rest = '';
    }
    // Keeps two characters more: one for a CR, and one that shows the line is longer.
    rest = (rest + open).slice(0, charactersMax + 2);
    if (bytesRead === 0 && rest !== '') lines.push(lineOf(++number, rest, charactersMax));
    if (lines.length > 0) yield lines;
    if (bytesRead === 0) return;
  }
}

function lineOf(number: number, raw: string, charactersMax: number): Line {
  const text = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
  return { number, text: beginning(text, charactersMax), cut: text.length > charactersMax };
}
