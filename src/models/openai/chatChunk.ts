/**
 * Reads one chunk of a chat completion as servers really send it: text, tool calls, token counts, finish reason.
 * Invariant: it never throws. Unreadable data is reported by a code, and only choice 0 counts. Input tokens include
 * the cached ones. A missing count is 0 for details and absent for input and output. An unknown finish reason is
 * undefined: the reply did end.
 */
import type { FinishReason, Json, Usage } from '../../../machines/vocabulary.ts';
import type { CallDelta } from '../wire/callAssembly.ts';
import { isRecord, parseJson, tokenCount, type WireRecord } from '../wire/wireJson.ts';
import { readCallDeltas } from './callDeltas.ts';
import { reasoningFieldsIn } from './reasoningFields.ts';

export interface ChatChunk {
  kind: 'chunk';
  reasoning: string;
  text: string;
  refusal: string;
  calls: readonly CallDelta[];
  /** The server's own word, or empty. */
  finish: string;
  usage: Partial<Usage> | undefined;
  /** Fields that go back to the server with the reply. */
  reasoningFields: { [name: string]: Json } | undefined;
  /** Codes of unreadable data, each once. */
  odd: readonly string[];
}

export type ChunkReading =
  | ChatChunk
  | { kind: 'error'; body: unknown }
  | { kind: 'skipped'; code: string }
  | { kind: 'malformed' };

const NOTHING: readonly never[] = [];

/** Reads the data of one event. */
export function readChunk(data: string): ChunkReading {
  if (data.trim() === '') return { kind: 'skipped', code: 'chunk_empty' };
  const value = parseJson(data);
  return value === undefined ? { kind: 'malformed' } : chunkOf(value, 'delta');
}

/** Reads a parsed chunk (`delta`), or a whole completion that was not streamed (`message`). */
export function chunkOf(value: unknown, field: 'delta' | 'message'): ChunkReading {
  if (value === null) return { kind: 'skipped', code: 'chunk_null' };
  if (!isRecord(value)) return { kind: 'skipped', code: 'chunk_not_object' };
  if (value.error || value.object === 'error') return { kind: 'error', body: value };
  const chunk: ChatChunk = {
    kind: 'chunk',
    reasoning: '',
    text: '',
    refusal: '',
    calls: NOTHING,
    finish: '',
    usage: readUsage(value.usage),
    reasoningFields: undefined,
    odd: NOTHING,
  };
  if (!Array.isArray(value.choices)) {
    oddly(chunk, 'chunk_without_choices');
    return chunk;
  }
  const choice: unknown = value.choices.find(
    (one, at) => isRecord(one) && (typeof one.index === 'number' ? one.index : at) === 0,
  );
  if (isRecord(choice)) readChoice(choice, field, chunk);
  else if (value.choices.length > 0) oddly(chunk, 'choice_ignored');
  return chunk;
}

function readChoice(choice: WireRecord, field: 'delta' | 'message', chunk: ChatChunk): void {
  if (typeof choice.finish_reason === 'string') chunk.finish = choice.finish_reason;
  if (chunk.usage === undefined && choice.usage !== undefined) chunk.usage = readUsage(choice.usage);
  const delta = choice[field];
  if (!isRecord(delta)) {
    oddly(chunk, `chunk-without-${field}`);
    return;
  }
  chunk.reasoningFields = reasoningFieldsIn(delta);
  if (typeof delta.content === 'string') chunk.text = delta.content;
  else if (Array.isArray(delta.content)) readContentParts(delta.content, chunk);
  else if (delta.content !== undefined && delta.content !== null) oddly(chunk, 'content_unreadable');
  // Some servers send both names with the same text.
  const reasoning = delta.reasoning_content || delta.reasoning;
  if (typeof reasoning === 'string') chunk.reasoning += reasoning;
  if (typeof delta.refusal === 'string') chunk.refusal = delta.refusal;
  if (Array.isArray(delta.tool_calls)) {
    if (delta.tool_calls.length > 0) chunk.calls = readCallDeltas(delta.tool_calls, (code) => oddly(chunk, code));
  } else if (isRecord(delta.function_call)) {
    // The older form: one call without an id.
    chunk.calls = readCallDeltas([{ function: delta.function_call }], (code) => oddly(chunk, code));
  }
}

function oddly(chunk: ChatChunk, code: string): void {
  if (!chunk.odd.includes(code)) chunk.odd = [...chunk.odd, code];
}

function readContentParts(parts: readonly unknown[], chunk: ChatChunk): void {
  for (const part of parts) {
    if (!isRecord(part)) continue;
    if (part.type === 'text' && typeof part.text === 'string') chunk.text += part.text;
    if (part.type !== 'thinking' || !Array.isArray(part.thinking)) continue;
    for (const piece of part.thinking)
      if (isRecord(piece) && typeof piece.text === 'string') chunk.reasoning += piece.text;
  }
}

function readUsage(value: unknown): Partial<Usage> | undefined {
  if (!isRecord(value)) return undefined;
  const prompt = isRecord(value.prompt_tokens_details) ? value.prompt_tokens_details : {};
  const completion = isRecord(value.completion_tokens_details) ? value.completion_tokens_details : {};
  const inputTokens = tokenCount(value.prompt_tokens);
  const cachedInputTokens =
    tokenCount(prompt.cached_tokens) ??
    tokenCount(value.prompt_cache_hit_tokens) ??
    tokenCount(value.cached_tokens) ??
    0;
  const outputTokens = outputOf(value, inputTokens, cachedInputTokens);
  return {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    cachedInputTokens,
    cacheWriteTokens: tokenCount(prompt.cache_write_tokens) ?? tokenCount(value.cache_creation_input_tokens) ?? 0,
    reasoningTokens: tokenCount(completion.reasoning_tokens) ?? 0,
  };
}

/** Some servers count reasoning only in the total. A server that counts the cache apart from the input has another total. */
function outputOf(usage: WireRecord, input: number | undefined, cached: number): number | undefined {
  const output = tokenCount(usage.completion_tokens);
  const total = tokenCount(usage.total_tokens);
  if (output === undefined || input === undefined || total === undefined || cached > input) return output;
  return Math.max(output, total - input);
}

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['content_filter', 'content-filter'],
  ['safety', 'content-filter'],
  ['recitation', 'content-filter'],
  ['pause_turn', 'pause'],
]);
/** Words with which a server reports its failure. */
const FAILURES: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource']);

export function finishReason(word: string): FinishReason | 'failed' | undefined {
  const lowerWord = word.toLowerCase();
  return FAILURES.has(lowerWord) ? 'failed' : REASONS.get(lowerWord);
}
