/**
 * Reads a log that may be damaged or in use. Invariant: reading takes no lease and writes nothing. Every readable entry
 * is yielded; other lines, duplicates and gaps are skipped.
 */
import { constants } from 'node:fs';
import { resolve } from 'node:path';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError } from '../../errors.ts';
import { linesIn, piecesOf, recordsIn } from './fileLines.ts';
import { fileNameOf } from './fileName.ts';
import { openRegular, resolveRegular } from './fileSystem.ts';
import { isBlank, withoutLostEnd } from './lineBytes.ts';
import {
  afterFirstLine,
  FORMAT,
  type JudgedHeader,
  judgeHeader,
  judgeLine,
  type LineFormat,
  RECORD_KEY,
} from './lineFormat.ts';

/** Yields the readable entries of a conversation in order of seq. Throws only CorruptLogError `not_a_file`. */
export async function* readDamagedLog(directory: string, id: string): AsyncGenerator<LogEntry> {
  const { path, exists } = await resolveRegular(resolve(directory, fileNameOf(id)));
  if (exists) yield* readableEntries(path, id);
}

/** Resolves to true if the first line that is not blank is a header of any version. */
export async function beginsWithHeader(path: string): Promise<boolean> {
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    for await (const piece of piecesOf(file, 0, (await file.stat()).size)) {
      if (isBlank(piece.bytes)) continue;
      for (const line of linesIn(piece)) {
        const [{ bytes, whole } = line] = recordsIn(line);
        const { kind } = judgeHeader(whole ? bytes : withoutLostEnd(bytes), '');
        if (kind !== 'blank') return kind === 'header' || kind === 'version';
      }
    }
    return false;
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    return false;
  } finally {
    await file.close();
  }
}

export async function* readableEntries(path: string, id: string): AsyncGenerator<LogEntry> {
  const file = await openRegular(path, constants.O_RDONLY);
  const reader = new Reader(id);
  try {
    for await (const piece of piecesOf(file, 0, (await file.stat()).size)) {
      if (reader.skips(piece.bytes)) continue;
      for (const line of linesIn(piece)) {
        for (const { bytes, whole } of recordsIn(line)) {
          const entry = reader.take(whole ? bytes : withoutLostEnd(bytes), whole);
          if (entry !== null) yield entry;
        }
      }
    }
  } catch (error) {
    // Nothing after an endless line can be found.
    if (!(error instanceof CorruptLogError)) throw error;
  } finally {
    await file.close();
  }
}

class Reader {
  readonly #id: string;
  #format: LineFormat | null = null;
  #next = 0;

  constructor(id: string) {
    this.#id = id;
  }

  /** Returns true if the bytes contain nothing readable. This keeps reading a damaged file fast. */
  skips(bytes: Buffer): boolean {
    if (this.#format === null) return isBlank(bytes);
    return !bytes.includes(RECORD_KEY) && !bytes.includes(FORMAT);
  }

  /** Returns the entry of a line, or null. */
  take(bytes: Buffer, whole: boolean): LogEntry | null {
    if (this.skips(bytes)) return null;
    if (this.#format === null) {
      const header = judgeHeader(bytes, this.#id);
      this.#format = formatIn(header, this.#id);
      if (header.kind === 'header') return null;
    }
    const judged = judgeLine(bytes, this.#format, this.#next, whole);
    if (judged.kind === 'header') this.#format = judged.format;
    if (judged.kind === 'gap') {
      if (judged.seq < this.#next) return null;
      // Without the header, run and time of these lines are unknown.
      this.#format = { ...this.#format, runId: null, at: 0, begins: true };
      return this.take(bytes, whole);
    }
    if (judged.kind !== 'entry') return null;
    this.#format = afterFirstLine(this.#format);
    if (judged.entry.seq < this.#next) return null;
    this.#next = judged.entry.seq + 1;
    return judged.entry;
  }
}

/** Without a readable header the default format is tried for the lines after it. */
function formatIn(header: JudgedHeader, id: string): LineFormat {
  return header.kind === 'header' ? header.format : { conversationId: id, runId: null, at: 0 };
}
