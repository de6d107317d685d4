/**
 * Reads the text of a log file as entries. Invariant: nothing is rejected. An unreadable line is kept with its number
 * and the reason. A long text is read in parts, so the page stays responsive.
 */

import { unusableField } from '../../machines/log/logState.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { pageJson } from '../../src/inspect/excerpt.ts';
import { separateItems } from '../../src/projector/readEntry.ts';
import { decodeFields } from '../../src/stores/jsonl/entryEncoding.ts';

export interface BrokenLine {
  readonly line: number;
  readonly why: string;
  readonly text: string;
  /** The number of entries before it. */
  readonly entriesBefore: number;
}

export interface ReadLog {
  readonly conversationId: string;
  readonly entries: readonly LogEntry[];
  readonly broken: readonly BrokenLine[];
  /** The number of lines in the file, and the number of lines that were read. */
  readonly lines: number;
  readonly read: number;
  /** Reads more lines. The result includes everything that was read before. Undefined if all is read. */
  readonly more?: (entriesMax: number, progress?: Progress) => Promise<ReadLog>;
}

type Progress = (linesRead: number, total: number) => void;

interface Header {
  conversationId: string;
  runId: string | null;
  at: number;
}

const LINES_AT_ONCE = 2000;
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headerOf(value: Record<string, unknown>, above: Header): Header {
  const { conversationId, runId, at } = value;
  return {
    conversationId: typeof conversationId === 'string' ? conversationId : above.conversationId,
    runId: typeof runId === 'string' ? runId : null,
    at: typeof at === 'number' ? at : 0,
  };
}

/** Returns the entry of a line, or the reason why there is none. */
function entryOf(value: unknown, header: Header, next: number): LogEntry | string {
  if (value === undefined) return 'it is no JSON';
  if (!isRecord(value)) return 'it is not an object';
  if (typeof value.type !== 'string') return 'it has no type';
  const { conversationId = header.conversationId, runId = header.runId, at, seq = next, ...rest } = value;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return 'its seq is no whole number';
  if (seq < next) return `its seq is ${seq}, and ${next} comes next`;
  const time = typeof at === 'number' ? header.at + at : header.at;
  const entry = { ...rest, conversationId, runId, at: time, seq };
  decodeFields(entry, `${conversationId as string}`);
  const field = unusableField(entry);
  return field === undefined ? (entry as unknown as LogEntry) : `its ${field} cannot be used`;
}

/** The state of the reader. */
interface Reading {
  readonly lines: readonly string[];
  next: number;
  header: Header;
  id: string;
  entries: readonly LogEntry[];
  broken: readonly BrokenLine[];
}

/** `progress` is called after each part. `entriesMax` limits entries and broken lines. */
export function readLog(text: string, name: string, progress?: Progress, entriesMax?: number): Promise<ReadLog> {
  const header: Header = { conversationId: name.replace(/\.jsonl?$/, ''), runId: null, at: 0 };
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  return readMore({ lines, next: 0, header, id: header.conversationId, entries: [], broken: [] }, progress, entriesMax);
}

async function readMore(
  from: Reading,
  progress: Progress = () => {},
  entriesMax = Number.POSITIVE_INFINITY,
): Promise<ReadLog> {
  const { lines } = from;
  let { next, header, id } = from;
  const entries = [...from.entries];
  const broken = [...from.broken];
  const upTo = entries.length + broken.length + entriesMax;
  for (; next < lines.length && entries.length + broken.length < upTo; next++) {
    if (next > from.next && next % LINES_AT_ONCE === 0) {
      progress(next, lines.length);
      await new Promise((resolve) => setTimeout(resolve));
    }
    const line = (lines[next] ?? '').replaceAll('\0', '').trim();
    if (line === '') continue;
    const value = parsed(line);
    if (isRecord(value) && typeof value.format === 'string' && value.seq === undefined) {
      header = headerOf(value, header);
      if (entries.length === 0) id = header.conversationId;
      continue;
    }
    for (const event of isRecord(value) ? separateItems(value) : [value]) {
      const entry = entryOf(event, header, (entries.at(-1)?.seq ?? -1) + 1);
      // Redaction comes before any cut, because a cut may remove the part by which a credential is recognized.
      if (typeof entry !== 'string') entries.push(pageJson(entry, line));
      else broken.push({ line: next + 1, why: entry, text: line.slice(0, 400), entriesBefore: entries.length });
    }
  }
  const isAll = lines.slice(next).every((line) => line.trim() === '');
  const reached: Reading = { lines, next, header, id, entries, broken };
  return {
    ...{ conversationId: id, entries, broken, lines: lines.length, read: next },
    ...(!isAll && { more: (further, onProgress) => readMore(reached, onProgress, further) }),
  };
}
