/**
 * Reads the four wire events (request-cycle-model, Input Model), and declares what reading gives: own frozen data in
 * the shapes the views show, or `odd` with the diagnostic's words. Rule: a field of a wrong shape refuses the whole
 * event by the field's name; unknown fields are left alone; nothing of the foreign value is kept.
 */
import type {
  Diagnostic,
  GroupName,
  Json,
  MessageKind,
  StopReason,
  StoredPart,
  TextFlag,
  ToolOutcome,
  Usage,
} from '../../machines/vocabulary.ts';
import { copyJson, freezeList, isJson } from './frozenJson.ts';
import type { BlockText, ToolCallView, ToolResultView } from './view.ts';

type Fields = Record<string, unknown>;

const STOP_REASONS: ReadonlySet<unknown> = new Set<StopReason>(['completed', 'interrupted', 'error']);
const OUTCOMES: ReadonlySet<unknown> = new Set<ToolOutcome>(['succeeded', 'failed', 'cancelled', 'unknown']);
const GROUPS: ReadonlySet<unknown> = new Set<GroupName>(['read-group', 'write-group', 'bash-group', 'other-group']);

export const isGroupName = (value: unknown): value is GroupName => GROUPS.has(value);
const isStopReason = (value: unknown): value is StopReason => STOP_REASONS.has(value);
const isOutcome = (value: unknown): value is ToolOutcome => OUTCOMES.has(value);
const isKind = (value: unknown): value is MessageKind =>
  value === 'direct' || value === 'steer' || value === 'followUp';
const isFlag = (value: unknown): value is TextFlag => value === 'interrupted' || value === 'refusal';
const isMaybeText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string';

/** The event; the name of the field that refuses it; or undefined where the type is none of the four. */
export function readWire(type: string, entry: Fields): WireReading | string | undefined {
  switch (type) {
    case 'agent-output':
      return readOutput(entry);
    case 'tool-result':
      return readResult(entry);
    case 'user-message':
      return readMessage(entry);
    case 'run-stop':
      return readStop(entry);
    default:
      return undefined;
  }
}

function readMessage({ messageId, kind, content }: Fields): WireReading | string {
  if (typeof messageId !== 'string') return 'messageId';
  if (kind !== undefined && !isKind(kind)) return 'kind';
  const parts = readParts(content);
  return parts === undefined ? 'content' : { type: 'user-message', messageId, kind, content: parts };
}

function readStop({ reason, cause }: Fields): WireReading | string {
  if (!isMaybeText(cause)) return 'cause';
  const known = isStopReason(reason) ? reason : 'error';
  const stop = Object.freeze(cause === undefined ? { reason: known } : { reason: known, cause });
  return known === reason ? { type: 'run-stop', stop } : { type: 'run-stop', stop, odd: 'reason' };
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

/** One `item`, or several under `item` or `items`: some backends send a whole reply as one event. */
function readOutput({ item, items }: Fields): WireReading | string {
  const one = readItem(item);
  if (one !== undefined) return { type: 'agent-output', items: [one] };
  const several = readAll(item, readItem) ?? readAll(items, readItem);
  return several === undefined ? 'item' : { type: 'agent-output', items: several };
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

function readCall({ callId, name, args, argsText, group, extra }: Fields): ItemReading | undefined {
  if (typeof callId !== 'string' || typeof name !== 'string' || !isMaybeText(argsText)) return undefined;
  if (extra !== undefined && !isJson(extra)) return undefined;
  const copied = copyJson(args);
  if (copied === undefined) return undefined;
  const call = Object.freeze({ callId, name, args: copied, state: 'waiting' as const, result: null });
  // A group of a later version must not cost the call.
  return { kind: 'tool-call', call, group: isGroupName(group) ? group : undefined };
}

/** Content as frozen parts of our own, or undefined where it is none. */
export function readParts(value: unknown): StoredPart[] | undefined {
  const parts = readAll(value, readPart);
  return parts === undefined ? undefined : freezeList(parts);
}

/** Every element read, or undefined where the value is no list or one of them refuses. */
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
  const { type, text, mediaType, data } = value as Fields;
  if (type === 'text') return typeof text === 'string' ? Object.freeze({ type, text }) : undefined;
  if (type !== 'image' || typeof mediaType !== 'string' || typeof data !== 'string') return undefined;
  return Object.freeze({ type, mediaType, data });
}

export type ItemReading = BlockText | { kind: 'tool-call'; call: ToolCallView; group: GroupName | undefined };

export interface MessageReading {
  type: 'user-message';
  messageId: string;
  /** Undefined where the sender left it to the receiver. */
  kind: MessageKind | undefined;
  content: StoredPart[];
}

type WireReading =
  | MessageReading
  | { type: 'agent-output'; items: readonly ItemReading[] }
  | { type: 'tool-result'; callId: string; result: ToolResultView }
  /** `odd`: the field whose value is of no known form; the stop ends its cycle all the same. */
  | { type: 'run-stop'; stop: { reason: StopReason; cause?: string }; odd?: 'reason' };

/** The host's word on a call: the result it stands for, or `retry`: the next result counts. */
export type SettlementReading = ToolResultView | 'retry';

/** What a call came to before its result. */
export type CallReading =
  | { type: 'tool-started'; callId: string; args: Json | undefined }
  | { type: 'tool-suspended'; callId: string; suspension: number }
  | { type: 'decision'; callId: string; suspension: number; by: string | undefined };

export type RuntimeReading =
  | CallReading
  /** What came before, read event by event. */
  | { type: 'history'; readings: readonly Reading[] }
  | { type: 'run-suspended'; waiting: readonly string[] }
  | { type: 'run-resumed'; of: string }
  | { type: 'message-queued'; messageId: string; kind: 'steer' | 'followUp'; content: StoredPart[] }
  | { type: 'message-returned'; messageId: string }
  | { type: 'call-settled'; callId: string; settlement: SettlementReading }
  | { type: 'model-reply'; usage: Usage | undefined }
  /** What follows belongs to another reply of the model. */
  | { type: 'reply-boundary' }
  | { type: 'noted'; diagnostic: Diagnostic }
  /** Known, and of no concern to the views. */
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
