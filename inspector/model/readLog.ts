/**
 * The text of a log file as entries. Rule: nothing is refused; what cannot be read is kept as a broken line with its number
 * and the reason, and a long text is read in pieces, so that the page stays alive.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { lengthened } from '../../src/stores/jsonl/shortForms.ts';

export interface BrokenLine {
  readonly line: number;
  readonly why: string;
  readonly text: string;
  /** How many entries stand before it. */
  readonly behind: number;
}

export interface ReadLog {
  readonly conversationId: string;
  readonly entries: readonly LogEntry[];
  readonly broken: readonly BrokenLine[];
  /** Lines of the file, and how many of them were read. */
  readonly lines: number;
  readonly read: number;
  /** Reads on: what it answers has what was read before as well. Nothing where all is read. */
  readonly more?: (most: number, progress?: Progress) => Promise<ReadLog>;
}

type Progress = (read: number, of: number) => void;

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

/** The entry of a line, or why it gives none. */
function entryOf(value: unknown, header: Header, next: number): LogEntry | string {
  if (value === undefined) return 'it is no JSON';
  if (!isRecord(value)) return 'it is not an object';
  if (typeof value.type !== 'string') return 'it has no type';
  const { conversationId = header.conversationId, runId = header.runId, at, seq = next, ...rest } = value;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return 'its seq is no whole number';
  if (seq < next) return `its seq is ${seq}, and ${next} comes next`;
  const time = typeof at === 'number' ? header.at + at : header.at;
  const long = lengthened({ ...rest, conversationId, runId, at: time, seq }, `${conversationId as string}`);
  return long as unknown as LogEntry;
}

/** What has been read so far. */
interface Reading {
  readonly lines: readonly string[];
  next: number;
  header: Header;
  id: string;
  entries: readonly LogEntry[];
  broken: readonly BrokenLine[];
}

/** `progress` hears of it after each piece. `most`: entries and broken lines. */
export function readLog(text: string, name: string, progress?: Progress, most?: number): Promise<ReadLog> {
  const header: Header = { conversationId: name.replace(/\.jsonl?$/, ''), runId: null, at: 0 };
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  return readOn({ lines, next: 0, header, id: header.conversationId, entries: [], broken: [] }, progress, most);
}

async function readOn(from: Reading, progress: Progress = () => {}, most = Number.POSITIVE_INFINITY): Promise<ReadLog> {
  const { lines } = from;
  let { next, header, id } = from;
  const entries = [...from.entries];
  const broken = [...from.broken];
  const upTo = entries.length + broken.length + most;
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
    const entry = entryOf(value, header, (entries.at(-1)?.seq ?? -1) + 1);
    if (typeof entry !== 'string') entries.push(entry);
    else broken.push({ line: next + 1, why: entry, text: line.slice(0, 400), behind: entries.length });
  }
  const isAll = lines.slice(next).every((line) => line.trim() === '');
  const reached: Reading = { lines, next, header, id, entries, broken };
  return {
    ...{ conversationId: id, entries, broken, lines: lines.length, read: next },
    ...(!isAll && { more: (further, told) => readOn(reached, told, further) }),
  };
}
