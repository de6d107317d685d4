/**
 * Whether a log that comes from a store can be read: its entries count on from 0, and each has the fields its type is
 * read by; how an entry is written today; and what brings the log of a dead process to rest. Rule: only what reading a
 * log depends on is demanded, so fields nobody knows and types of a later version pass; what is refused is named by its
 * seq.
 */
import { type LogEntry, type LogState, type NewEntry, repairs } from '../../machines/internal.ts';
import { CorruptLogError } from '../errors.ts';
import { type LogHandle, toleratedBy } from '../stores/store.ts';
import { display, isObject } from '../validation.ts';

type Fields = { [key: string]: unknown };
type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === 'string';
const number: Check = (value) => typeof value === 'number';
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
function fields(checks: { [key: string]: Check }): Check {
  const known = Object.entries(checks);
  return (value) => isObject(value) && known.every(([key, check]) => check(value[key]));
}

const textPart = fields({ text });
const imagePart = fields({ mediaType: text, data: text });
const otherPart = fields({ type: text });
const part: Check = (value) =>
  isObject(value) && (value.type === 'text' ? textPart : value.type === 'image' ? imagePart : otherPart)(value);
const every =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return false;
    // Not the list's own `every`, which passes over its holes.
    for (let index = 0; index < value.length; index++) if (!check(value[index])) return false;
    return true;
  };
const content = every(part);
const call = fields({ callId: text, name: text, argsText: maybe(text) });
const words = fields({ type: text, text });
const item: Check = (value) => isObject(value) && (value.type === 'tool-call' ? call : words)(value);
const roles: ReadonlyMap<unknown, Check> = new Map([
  ['user', fields({ content })],
  ['assistant', fields({ content, toolCalls: every(call) })],
  ['tool', fields({ content, callId: text })],
]);
const message: Check = (value) => isObject(value) && roles.get(value.role)?.(value) === true;
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
    history: { messages: every(message) },
    'model-reply': { usage, costUsd: cost },
    'tool-allowed': ofCall,
    'tool-started': ofCall,
    'tool-suspended': { ...ofSuspension, reason: text },
    decision: { ...ofSuspension, decision: fields({ action: text }) },
    'decision-consumed': ofSuspension,
    'call-settled': { ...ofCall, how: isObject },
    'tool-result': { ...ofCall, outcome: text, content },
    'state-changed': { writes: isObject },
    continuation: { text },
    compaction: { upToSeq: number, summary: text, usage: maybe(usage), costUsd: maybe(cost) },
    'run-suspended': { waiting: every(text) },
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
  const got = found[odd] === undefined ? 'nothing' : display(found[odd]);
  throw new CorruptLogError('corrupt', `${where} cannot be used: its ${odd} is ${got}; the log was left as it is`);
}

/** The entry that a log goes on with. Throws CorruptLogError: `gap` where one is missing, `fork` where one comes again, `corrupt`. */
export function nextEntry(entry: LogEntry, id: string, expected: number): LogEntry {
  const { seq } = readable(entry);
  if (seq === expected) return current(entry, id);
  const what = `the log of conversation "${id}" goes on with entry ${seq}, expected entry ${expected}`;
  throw new CorruptLogError(seq < expected ? 'fork' : 'gap', `${what}; it was left as it is`);
}

/** What brings a log that was read to rest where its process died, behind what its store tolerated in it. */
export const mended = (
  { notices = [] }: LogHandle,
  entries: readonly LogEntry[],
  logState: LogState,
  isIdempotent: (name: string) => boolean,
): NewEntry[] => [...toleratedBy(notices, entries), ...repairs(logState, isIdempotent)];
