/**
 * Reading a log that may be damaged or in use. Rule: it takes no lease, never writes and never refuses what can still
 * be read: lines that are no entry, repetitions and gaps are passed over.
 */
import { constants } from 'node:fs';
import { resolve } from 'node:path';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { CorruptLogError } from '../errors.ts';
import { openRegular, resolveRegular } from './jsonlDisk.ts';
import { type JudgedHeader, judgeHeader, judgeLine } from './jsonlLine.ts';
import { linesOf } from './jsonlLines.ts';
import { fileNameOf } from './jsonlName.ts';

/** The readable entries of a conversation, in order of seq. Throws CorruptLogError `not_a_file` only. */
export async function* readDamagedLog(directory: string, id: string): AsyncGenerator<LogEntry> {
  const { path, exists } = await resolveRegular(resolve(directory, fileNameOf(id)));
  if (exists) yield* readableEntries(path, id);
}

export async function* readableEntries(path: string, id: string): AsyncGenerator<LogEntry> {
  const file = await openRegular(path, constants.O_RDONLY);
  let headerId: string | null = null;
  let next = 0;
  try {
    for await (const line of linesOf(file, 0, (await file.stat()).size)) {
      const header: JudgedHeader | null = headerId === null ? judgeHeader(line.bytes) : null;
      headerId ??= header?.kind === 'header' ? header.conversationId : id;
      const judged = header?.kind === 'header' ? null : judgeLine(line.bytes, headerId ?? id, next, line.whole);
      if (judged?.kind !== 'entry' || judged.entry.seq < next) continue;
      next = judged.entry.seq + 1;
      yield judged.entry;
    }
  } catch (error) {
    // What follows a line without end cannot be found.
    if (!(error instanceof CorruptLogError)) throw error;
  } finally {
    await file.close();
  }
}
