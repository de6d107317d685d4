/**
 * Fields of a reply, and of its calls, that servers need back: signed or encrypted reasoning. Invariant: of a reply only
 * known fields are kept, under their original names and joined from their pieces. Fields go only to the model that wrote
 * them, and those of a call to its server, because another server refuses unknown fields.
 */
import type { Json, Message } from '../../../machines/vocabulary.ts';
import { isOfProvider } from '../wire/providerExtra.ts';
import { isRecord, plainCopy, type WireRecord } from '../wire/wireJson.ts';
import { type ChatModel, needsReasoning } from './serverRules.ts';

interface Fields {
  [name: string]: Json;
}

const NAMES = [
  'reasoning_content',
  'reasoning_details',
  'reasoning_opaque',
  'thinking_blocks',
  'encrypted_content',
  'extra_content',
] as const;
const DEPTH = 32;

/** Returns the fields of one delta, or undefined. */
export function reasoningFieldsIn(delta: WireRecord): Fields | undefined {
  let fields: Fields | undefined;
  for (const name of NAMES) {
    const value = delta[name];
    if (value === undefined || value === null || value === '') continue;
    const copy = plainCopy(value, DEPTH);
    if (copy === undefined) continue;
    fields ??= {};
    fields[name] = copy;
  }
  return fields;
}

/** Joins the pieces of one reply. */
export class ReasoningFields {
  readonly #texts = new Map<string, string>();
  readonly #lists = new Map<string, Fields[]>();
  readonly #objects = new Map<string, Fields>();

  add(fields: Fields): void {
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value === 'string') this.#texts.set(name, (this.#texts.get(name) ?? '') + value);
      else if (Array.isArray(value)) this.#append(name, value);
      else if (isRecord(value)) this.#objects.set(name, Object.assign(this.#objects.get(name) ?? {}, value));
    }
  }

  /** Returns the extra for the log, or undefined if there is none. */
  extraFor(model: string): Json | undefined {
    const fields = { ...Object.fromEntries([...this.#texts, ...this.#lists, ...this.#objects]) };
    return Object.keys(fields).length === 0 ? undefined : { chat: model, fields };
  }

  #append(name: string, pieces: readonly Json[]): void {
    const list = this.#lists.get(name) ?? [];
    this.#lists.set(name, list);
    for (const piece of pieces) {
      if (!isRecord(piece)) continue;
      const last = list.at(-1);
      if (last !== undefined && continues(last, piece as Fields)) joinInto(last, piece as Fields);
      else list.push({ ...(piece as Fields) });
    }
  }
}

/** These fields grow piece by piece. Every other field comes whole. */
const GROWING: ReadonlySet<string> = new Set(['text', 'thinking', 'summary']);

const isText = (value: unknown): boolean => value === undefined || value === null || typeof value === 'string';

/** Returns true for a later piece of the same item: the same type and index, and not a second whole item. */
function continues(item: Fields, piece: Fields): boolean {
  if (item.type !== piece.type || item.index !== piece.index) return false;
  if (piece.id !== undefined && piece.id !== null && item.id && item.id !== piece.id) return false;
  // A signature ends its item.
  if (item.signature) return false;
  return (
    [...GROWING].some((name) => typeof item[name] === 'string') && [...GROWING].every((name) => isText(piece[name]))
  );
}

function joinInto(item: Fields, piece: Fields): void {
  for (const [name, value] of Object.entries(piece)) {
    if (value === null) continue;
    const before = item[name];
    const grows = GROWING.has(name) && typeof before === 'string' && typeof value === 'string';
    item[name] = grows ? before + value : value;
  }
}

/** Returns the fields that this model needs back with the message. */
export function fieldsFor(message: Message, receiver: ChatModel): Fields | undefined {
  if (message.role !== 'assistant') return undefined;
  const kept = keptFields(message.extra, receiver.model);
  return needsReasoning(receiver) ? { reasoning_content: '', ...kept } : kept;
}

function keptFields(extra: Json | undefined, model: string): Fields | undefined {
  if (!isRecord(extra) || extra.chat !== model) return undefined;
  const { fields } = extra;
  if (!isRecord(fields)) return undefined;
  const kept = NAMES.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name] as Json] as const);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Returns the extra of a call for the log. */
export const extraOfCall = ({ model, server }: ChatModel, fields: Fields): Json => ({ chat: model, server, fields });

/** Returns the fields that go back with a call. In earlier logs they are the extra itself. */
export function callFieldsFor(extra: Json | undefined, { model, server }: ChatModel): Fields {
  if (!isRecord(extra) || isOfProvider(extra as Fields)) return {};
  const { chat, server: writer, fields } = extra as Fields;
  if (typeof chat !== 'string' || !isRecord(fields)) return extra as Fields;
  return chat === model || writer === server ? (fields as Fields) : {};
}
