/**
 * Reads any value as an entry: the wire events (docs/internals/model.md, Input Model) and the runtime entries that
 * views depend on. Invariant: reading never throws. It accepts the wire events that `wireEventSchema` accepts and no
 * others, and keeps no part of the foreign value. It reports everything else; a known runtime entry without a view is
 * `ignored`.
 */

import { eachEarlierEntry } from '../../machines/log/earlierMessages.ts';
import { groupNames, toolGroups } from '../../machines/tools/toolGroups.ts';
import type {
  Diagnostic,
  GroupName,
  Json,
  LogEntry,
  Message,
  MessageKind,
  StopReason,
  StoredPart,
  TextFlag,
  ToolOutcome,
  Usage,
} from '../../machines/vocabulary.ts';
import { copyJson, freezeList, isJson } from './collections.ts';
import type { BlockText, ToolCallView, ToolResultView } from './view.ts';

type Fields = Record<string, unknown>;

const STOP_REASONS: ReadonlySet<unknown> = new Set<StopReason>(['completed', 'interrupted', 'error']);
const OUTCOMES: ReadonlySet<unknown> = new Set<ToolOutcome>(['succeeded', 'failed', 'cancelled', 'unknown']);

const isStopReason = (value: unknown): value is StopReason => STOP_REASONS.has(value);
const isOutcome = (value: unknown): value is ToolOutcome => OUTCOMES.has(value);
const isKind = (value: unknown): value is MessageKind =>
  value === 'direct' || value === 'steer' || value === 'followUp';
const isFlag = (value: unknown): value is TextFlag => value === 'interrupted' || value === 'refusal';
const isMaybeText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string';

function readMessage({ messageId, kind, content }: Fields): WireReading | string {
  if (typeof messageId !== 'string') return 'messageId';
  if (kind !== undefined && !isKind(kind)) return 'kind';
  const parts = readParts(content);
  return parts === undefined ? 'content' : { type: 'user-message', messageId, kind, content: parts };
}

function readStop({ reason, cause }: Fields): WireReading | string {
  if (!isMaybeText(cause)) return 'cause';
  const knownReason = isStopReason(reason) ? reason : 'error';
  const stop = Object.freeze(cause === undefined ? { reason: knownReason } : { reason: knownReason, cause });
  return knownReason === reason
    ? { type: 'run-stop', stop }
    : { type: 'run-stop', stop, unknownReason: wordOf(reason) };
}

function readResult({ callId, outcome, content, code }: Fields): WireReading | string {
  if (typeof callId !== 'string') return 'callId';
  if (!isOutcome(outcome)) return 'outcome';
  if (!isMaybeText(code)) return 'code';
  const parts = readParts(content);
  if (parts === undefined) return 'content';
  const result: ToolResultView = code === undefined ? { outcome, content: parts } : { outcome, content: parts, code };
  return { type: 'tool-result', callId, result: Object.freeze(result) };
}

/** Accepts one `item`, or several under `item` or `items`: some backends send a whole reply as one event. */
function readOutput({ item, items }: Fields): WireReading | string {
  const one = readItem(item);
  if (one !== undefined) return { type: 'agent-output', items: [one] };
  const several = readAll(item, readItem) ?? readAll(items, readItem);
  return several === undefined ? 'item' : { type: 'agent-output', items: several };
}

/** Returns one event for each item of a reply that is one event, and any other value as it is. */
export function separateItems(event: object): object[] {
  const { item, items, ...rest } = event as { type?: unknown; item?: unknown; items?: unknown };
  const several = Array.isArray(item) ? item : item === undefined ? items : undefined;
  // A numbered event keeps its number, so it stays one.
  if (rest.type !== 'agent-output' || 'seq' in rest || !Array.isArray(several)) return [event];
  return several.map((each) => ({ ...rest, item: each }));
}

function readItem(value: unknown): ItemReading | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { type, text, flag } = value as Fields;
  if (type === 'tool-call') return readCall(value as Fields);
  if ((type !== 'assistant' && type !== 'reasoning') || typeof text !== 'string') return undefined;
  if (flag !== undefined && !isFlag(flag)) return undefined;
  const item: BlockText = flag === undefined ? { kind: type, text } : { kind: type, text, flag };
  return Object.freeze(item);
}

const GROUP_NAMES: ReadonlySet<unknown> = new Set(groupNames);
export const isGroupName = (value: unknown): value is GroupName => GROUP_NAMES.has(value);

const GROUPS: ReadonlyMap<string, GroupName> = new Map(
  groupNames.flatMap((group) => toolGroups[group].map((name) => [name, group] as const)),
);
/** The group of a tool that declares none. A name counts without regard to case. */
export const groupOfName = (name: string): GroupName => GROUPS.get(name.toLowerCase()) ?? 'other-group';

function readCall({ callId, name, args, argsText, group, extra }: Fields): ItemReading | undefined {
  if (typeof callId !== 'string' || typeof name !== 'string' || !isMaybeText(argsText)) return undefined;
  if (extra !== undefined && !isJson(extra)) return undefined;
  const copied = copyJson(args);
  if (copied === undefined) return undefined;
  const call = Object.freeze({ callId, name, args: copied, state: 'waiting' as const, result: null });
  // A group of a later version is unknown here, and the call must be shown nevertheless.
  return { kind: 'tool-call', call, group: isGroupName(group) ? group : undefined };
}

/** Returns the content as frozen copies, or undefined if it is invalid. */
export function readParts(value: unknown): StoredPart[] | undefined {
  const parts = readAll(value, readPart);
  return parts === undefined ? undefined : freezeList(parts);
}

/** Reads every element. Returns undefined if the value is not a list or an element is invalid. */
export function readAll<T>(value: unknown, read: (element: unknown) => T | undefined): T[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const list = new Array<T>(value.length);
  for (let i = 0; i < list.length; i++) {
    const element = read(value[i]);
    if (element === undefined) return undefined;
    list[i] = element;
  }
  return list;
}

function readPart(value: unknown): StoredPart | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { type, text, mediaType, name, data } = value as Fields;
  if (type === 'text') return typeof text === 'string' ? Object.freeze({ type, text }) : undefined;
  if (typeof mediaType !== 'string' || typeof data !== 'string' || !isMaybeText(name)) return undefined;
  if (type !== 'image' && type !== 'file') return undefined;
  return Object.freeze({ type, mediaType, ...(name !== undefined && { name }), data });
}

export type ItemReading = BlockText | { kind: 'tool-call'; call: ToolCallView; group: GroupName | undefined };

export interface MessageReading {
  type: 'user-message';
  messageId: string;
  /** Undefined if the sender left the choice to the receiver. */
  kind: MessageKind | undefined;
  content: StoredPart[];
}

type WireReading =
  | MessageReading
  | { type: 'agent-output'; items: readonly ItemReading[] }
  | { type: 'tool-result'; callId: string; result: ToolResultView }
  /** `unknownReason` is the value in the place of a reason. The stop still ends its cycle. */
  | { type: 'run-stop'; stop: { reason: StopReason; cause?: string }; unknownReason?: Json };

/** The host's settlement of a call: its result, or `retry`, after which the next result counts. */
export type SettlementReading = ToolResultView | 'retry';

/** Events of a call before its result. */
export type CallReading =
  | { type: 'tool-started'; callId: string; args: Json | undefined }
  | { type: 'tool-suspended'; callId: string; suspension: number }
  | { type: 'decision'; callId: string; suspension: number; by: string | undefined };

export type RuntimeReading =
  | CallReading
  /** Earlier messages, each read as an event. */
  | { type: 'history'; readings: readonly Reading[] }
  | { type: 'run-suspended'; waiting: readonly string[] }
  | { type: 'run-resumed'; of: string }
  | { type: 'message-queued'; messageId: string; kind: 'steer' | 'followUp'; content: StoredPart[] }
  | { type: 'message-returned'; messageId: string }
  | { type: 'call-settled'; callId: string; settlement: SettlementReading }
  | { type: 'model-reply'; usage: Usage | undefined }
  /** The next output belongs to another reply of the model. */
  | { type: 'reply-boundary' }
  /** The cycles that began after `toSeq` are superseded. */
  | { type: 'rewound'; toSeq: number }
  | { type: 'noted'; diagnostic: Diagnostic }
  /** A known entry that no view shows. */
  | { type: 'ignored' };

interface OddReading {
  type: 'odd';
  code: string;
  detail?: Json;
}

export type Reading = WireReading | RuntimeReading | OddReading;

export const odd = (code: string, detail?: Json): OddReading =>
  detail === undefined ? { type: 'odd', code } : { type: 'odd', code, detail };

export const malformed = (type: string, field: string): OddReading => odd('malformed', { type, field });

/** A reading with the fields of its envelope. */
export interface Entry {
  reading: Reading;
  /** Undefined if the entry has none. */
  seq: number | undefined;
  runId: string | undefined;
  /** The conversation of the entry, if it names one. */
  conversationId: string | undefined;
  /** A sub-agent entry of an old log. Its conversation id is the sub-agent's, so its own conversation is unknown. */
  tellsOfChild: boolean;
  /** The entry has a `seq` that is not a whole number from 0 on. */
  badSeq: boolean;
}

/** Longer foreign words are cut in diagnostics. */
const WORD_MAX = 80;
/** Returns a value as diagnostics show it: strings and plain values as they are, else the name of the type. */
function wordOf(value: unknown): Json {
  if (typeof value === 'string') return cut(value);
  return value === null || typeof value === 'boolean' || Number.isFinite(value) ? (value as Json) : typeof value;
}

const cut = (word: string): string => (word.length > WORD_MAX ? `${word.slice(0, WORD_MAX)}…` : word);

export function readEntry(value: unknown): Entry {
  try {
    return readEnvelope(value);
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

/** The reading of a value with a getter or a proxy that throws. */
export const UNREADABLE: Entry = bare(odd('unreadable'));

function readEnvelope(value: unknown): Entry {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return bare(odd('unknown', { is: value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value }));
  }
  const entry = value as Record<string, unknown>;
  const { seq, runId, conversationId } = entry;
  const tellsOfChild = entry.type === 'sub-agent' && entry.child === undefined;
  const hasSeq = typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0;
  return {
    reading: readEvent(entry),
    // -Turns -0 into 0.
    seq: hasSeq ? seq + 0 : undefined,
    runId: typeof runId === 'string' ? runId : undefined,
    conversationId: typeof conversationId === 'string' && !tellsOfChild ? conversationId : undefined,
    tellsOfChild,
    badSeq: !hasSeq && seq !== undefined,
  };
}

function readEvent(entry: Record<string, unknown>): Reading {
  const { type } = entry;
  if (typeof type !== 'string') return odd('unknown', { type: typeof type === 'number' ? String(type) : typeof type });
  const read = READERS.get(type);
  if (read) {
    const reading = read(entry);
    return typeof reading === 'string' ? malformed(type, reading) : reading;
  }
  return odd(type.startsWith('xstate.') ? 'reserved' : 'unknown', { type: cut(type) });
}

/** The next output belongs to another reply: a reply's checkpoint, or a text that no user wrote, such as a placeholder. */
const BOUNDARY: RuntimeReading = { type: 'reply-boundary' };
const NOTHING: RuntimeReading = { type: 'ignored' };
const asBoundary = (): RuntimeReading => BOUNDARY;
const ignored = (): RuntimeReading => NOTHING;

/** Returns the reading, or the name of the invalid field. */
type Reader = (entry: Fields) => Reading | string;

const BY_KIND: { readonly [Kind in LogEntry['type']]: Reader } = {
  'user-message': readMessage,
  'agent-output': readOutput,
  'tool-result': readResult,
  'run-stop': readStop,
  conversation: ignored,
  history: ({ messages }) => readHistory(messages),
  'run-started': asBoundary,
  'run-resumed': ({ of }) => (typeof of === 'string' ? { type: 'run-resumed', of } : 'of'),
  'run-suspended': ({ waiting }) => readSuspended(waiting),
  'message-queued': readQueued,
  'message-returned': ({ messageId }) =>
    typeof messageId === 'string' ? { type: 'message-returned', messageId } : 'messageId',
  'tool-allowed': ignored,
  'tool-started': (entry) => readStarted(entry) ?? NOTHING,
  'tool-suspended': (entry) => readSuspension('tool-suspended', entry) ?? BOUNDARY,
  decision: (entry) => readDecision(entry) ?? NOTHING,
  'decision-consumed': ignored,
  'call-settled': readSettled,
  'state-changed': ignored,
  continuation: asBoundary,
  'model-reply': ({ usage }) => ({ type: 'model-reply', usage: readUsage(usage) }),
  'model-retry': ignored,
  compaction: ignored,
  'context-warning': ignored,
  'sub-agent': ignored,
  checkpoint: asBoundary,
  renamed: ignored,
  rewound: ({ toSeq }) => (Number.isSafeInteger(toSeq) ? { type: 'rewound', toSeq: toSeq as number } : 'toSeq'),
  notice: ignored,
  diagnostic: readDiagnostic,
  extension: ignored,
};
/** A map has no inherited names, so a foreign type such as `constructor` is unknown. */
const READERS: ReadonlyMap<string, Reader> = new Map(Object.entries(BY_KIND));

/** Reads each of its messages as an event. */
function readHistory(messages: unknown): RuntimeReading | string {
  try {
    const readings: Reading[] = [];
    const entry = { messages: messages as Message[], seq: 0, at: 0, conversationId: '' };
    eachEarlierEntry(entry, (earlier) => void readings.push(readEvent({ ...earlier })));
    return { type: 'history', readings };
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

/** Counts that a provider omits are 0. */
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
