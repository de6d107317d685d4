/**
 * Reads a log that may be damaged or in use. Rule: it takes no lease, never writes and never refuses what can still be
 * read; it skips lines that are no entry, repetitions and gaps.
 */
import { constants } from 'node:fs';
import { resolve } from 'node:path';
import type { LogEntry } from '../../../machines/vocabulary.ts';
import { CorruptLogError } from '../../errors.ts';
import { isBlank, withoutLostEnd } from './bytes.ts';
import { openRegular, resolveRegular } from './disk.ts';
import { fileNameOf } from './fileName.ts';
import {
  belowFirst,
  FORMAT,
  type JudgedHeader,
  judgeHeader,
  judgeLine,
  type LineFormat,
  RECORD_KEY,
} from './format.ts';
import { linesIn, piecesOf, recordsIn } from './lines.ts';

/** The readable entries of a conversation, in order of seq. Throws CorruptLogError `not_a_file` only. */
export async function* readDamagedLog(directory: string, id: string): AsyncGenerator<LogEntry> {
  const { path, exists } = await resolveRegular(resolve(directory, fileNameOf(id)));
  if (exists) yield* readableEntries(path, id);
}

/** The first line that is not blank is a header of ours, of whatever version. */
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
      if (reader.passesOver(piece.bytes)) continue;
      for (const line of linesIn(piece)) {
        for (const { bytes, whole } of recordsIn(line)) {
          const entry = reader.take(whole ? bytes : withoutLostEnd(bytes), whole);
          if (entry !== null) yield entry;
        }
      }
    }
  } catch (error) {
    // What follows a line without end cannot be found.
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

  /** Nothing can be read in it. A look at each line of a file of rubbish would take long. */
  passesOver(bytes: Buffer): boolean {
    if (this.#format === null) return isBlank(bytes);
    return !bytes.includes(RECORD_KEY) && !bytes.includes(FORMAT);
  }

  /** The entry a line gives, or null. */
  take(bytes: Buffer, whole: boolean): LogEntry | null {
    if (this.passesOver(bytes)) return null;
    if (this.#format === null) {
      const header = judgeHeader(bytes, this.#id);
      this.#format = formatIn(header, this.#id);
      if (header.kind === 'header') return null;
    }
    const judged = judgeLine(bytes, this.#format, this.#next, whole);
    if (judged.kind === 'header') this.#format = judged.format;
    if (judged.kind === 'gap') {
      // Of what run these lines are, and when they were written, is not known.
      this.#format = { ...this.#format, runId: null, at: 0, begins: true };
      return this.take(bytes, whole);
    }
    if (judged.kind !== 'entry') return null;
    this.#format = belowFirst(this.#format);
    if (judged.entry.seq < this.#next) return null;
    this.#next = judged.entry.seq + 1;
    return judged.entry;
  }
}

/** What cannot be read as a header is taken for one of this format, so that the lines behind it can be tried. */
function formatIn(header: JudgedHeader, id: string): LineFormat {
  return header.kind === 'header' ? header.format : { conversationId: id, runId: null, at: 0 };
}
