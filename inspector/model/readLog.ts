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
}

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

/** `progress` hears of it after each piece. */
export async function readLog(
  text: string,
  name: string,
  progress: (read: number, of: number) => void = () => {},
): Promise<ReadLog> {
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  let header: Header = { conversationId: name.replace(/\.jsonl?$/, ''), runId: null, at: 0 };
  const entries: LogEntry[] = [];
  const broken: BrokenLine[] = [];
  let id = header.conversationId;
  for (const [index, raw] of lines.entries()) {
    if (index > 0 && index % LINES_AT_ONCE === 0) {
      progress(index, lines.length);
      await new Promise((resolve) => setTimeout(resolve));
    }
    const line = raw.replaceAll('\0', '').trim();
    if (line === '') continue;
    const value = parsed(line);
    if (isRecord(value) && typeof value.format === 'string' && value.seq === undefined) {
      header = headerOf(value, header);
      if (entries.length === 0) id = header.conversationId;
      continue;
    }
    const entry = entryOf(value, header, (entries.at(-1)?.seq ?? -1) + 1);
    if (typeof entry !== 'string') entries.push(entry);
    else broken.push({ line: index + 1, why: entry, text: line.slice(0, 400), behind: entries.length });
  }
  return { conversationId: id, entries, broken };
}
