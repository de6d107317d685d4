/**
 * Reads the stored log for `runchart replay`. Invariant: the log is never written. It is read up to the first
 * unreadable part, and omitted parts are reported. A file without a header is read as bare events of another backend,
 * one JSON value a line.
 */
import { constants } from 'node:fs';
import { basename } from 'node:path';
import type { Diagnostic } from '../../../machines/vocabulary.ts';
import { ConfigurationError, CorruptLogError } from '../../errors.ts';
import { decodeFields } from '../../stores/jsonl/entryEncoding.ts';
import { linesOf } from '../../stores/jsonl/fileLines.ts';
import { idOf } from '../../stores/jsonl/fileName.ts';
import { openRegular, resolveRegular } from '../../stores/jsonl/fileSystem.ts';
import { FORMAT, isRecord } from '../../stores/jsonl/lineFormat.ts';
import { scanLog } from '../../stores/jsonl/logScan.ts';
import { beginsWithHeader, readableEntries } from '../../stores/jsonl/readDamagedLog.ts';
import type { SessionPlace } from '../sessions/sessionPlace.ts';
import { nearSessions } from '../sessions/sessionStore.ts';

const decoder = new TextDecoder();
const WIRE = new Set<unknown>(['user-message', 'agent-output', 'tool-result', 'run-stop']);

export interface FoundLog {
  /** The name of its file, or the session's id. */
  readonly name: string;
  /** Passes on the values in order. Resolves with notes about omitted parts. Throws CorruptLogError if it is not a log. */
  read(take: (value: unknown) => void): Promise<string[]>;
}

/** Finds the file with this path, else the log of the session with this id. Throws ConfigurationError. */
export async function findLog(log: string, place: SessionPlace): Promise<FoundLog> {
  const file = await regularFile(log);
  if (typeof file === 'object') return fileLog(file.path);
  const session = await regularFile(sessionPath(place, log));
  if (typeof session === 'object') return fileLog(session.path);
  if (place.readLog && (await place.has(log)))
    return { name: log, read: async (take) => (await place.readLog?.(log, take)) ?? [] };
  const what = file === 'other' ? `${log} is no regular file` : `there is no file ${log}`;
  const near = await nearSessions(place, log);
  throw new ConfigurationError(
    `expected a log, but ${what}, nor a session of that name in ${place.path}: give the path of a .jsonl file, or a session's id.${near}`,
  );
}

const fileLog = (path: string): FoundLog => ({ name: basename(path), read: (take) => readStored(path, take) });

async function regularFile(path: string | undefined): Promise<{ path: string } | 'missing' | 'other'> {
  if (path === undefined || path === '') return 'missing';
  try {
    const regular = await resolveRegular(path);
    return regular.exists ? regular : 'missing';
  } catch (error) {
    if (error instanceof CorruptLogError) return 'other';
    throw error;
  }
}

/** Undefined if the text is not a valid session name. */
function sessionPath(place: SessionPlace, name: string): string | undefined {
  try {
    return place.logFile(name);
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

async function readStored(path: string, take: (value: unknown) => void): Promise<string[]> {
  const id = idOf(basename(path)) ?? basename(path);
  if (!(await beginsWithHeader(path))) return readBare(path, id, take);
  const scan = await scanStored(path, id);
  let entries = 0;
  for await (const entry of readableEntries(path, id)) {
    take(entry);
    entries += 1;
  }
  return scan.refused === undefined ? scan.notes : [`${scan.refused}; ${entries} entries can be read`];
}

/** Calls `cut` if no further line can be found. */
async function* linesIn(path: string, cut: (error: CorruptLogError) => void): AsyncGenerator<{ bytes: Buffer }> {
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    yield* linesOf(file, 0, (await file.stat()).size);
  } catch (error) {
    if (!(error instanceof CorruptLogError)) throw error;
    // The lines after a line without an end cannot be found.
    cut(error);
  } finally {
    await file.close();
  }
}

/** Returns the store's findings: its own repairs, or the reason why it would refuse to write to the log. */
async function scanStored(path: string, id: string): Promise<{ notes: string[]; refused?: string }> {
  const file = await openRegular(path, constants.O_RDONLY);
  try {
    const { notices } = await scanLog(file, (await file.stat()).size, id);
    return { notes: notices.filter(({ code }) => code !== 'renamed').map(damageText) };
  } catch (error) {
    if (error instanceof CorruptLogError) return { notes: [], refused: error.message };
    throw error;
  } finally {
    await file.close();
  }
}

function damageText({ code, detail }: Diagnostic): string {
  const where = JSON.stringify(detail ?? null);
  if (code === 'torn_tail') return `the last line is torn and was left out: ${where}`;
  if (code === 'byte_order_mark') return 'the file begins with a byte order mark, which was left out';
  return `the file is damaged, yet every entry can be read: ${code} ${where}`;
}

/** Reads bare events. A log without its header is read in the same way. */
async function readBare(path: string, id: string, take: (value: unknown) => void): Promise<string[]> {
  let number = 0;
  let hasWireEvent = false;
  const unreadableLines: number[] = [];
  const endless: string[] = [];
  const cut = (error: CorruptLogError): void => {
    endless.push(`line ${error.line ?? number + 1} is too long to be read: it and what follows was left out`);
  };
  for await (const { bytes } of linesIn(path, cut)) {
    number += 1;
    const value = parsed(decoder.decode(bytes));
    if (value === undefined) {
      if (bytes.length > 0) unreadableLines.push(number);
      continue;
    }
    // These lines belong to a log without its first header: headers of runs, and lines with short forms.
    if (isRecord(value) && value.format === FORMAT) continue;
    hasWireEvent ||= typeof value === 'object' && value !== null && WIRE.has((value as { type?: unknown }).type);
    if (isRecord(value)) decodeFields(value, id);
    take(value);
  }
  const unread =
    unreadableLines.length === 0
      ? []
      : [`${unreadableLines.length} of ${number} lines are no JSON, line ${unreadableLines[0]} first`];
  if (hasWireEvent) return [...unread, ...endless];
  const { notes: storeNotes, refused } = await scanStored(path, id);
  if (refused === undefined) return storeNotes;
  throw new CorruptLogError(
    'no_header',
    `${path} is no log: expected a runchart log, or wire events as JSON, one a line; got neither`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
