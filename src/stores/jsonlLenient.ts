/**
 * Reading a log that may be damaged or in use. Rule: it takes no lease, never writes and never refuses what can still
 * be read: lines that are no entry, repetitions and gaps are passed over.
 */
import { constants } from 'node:fs';
import { resolve } from 'node:path';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { CorruptLogError } from '../errors.ts';
import { openRegular, resolveRegular } from './jsonlDisk.ts';
import { type Form, type Judged, type JudgedHeader, judgeHeader, judgeLine } from './jsonlLine.ts';
import { linesOf } from './jsonlLines.ts';
import { fileNameOf } from './jsonlName.ts';
import { VERSION } from './jsonlVersions.ts';

/** The readable entries of a conversation, in order of seq. Throws CorruptLogError `not_a_file` only. */
export async function* readDamagedLog(directory: string, id: string): AsyncGenerator<LogEntry> {
  const { path, exists } = await resolveRegular(resolve(directory, fileNameOf(id)));
  if (exists) yield* readableEntries(path, id);
}

export async function* readableEntries(path: string, id: string): AsyncGenerator<LogEntry> {
  const file = await openRegular(path, constants.O_RDONLY);
  let form: Form | null = null;
  let next = 0;
  try {
    for await (const line of linesOf(file, 0, (await file.stat()).size)) {
      const header: JudgedHeader | null = form === null ? judgeHeader(line.bytes) : null;
      if (header?.kind === 'blank') continue;
      form ??= formIn(header, id);
      const judged: Judged | null = header?.kind === 'header' ? null : judgeLine(line.bytes, form, next, line.whole);
      if (judged?.kind === 'header') form = { ...form, version: judged.version };
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

/** What cannot be read as a header is taken for one of this version, so that the lines behind it can be tried. */
function formIn(header: JudgedHeader | null, id: string): Form {
  if (header?.kind !== 'header') return { conversationId: id, version: VERSION };
  return { conversationId: header.conversationId ?? id, version: header.version };
}
