/**
 * Converts a tool's return value to the value that the log stores, with a note if a person edited the arguments. Rule:
 * a result is bounded JSON. Secrets are removed before a text is cut, because half of a secret would not be recognised.
 * A cut value contains a note about it.
 */
import {
  type CallRecord,
  type Json,
  type StoredPart,
  type ToolCall,
  type ToolValue,
  textPart,
} from '../../machines/internal.ts';
import { type Content as HostContent, storedContent } from '../content/content.ts';
import { thrownText } from '../errors.ts';
import { bytesOf, toJson } from '../json.ts';
import type { Redact } from '../log/redact.ts';
import { partsOf, type ToolAnswer } from './tool.ts';

export interface ResultLimits {
  /** The most bytes of text in one result. */
  resultBytes: number;
  redact: Redact;
}

const CODE_LONGEST = 64;
const REASON_BYTES = 4_096;
/** Encoded bytes of one image or file, and of all in a result. A model's own limits apply later. */
const PART_MOST = 32 * 1_048_576;
const ALL_MOST = 2 * PART_MOST;
/** More text parts than these are joined. */
const PARTS_MOST = 1_000;
const MARK_BYTES = 48;

export type Erred = Extract<ToolValue, { kind: 'erred' }>;

export const erred = (code: string, words: string): Erred => ({
  kind: 'erred',
  code,
  content: textPart(words),
});

/** Returns the length, in UTF-16 code units, of the longest beginning of `characters` with at most `bytes` bytes. */
function unitsWithin(characters: Iterable<string>, bytes: number): number {
  let bytesLeft = bytes;
  let units = 0;
  for (const character of characters) {
    bytesLeft -= bytesOf(character);
    if (bytesLeft < 0) break;
    units += character.length;
  }
  return units;
}

/** Keeps the head and the tail of a text that is too long. */
export function cut(words: string, bytesMax: number): string {
  if (words.length * 3 <= bytesMax || (words.length <= bytesMax && bytesOf(words) <= bytesMax)) return words;
  const half = Math.max(0, Math.floor((bytesMax - MARK_BYTES) / 2));
  const head = unitsWithin(words, half);
  // A character has a byte or more, so the first of these, which may be half of one, does not fit.
  const tail = unitsWithin([...words.slice(-half - 1)].reverse(), half);
  const bytesOmitted = words.length - head - tail;
  return `${words.slice(0, head)}\n[${bytesOmitted} characters left out]\n${words.slice(words.length - tail)}`;
}

/** All parts share the limit of one result. If they exceed it together, they become one text. */
function bounded(parts: readonly StoredPart[], { resultBytes, redact }: ResultLimits): StoredPart[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? [redact(part.text)] : []));
  const attachments = parts.filter((part) => part.type !== 'text');
  const joined = texts.join('\n');
  const whole = cut(joined, resultBytes);
  if (whole !== joined || texts.length > PARTS_MOST) return [...textPart(whole), ...attachments];
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: redact(part.text) } : part));
}

type Content = StoredPart[] | { code: string; why: string };

function ofParts(parts: readonly StoredPart[], limits: ResultLimits): Content {
  const sizes = parts.map((part) => (part.type === 'text' ? 0 : part.data.length));
  const tooLarge = sizes.some((size) => size > PART_MOST) || sizes.reduce((a, b) => a + b, 0) > ALL_MOST;
  if (tooLarge) return { code: 'too_large', why: `an image or a file may have ${PART_MOST} bytes, encoded` };
  return bounded(parts, limits);
}

/**
 * The content that a plugin sets in place of a result, with the same limits. Throws for invalid content, or if it is
 * too large and cannot be cut.
 */
export function replacedContent(replacement: HostContent, limits: ResultLimits): StoredPart[] {
  const content = ofParts(storedContent(replacement), limits);
  if ('code' in content) throw new RangeError(content.why);
  return content;
}

export const isError = (value: unknown): boolean =>
  value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';

function contentOf(value: unknown, limits: ResultLimits): Content {
  const { redact, resultBytes } = limits;
  if (value === undefined) return textPart('(no output)');
  if (typeof value === 'string') return textPart(cut(redact(value), resultBytes));
  const parts = partsOf(value);
  if (parts) return ofParts(parts, limits);
  const json = toJson(value, 'refused');
  if (json.kind === 'refused') return { code: 'not_json', why: `the tool's result is no JSON: ${json.why}` };
  return textPart(cut(redact(JSON.stringify(json.value)), resultBytes));
}

/** A value beside the result, such as state or progress. It cannot be cut, so it is refused if it is too long. */
export function side(what: string, value: unknown, { redact, resultBytes }: ResultLimits): { value: Json } | Erred {
  const json = toJson(value, 'refused');
  if (json.kind === 'refused') return erred('not_json', cut(redact(`${what} is no JSON: ${json.why}`), resultBytes));
  if (bytesOf(JSON.stringify(json.value)) > resultBytes) {
    return erred('too_large', `${what} is longer than ${resultBytes} bytes`);
  }
  return { value: json.value };
}

/** The reason of a suspension by any author. */
export const reasonText = (reason: string, { redact }: ResultLimits): string => cut(redact(reason), REASON_BYTES);

function suspension(suspend: unknown, limits: ResultLimits): ToolValue {
  const { reason, payload } = (suspend ?? {}) as { reason?: unknown; payload?: unknown };
  if (typeof reason !== 'string') return erred('error', 'the tool suspended its call without a reason');
  const reasonShown = reasonText(reason, limits);
  if (payload === undefined) return { kind: 'pending', reason: reasonShown };
  const payloadValue = side('the payload of the suspension', payload, limits);
  return 'kind' in payloadValue ? payloadValue : { kind: 'pending', reason: reasonShown, payload: payloadValue.value };
}

/** Programs read codes, so they are short and contain no secrets. */
function codeOf(code: unknown, { redact }: ResultLimits): string {
  return typeof code === 'string' && code !== '' ? redact(code).slice(0, CODE_LONGEST) : 'error';
}

/** The value of a tool's answer. Throws if reading the answer throws. */
export function toolValue(answer: ToolAnswer, limits: ResultLimits): ToolValue {
  if (answer.status === 'pending') {
    const value = suspension(answer.suspend, limits);
    return answer.within && value.kind === 'pending' ? { ...value, within: true } : value;
  }
  if (isError(answer.content)) {
    const words = cut(limits.redact(thrownText(answer.content)), limits.resultBytes);
    return erred(answer.status === 'error' ? codeOf(answer.code, limits) : 'error', words);
  }
  const content = contentOf(answer.content, limits);
  if ('code' in content) return erred(content.code, cut(limits.redact(content.why), limits.resultBytes));
  if (answer.status === 'error') return { kind: 'erred', code: codeOf(answer.code, limits), content };
  if (answer.state === undefined) return { kind: 'succeeded', content };
  const state = side('the state the tool writes', answer.state, limits);
  if ('kind' in state) return state;
  const { value } = state;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return erred('not_json', 'the state a tool writes must be an object of keys and values');
  }
  return { kind: 'succeeded', content, writes: value };
}

/** True if this decision, or one before an earlier suspension, edited the arguments. */
function wasEdited({ decisions }: CallRecord, suspension: number): boolean {
  return [...decisions].some(([number, { action }]) => action === 'edit' && number <= suspension);
}

/** Returns the value unchanged if nothing was edited. `bytesMax` limits the arguments in the note. */
export function withEditNote(
  value: ToolValue,
  { call, record, suspension }: { call: ToolCall; record: CallRecord | undefined; suspension: number },
  bytesMax: number,
): ToolValue {
  if (value.kind === 'pending' || !record || !wasEdited(record, suspension)) return value;
  const note = `The user changed the arguments of this call before it ran: ${cut(JSON.stringify(call.args), bytesMax)}`;
  return { ...value, content: [...value.content, { type: 'text', text: note }] };
}
