/**
 * The blocks of a reply in order, with the provider's attachments to each. Invariant: a call, and a text that the
 * message contains, are stored as positions, not twice. Stored blocks count only if they match their message.
 */
import type { Json, Message, ToolCall } from '../../../machines/vocabulary.ts';
import { toJson } from '../../json.ts';
import { extraFrom, extraOf } from './providerExtra.ts';
import { isRecord } from './wireJson.ts';

/** The data that a provider attached to a block, by the provider's name. */
export type Options = Record<string, Record<string, Json>>;

export type Block =
  | { type: 'text' | 'reasoning'; text: string; options?: Options }
  | { type: 'call'; options?: Options }
  /** Something that only the provider reads, unchanged: a call that it executed itself, its result, encrypted reasoning. */
  | { type: 'executed'; part: Json };

const jsonOf = (value: unknown): Json | undefined => {
  const read = toJson(value);
  return read.kind === 'parsed' ? read.value : undefined;
};

const isJsonRecord = (value: Json | undefined): value is { [key: string]: Json } => isRecord(value);

/** Returns metadata as options: objects by the provider's name. Undefined if there are none. */
export function optionsOf(metadata: unknown): Options | undefined {
  const json = metadata === undefined || metadata === null ? undefined : jsonOf(metadata);
  if (!isJsonRecord(json)) return undefined;
  const own = Object.entries(json).filter((field): field is [string, Record<string, Json>] => isJsonRecord(field[1]));
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

const isBlank = (text: string): boolean => text.trim() === '';

/**
 * Returns true if the message alone contains everything: texts without metadata, then calls. A call's options are
 * stored with the call.
 */
function isPlain(blocks: readonly Block[]): boolean {
  let called = false;
  return blocks.every((block) => {
    if (block.type === 'call') called = true;
    return block.type === 'call' || (block.type === 'text' && !block.options && (!called || isBlank(block.text)));
  });
}

/**
 * Returns true if each text is a separate part of the message. Adjacent texts are one part there, and blank ones are
 * omitted.
 */
const standApart = (blocks: readonly Block[]): boolean =>
  blocks.every(
    (block, index) =>
      block.type !== 'text' ||
      (!isBlank(block.text) && index > 0 ? blocks[index - 1]?.type !== 'text' : !isBlank(block.text)),
  );

/** Returns the extra for the log, or undefined if the message contains everything. */
export function extraOfBlocks(provider: string, blocks: readonly Block[]): Json | undefined {
  if (isPlain(blocks)) return undefined;
  const apart = standApart(blocks);
  const kept = blocks.map((block) => {
    if (block.type !== 'text' || !apart) return block;
    return block.options ? { type: block.type, options: block.options } : { type: block.type };
  });
  return jsonOf(extraOf(provider, { blocks: kept as Json }));
}

export const extraOfCall = (provider: string, options: Options | undefined): Json | undefined =>
  options && extraOf(provider, { options });

export const optionsOfCall = (provider: string, { extra }: ToolCall): Options | undefined =>
  optionsOf(extraFrom(provider, extra)?.options);

type Assistant = Extract<Message, { role: 'assistant' }>;
/** A block with its text or its call. */
export type Filled = Exclude<Block, { type: 'call' }> | { type: 'call'; call: ToolCall };

function readBlock(value: Json, texts: string[], calls: ToolCall[]): Filled | undefined {
  if (!isJsonRecord(value)) return undefined;
  const options = optionsOf(value.options);
  if (value.type === 'call') {
    const call = calls.shift();
    return call && { type: 'call', call };
  }
  if (value.type === 'executed') return isJsonRecord(value.part) ? { type: 'executed', part: value.part } : undefined;
  if (value.type !== 'text' && value.type !== 'reasoning') return undefined;
  const text = value.text ?? (value.type === 'text' ? texts.shift() : undefined);
  return typeof text === 'string' ? { type: value.type, text, ...(options && { options }) } : undefined;
}

const bare = (texts: readonly string[]): string => texts.join('').replace(/\s+/g, '');

/** Returns the blocks of a message as the provider sent them, or in the usual order if the stored ones do not match. */
export function blocksOf(provider: string, message: Assistant): readonly Filled[] {
  const { content, toolCalls, extra } = message;
  const messageTexts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const plain: Filled[] = [
    ...messageTexts.map((text) => ({ type: 'text' as const, text })),
    ...toolCalls.map((call) => ({ type: 'call' as const, call })),
  ];
  const kept = extraFrom(provider, extra)?.blocks;
  if (!Array.isArray(kept)) return plain;
  const texts = [...messageTexts];
  const calls = [...toolCalls];
  const filled = kept.map((block) => readBlock(block, texts, calls));
  const whole = filled.filter((block) => block !== undefined);
  const blockTexts = whole.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  const fits = whole.length === filled.length && calls.length === 0 && bare(blockTexts) === bare(messageTexts);
  return fits ? whole : plain;
}
