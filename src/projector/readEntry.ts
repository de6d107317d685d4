/**
 * Reads any value as an entry, and the runtime entries that views depend on. Rule: reading never throws, takes the wire
 * events that `wireEventSchema` takes and no others, and says what is odd about the rest; a known runtime entry without
 * a view is `ignored`, so that only unknown types are called unknown.
 */

import { eventsOfMessages } from '../../machines/log/earlierMessages.ts';
import type { Diagnostic, Json, Message, Usage } from '../../machines/vocabulary.ts';
import { copyJson, freezeList } from './frozenJson.ts';
import {
  type CallReading,
  malformed,
  odd,
  type Reading,
  type RuntimeReading,
  readAll,
  readParts,
  readWire,
  type SettlementReading,
} from './readWire.ts';

/** A value with what its envelope says. */
export interface Entry {
  reading: Reading;
  /** Undefined where there is none. */
  seq: number | undefined;
  runId: string | undefined;
  /** Whose entry it is, where it says so. */
  conversationId: string | undefined;
  /** A sub-agent's entry of an old log: the id it holds is that of the sub-agent; whose entry it is, it does not say. */
  tellsOfChild: boolean;
  /** There is a seq, but it is no whole number from 0 on. */
  badSeq: boolean;
}

/** Longer words of strangers are cut in diagnostics. */
const WORD_MAX = 80;
const cut = (word: string): string => (word.length > WORD_MAX ? `${word.slice(0, WORD_MAX)}…` : word);

export function readEntry(value: unknown): Entry {
  try {
    return read(value);
  } catch {
    return UNREADABLE;
  }
}

const bare = (reading: Reading): Entry => ({
  reading,
  seq: undefined,
  runId: undefined,
  conversationId: undefined,
  tellsOfChild: false,
  badSeq: false,
});

/** What a getter or a proxy that throws is read as. */
export const UNREADABLE: Entry = bare(odd('unreadable'));

function read(value: unknown): Entry {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return bare(odd('unknown', { is: value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value }));
  }
  const entry = value as Record<string, unknown>;
  const { seq, runId, conversationId } = entry;
  const tellsOfChild = entry.type === 'sub-agent' && entry.child === undefined;
  const hasSeq = typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0;
  return {
    reading: readEvent(entry),
    seq: hasSeq ? seq : undefined,
    runId: typeof runId === 'string' ? runId : undefined,
    conversationId: typeof conversationId === 'string' && !tellsOfChild ? conversationId : undefined,
    tellsOfChild,
    badSeq: !hasSeq && seq !== undefined,
  };
}

function readEvent(entry: Record<string, unknown>): Reading {
  const { type } = entry;
  if (typeof type !== 'string') return odd('unknown', { type: typeof type === 'number' ? String(type) : typeof type });
  const reading = readWire(type, entry) ?? readRuntime(type, entry);
  if (reading !== undefined) return typeof reading === 'string' ? malformed(type, reading) : reading;
  return odd(type.startsWith('xstate.') ? 'reserved' : 'unknown', { type: cut(type) });
}

type Fields = Record<string, unknown>;

/** Between two replies of the model: an answer's checkpoint, a text no user wrote; a placeholder is one too. */
const BOUNDARIES: ReadonlySet<string> = new Set(['checkpoint', 'run-started', 'continuation']);
const IGNORED: ReadonlySet<string> = new Set([
  'conversation',
  'tool-allowed',
  'decision-consumed',
  'state-changed',
  'model-retry',
  'compaction',
  'context-warning',
  'sub-agent',
  'notice',
  'extension',
]);
const BOUNDARY: RuntimeReading = { type: 'reply-boundary' };
const NOTHING: RuntimeReading = { type: 'ignored' };

/** The entry; the name of the field that refuses it; or undefined where the type is not known. */
function readRuntime(type: string, entry: Fields): RuntimeReading | string | undefined {
  switch (type) {
    case 'history':
      return readHistory(entry.messages);
    case 'model-reply':
      return { type, usage: readUsage(entry.usage) };
    case 'run-suspended':
      return readSuspended(entry.waiting);
    case 'run-resumed':
      return typeof entry.of === 'string' ? { type, of: entry.of } : 'of';
    case 'message-queued':
      return readQueued(entry);
    case 'message-returned':
      return typeof entry.messageId === 'string' ? { type, messageId: entry.messageId } : 'messageId';
    case 'call-settled':
      return readSettled(entry);
    case 'tool-started':
      return readStarted(entry) ?? NOTHING;
    case 'tool-suspended':
      return readSuspension(type, entry) ?? BOUNDARY;
    case 'decision':
      return readDecision(entry) ?? NOTHING;
    case 'diagnostic':
      return readDiagnostic(entry);
    default:
      return BOUNDARIES.has(type) ? BOUNDARY : IGNORED.has(type) ? NOTHING : undefined;
  }
}

/** What its messages stand for, each read as an event of its own. */
function readHistory(messages: unknown): RuntimeReading | string {
  try {
    return {
      type: 'history',
      readings: eventsOfMessages(messages as Message[]).map((event) => readEvent({ ...event })),
    };
  } catch {
    return 'messages';
  }
}

function readSuspended(waiting: unknown): RuntimeReading | string {
  const ids = readAll(waiting, (id) => (typeof id === 'string' ? id : undefined));
  return ids === undefined ? 'waiting' : { type: 'run-suspended', waiting: ids };
}

function readQueued({ messageId, kind, content }: Fields): RuntimeReading | string {
  if (typeof messageId !== 'string') return 'messageId';
  if (kind !== 'steer' && kind !== 'followUp') return 'kind';
  const parts = readParts(content);
  return parts === undefined ? 'content' : { type: 'message-queued', messageId, kind, content: parts };
}

function readStarted({ callId, args }: Fields): CallReading | undefined {
  return typeof callId === 'string' ? { type: 'tool-started', callId, args: copyJson(args) } : undefined;
}

function readSuspension<T extends string>(type: T, { callId, suspension }: Fields) {
  return typeof callId === 'string' && typeof suspension === 'number' ? { type, callId, suspension } : undefined;
}

function readDecision(entry: Fields): CallReading | undefined {
  const suspension = readSuspension('decision' as const, entry);
  const { by } = Object(entry.decision) as Fields;
  return suspension && { ...suspension, by: typeof by === 'string' ? by : undefined };
}

function readSettled({ callId, how }: Fields): RuntimeReading | string {
  if (typeof callId !== 'string') return 'callId';
  if (typeof how !== 'object' || how === null) return 'how';
  const settlement = readSettlement(how as Fields);
  return settlement === undefined ? 'how' : { type: 'call-settled', callId, settlement };
}

function readSettlement(how: Fields): SettlementReading | undefined {
  if (how.retry === true) return 'retry';
  if (how.didNotRun === true) return Object.freeze({ outcome: 'cancelled', content: freezeList([]) });
  const value = copyJson(how.ran);
  if (value === undefined) return undefined;
  const content = freezeList([Object.freeze({ type: 'text' as const, text: textOf(value) })]);
  return Object.freeze({ outcome: 'succeeded', content });
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

function readDiagnostic({ code, detail }: Fields): RuntimeReading | string {
  if (typeof code !== 'string') return 'code';
  const copied = copyJson(detail);
  const diagnostic: Diagnostic = copied === undefined ? { code } : { code, detail: copied };
  return { type: 'noted', diagnostic };
}

/** Counts a provider left out are 0. */
function readUsage(value: unknown): Usage | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = value as Fields;
  return Object.freeze({
    inputTokens: count(inputTokens),
    outputTokens: count(outputTokens),
    cachedInputTokens: count(cachedInputTokens),
    cacheWriteTokens: count(cacheWriteTokens),
    reasoningTokens: count(reasoningTokens),
  });
}

const count = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
