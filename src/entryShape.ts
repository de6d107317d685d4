/**
 * Whether a log that comes from a store can be read: its entries count on from 0, and each has the fields its type is
 * read by; and how an entry is written today. Rule: only what reading a log depends on is demanded, so fields nobody
 * knows and types of a later version pass; what is refused is named by its seq.
 */
import type { LogEntry } from '../machines/index.ts';
import { CorruptLogError } from './errors.ts';
import { shown } from './form.ts';
import type { LogHandle } from './stores/store.ts';

type Fields = { [key: string]: unknown };
type Check = (value: unknown) => boolean;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text: Check = (value) => typeof value === 'string';
const number: Check = (value) => typeof value === 'number';
const texts: Check = (value) => Array.isArray(value) && value.every(text);
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const fields =
  (checks: { [key: string]: Check }): Check =>
  (value) =>
    isFields(value) && Object.keys(checks).every((key) => checks[key]?.(value[key]));

const textPart = fields({ text });
const imagePart = fields({ mediaType: text, data: text });
const otherPart = fields({ type: text });
const part: Check = (value) =>
  isFields(value) && (value.type === 'text' ? textPart : value.type === 'image' ? imagePart : otherPart)(value);
const content: Check = (value) => Array.isArray(value) && value.every(part);
const call = fields({ callId: text, name: text, argsText: maybe(text) });
const words = fields({ type: text, text });
const item: Check = (value) => isFields(value) && (value.type === 'tool-call' ? call : words)(value);
const usage = fields({ inputTokens: number, outputTokens: number });
const cost: Check = (value) => value === null || number(value);
const named = { messageId: text };
const ofCall = { callId: text };
const ofSuspension = { callId: text, suspension: number };

const SHAPES: ReadonlyMap<string, { readonly [field: string]: Check }> = new Map(
  Object.entries({
    conversation: { cwd: text, createdAt: number, parent: maybe(fields({ conversationId: text, callId: text })) },
    'user-message': { ...named, content },
    'message-queued': { ...named, content },
    'message-returned': named,
    'agent-output': { item },
    'model-reply': { usage, costUsd: cost },
    'tool-allowed': ofCall,
    'tool-started': ofCall,
    'tool-suspended': { ...ofSuspension, reason: text },
    decision: { ...ofSuspension, decision: fields({ action: text }) },
    'decision-consumed': ofSuspension,
    'call-settled': { ...ofCall, how: isFields },
    'tool-result': { ...ofCall, outcome: text, content },
    'state-changed': { writes: isFields },
    continuation: { text },
    compaction: { upToSeq: number, summary: text },
    'run-suspended': { waiting: texts },
    'run-stop': { reason: text },
  }),
);

/** The entry as it is written today: `conversationId` of a `sub-agent` entry was the sub-agent's once, not the log's. */
const current = (entry: LogEntry, id: string): LogEntry =>
  entry.type === 'sub-agent' && entry.child === undefined
    ? Object.freeze({ ...entry, conversationId: id, child: entry.conversationId })
    : entry;

/** The entry itself. Throws CorruptLogError `corrupt`. */
export function readable(entry: LogEntry): LogEntry {
  const found = Object(entry) as Fields;
  const checks: { [field: string]: Check } = { seq: number, type: text, ...SHAPES.get(found.type as string) };
  const odd = Object.keys(checks).find((field) => !checks[field]?.(found[field]));
  if (odd === undefined) return entry;
  const where = `entry ${found.seq} (${found.type}) of conversation "${found.conversationId}"`;
  const got = found[odd] === undefined ? 'nothing' : shown(found[odd]);
  throw new CorruptLogError('corrupt', `${where} cannot be used: its ${odd} is ${got}; the log was left as it is`);
}

/** All that a handle holds. Throws CorruptLogError: `gap` where an entry is missing, `fork` where one comes again, `corrupt`. */
export async function readLog(handle: LogHandle, id: string): Promise<LogEntry[]> {
  const log: LogEntry[] = [];
  for await (const entry of handle.read()) {
    const { seq } = readable(entry);
    if (seq !== log.length) {
      const what = `the log of conversation "${id}" goes on with entry ${seq}, expected entry ${log.length}`;
      throw new CorruptLogError(seq < log.length ? 'fork' : 'gap', `${what}; it was left as it is`);
    }
    log.push(current(entry, id));
  }
  return log;
}
