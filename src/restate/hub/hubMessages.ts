/**
 * The messages between hubs: signals of conversations as JSON, in payloads that fit a notification. Invariant: a payload may come from
 * anybody, so each field is checked and copied, and other shapes are ignored.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Live } from '../../live.ts';
import { byteLength, PAYLOAD_BYTES_MAX } from '../../stores/postgres/channelConnection.ts';
import { isObject } from '../../validation.ts';

/** Signals at one place of the log. Undefined: a signal of another version. */
export interface PlacedSignals {
  readonly next: number;
  readonly signals: readonly (Live | undefined)[];
}

export type HubMessage = { readonly id: string } & (
  | { readonly type: 'appended'; readonly length: number; readonly isReplyOpen: boolean }
  /** A signal that is complete by itself. */
  | { readonly type: 'single'; readonly next: number; readonly signal: Live }
  /** More text of a reply. `from`: the number of its first signal. */
  | ({ readonly type: 'text'; readonly reply: number; readonly from: number } & PlacedSignals)
  /** A copy of a reply in parts: all signals before the number `upTo`. */
  | ({
      readonly type: 'so-far';
      readonly reply: number;
      readonly upTo: number;
      readonly part: number;
      readonly parts: number;
    } & PlacedSignals)
);

const isText = (value: unknown): value is string => typeof value === 'string';
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const STATUSES: ReadonlySet<unknown> = new Set(['idle', 'active', 'waiting', 'cancelling']);

type Fields = { readonly [name: string]: unknown };

/** The fields of the type, which are all required but the path. */
function signalOf(value: unknown): Live | undefined {
  if (!isObject(value)) return undefined;
  const { path } = value;
  const signal = fieldsOf(value);
  if (!signal || path === undefined) return signal;
  return Array.isArray(path) && path.every(isText) ? { ...signal, path } : undefined;
}

function fieldsOf({ type, runId, text, index, callId, name, elapsedMs, update, status, state }: Fields) {
  if (type === 'status') return STATUSES.has(status) ? ({ type, status } as Live) : undefined;
  if (type === 'state') return isObject(state) ? ({ type, state } as Live) : undefined;
  // Without the id of a run, a reset would remove the log that a client has.
  if (!isText(runId) || runId === '') return undefined;
  if (type === 'reset') return { type, runId } satisfies Live;
  if (type === 'tool-progress') {
    if (!isText(callId) || typeof elapsedMs !== 'number' || update === undefined) return undefined;
    return { type, runId, callId, elapsedMs, update: update as Json } satisfies Live;
  }
  if (!isText(text)) return undefined;
  if (type === 'text-delta' || type === 'reasoning-delta') return { type, runId, text } satisfies Live;
  if (type !== 'tool-input-delta' || !isCount(index)) return undefined;
  const named = { ...(isText(callId) && { callId }), ...(isText(name) && { name }) };
  return { type, runId, index, ...named, text } satisfies Live;
}

function messageOf(value: unknown): HubMessage | undefined {
  if (!isObject(value) || !isText(value.id)) return undefined;
  const { id, type, length, isReplyOpen, next, signal: single, signals: list, reply, from, upTo, part, parts } = value;
  if (type === 'appended') return isCount(length) ? { id, type, length, isReplyOpen: isReplyOpen === true } : undefined;
  if (!isCount(next)) return undefined;
  if (type === 'single') {
    const signal = signalOf(single);
    return signal && { id, type, next, signal };
  }
  if (!isCount(reply) || !Array.isArray(list)) return undefined;
  const signals = list.map(signalOf);
  if (type === 'text') return isCount(from) ? { id, type, reply, from, next, signals } : undefined;
  if (type !== 'so-far' || !isCount(upTo) || !isCount(part) || !isCount(parts)) return undefined;
  return { id, type, reply, upTo, part, parts, next, signals };
}

/** The messages of a payload and the hub that sent them. Undefined for a payload of somebody else. */
export function readPayload(payload: string): { hub: string; messages: HubMessage[] } | undefined {
  try {
    const sent: unknown = JSON.parse(payload, (key, value) => (key === '__proto__' ? undefined : value));
    if (!isObject(sent) || !isText(sent.hub) || !Array.isArray(sent.messages)) return undefined;
    return { hub: sent.hub, messages: sent.messages.flatMap((message) => messageOf(message) ?? []) };
  } catch {
    return undefined;
  }
}

const BRACKETS = 2;
const COMMA = 1;

/** The messages in payloads, in their order. A message that no payload can contain is left out. */
export function payloadsOf(hub: string, messages: readonly HubMessage[]): string[] {
  const frame = byteLength(JSON.stringify({ hub, messages: [] }));
  const batches: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const message of messages) {
    const text = JSON.stringify(message);
    const size = byteLength(text) + COMMA;
    if (frame + size > PAYLOAD_BYTES_MAX) continue;
    if (bytes + size > PAYLOAD_BYTES_MAX) {
      batches.push([]);
      bytes = frame;
    }
    bytes += size;
    batches.at(-1)?.push(text);
  }
  const head = JSON.stringify({ hub, messages: [] }).slice(0, -BRACKETS);
  return batches.map((batch) => `${head}${batch.join()}]}`);
}

/** Room for the fields around the signals, without the id. */
const FIELDS_BYTES = 400;

/** The signals in lists that each fit a message of this conversation, if any of them does. */
export function listsOf<S>(id: string, signals: readonly S[]): S[][] {
  const most = PAYLOAD_BYTES_MAX - FIELDS_BYTES - byteLength(JSON.stringify(id));
  const lists: S[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const signal of signals) {
    const size = byteLength(JSON.stringify(signal)) + COMMA;
    if (bytes + size > most) {
      lists.push([]);
      bytes = 0;
    }
    bytes += size;
    lists.at(-1)?.push(signal);
  }
  return lists;
}
