/**
 * Turns the events of a Responses stream into the parts of one reply. Invariant: a reply is complete only with
 * `response.completed` or `response.incomplete`. Items that only the provider reads are kept in their order, since it
 * needs them back. Unreadable data becomes diagnostics.
 */
import type { FinishReason, Json, Usage } from '../../../machines/vocabulary.ts';
import { ModelError, type ModelPart } from '../model.ts';
import { CallAssembly } from '../wire/callAssembly.ts';
import type { WireReply } from '../wire/httpCall.ts';
import { badFrame, providerError } from '../wire/httpErrors.ts';
import { type Block, extraOfBlocks } from '../wire/replyBlocks.ts';
import { ReplyWriter } from '../wire/replyWriter.ts';
import { isRecord, parseJson, plainCopy, tokenCount, type WireRecord } from '../wire/wireJson.ts';

const ITEM_DEPTH = 32;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export class ResponsesReply implements WireReply {
  readonly #writer: ReplyWriter;
  readonly #calls: CallAssembly;
  readonly #provider: string;
  readonly #secrets: readonly string[];
  /** The items of the reply by their index, once complete. */
  readonly #items = new Map<number, WireRecord>();
  /** The indexes of items whose text, or whose arguments, were streamed. */
  readonly #streamed = new Set<number>();
  /** The indexes of calls whose name was written. */
  readonly #named = new Set<number>();
  #phase: WireReply['phase'] = 'reading';
  #finish: FinishReason | undefined;
  #usage: Partial<Usage> | undefined;
  #refused = false;
  #events = 0;

  /** `provider`: the name under which the message keeps the items. */
  constructor(
    write: (part: ModelPart) => void,
    { provider, secrets }: { provider: string; secrets: readonly string[] },
  ) {
    this.#writer = new ReplyWriter(write);
    this.#calls = new CallAssembly(this.#writer);
    this.#provider = provider;
    this.#secrets = secrets;
  }

  get phase(): WireReply['phase'] {
    return this.#phase;
  }

  event(data: string, name: string | undefined, isCut: boolean): void {
    if (data.trim() === '' || data.trim() === '[DONE]') return;
    if (this.#phase === 'done') return this.diagnose('after_done');
    const event = parseJson(data);
    if (isRecord(event)) this.#take(event, textOf(event.type) || (name ?? ''), data.length);
    else if (event !== undefined) this.diagnose('chunk_not_object');
    else if (isCut) this.diagnose('chunk_malformed');
    else throw badFrame();
  }

  whole(body: unknown): void {
    if (!isRecord(body)) throw badFrame();
    if (body.error && body.object !== 'response') throw providerError(body, this.#secrets);
    this.#events += 1;
    this.#end(body);
  }

  diagnose(code: string): void {
    this.#writer.diagnose(code);
  }

  end(): void {
    if (this.#finish === undefined) throw incomplete(this.#events);
    const calls = this.#calls.end();
    const reason = this.#finish === 'stop' && calls > 0 ? 'tool-calls' : this.#finish;
    const extra = this.#extra();
    this.#writer.write({
      ...{ type: 'finish', reason },
      ...(this.#usage !== undefined && { usage: this.#usage }),
      ...(extra !== undefined && { extra }),
    });
  }

  #take(event: WireRecord, type: string, size: number): void {
    this.#events += 1;
    const index = typeof event.output_index === 'number' ? event.output_index : this.#items.size;
    switch (type) {
      case 'response.output_text.delta':
        return this.#text(index, event.delta);
      case 'response.refusal.delta':
        return this.#refusal(index, event.delta);
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#reasoning(index, event.delta);
      case 'response.reasoning_summary_part.added':
        // Parts are paragraphs.
        return this.#streamed.has(index) ? this.#reasoning(index, '\n\n') : undefined;
      case 'response.output_item.added':
        return isRecord(event.item) ? this.#added(index, event.item) : undefined;
      case 'response.function_call_arguments.delta':
        return this.#arguments(index, event.delta);
      case 'response.output_item.done':
        return isRecord(event.item) ? this.#done(index, event.item, size) : undefined;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(isRecord(event.response) ? event.response : {}, type);
      case 'error':
        throw providerError(isRecord(event.error) ? event : { error: event }, this.#secrets);
    }
  }

  #text(index: number, delta: unknown): void {
    this.#delta('text-delta', index, textOf(delta));
  }

  #reasoning(index: number, delta: unknown): void {
    this.#delta('reasoning-delta', index, textOf(delta));
  }

  #refusal(index: number, delta: unknown): void {
    if (!this.#refused) this.#writer.write({ type: 'refusal' });
    this.#refused = true;
    this.#text(index, delta);
  }

  #delta(type: 'text-delta' | 'reasoning-delta', index: number, text: string): void {
    if (text === '') return;
    this.#streamed.add(index);
    this.#writer.addSize(text.length);
    this.#writer.write({ type, text });
  }

  #added(index: number, item: WireRecord): void {
    if (item.type === 'function_call') this.#call(index, item, '');
  }

  #call(index: number, item: WireRecord, args: string): void {
    const name = this.#named.has(index) ? '' : textOf(item.name);
    if (name !== '') this.#named.add(index);
    this.#calls.nextChunk();
    this.#calls.add({ index, id: textOf(item.call_id) || undefined, name, args, extra: undefined });
  }

  #arguments(index: number, delta: unknown): void {
    const args = textOf(delta);
    if (args !== '') this.#streamed.add(index);
    this.#calls.nextChunk();
    this.#calls.add({ index, id: undefined, name: '', args, extra: undefined });
  }

  /** The item is complete. Writes the parts that were not streamed. */
  #done(index: number, item: WireRecord, size = 0): void {
    if (this.#items.has(index)) return;
    if (!isOwn(item)) this.#writer.addSize(size);
    this.#items.set(index, item);
    const isStreamed = this.#streamed.has(index);
    switch (item.type) {
      case 'message':
        if (!isStreamed) for (const part of listOf(item.content)) this.#contentPart(index, part);
        return;
      case 'reasoning':
        if (!isStreamed) this.#reasoning(index, summaryOf(item));
        return;
      case 'function_call':
        this.#call(index, item, isStreamed ? '' : textOf(item.arguments));
    }
  }

  #contentPart(index: number, part: unknown): void {
    if (!isRecord(part)) return;
    if (part.type === 'refusal') this.#refusal(index, part.refusal);
    else this.#text(index, part.text);
  }

  #end(response: WireRecord, type = `response.${textOf(response.status) || 'completed'}`): void {
    this.#usage = readUsage(response.usage) ?? this.#usage;
    if (type === 'response.failed' || type === 'response.cancelled') {
      throw providerError(response.error ? { error: response.error } : { message: type }, this.#secrets);
    }
    // A server that sends no event for an item names it here.
    for (const [index, item] of listOf(response.output).entries()) if (isRecord(item)) this.#done(index, item);
    this.#finish = type === 'response.incomplete' ? this.#reasonOf(response.incomplete_details) : 'stop';
    this.#phase = 'done';
  }

  #reasonOf(details: unknown): FinishReason {
    const word = isRecord(details) ? textOf(details.reason) : '';
    if (word === 'content_filter') return 'content-filter';
    if (word !== 'max_output_tokens') this.#writer.diagnose('finish_reason_unknown', { reason: word.slice(0, 64) });
    return 'length';
  }

  /** Returns the data that the provider needs back, in its order. Undefined if the message contains everything. */
  #extra(): Json | undefined {
    const items = [...this.#items].sort(([a], [b]) => a - b).flatMap(([, item]) => (isLost(item) ? [] : [item]));
    // The provider refuses reasoning that no other item follows. A limit can cut a reply there.
    while (items.at(-1)?.type === 'reasoning') items.pop();
    if (items.every(isOwn)) return undefined;
    return extraOfBlocks(this.#provider, items.flatMap(blockOf));
  }
}

/** The provider stores nothing, so it refuses reasoning that is neither encrypted nor readable. */
const isLost = ({ type, encrypted_content: encrypted, content }: WireRecord): boolean =>
  type === 'reasoning' && !encrypted && listOf(content).length === 0;

/** The message contains the whole item. */
const isOwn = (item: WireRecord): boolean =>
  item.type === 'function_call' || (item.type === 'message' && item.phase === undefined);

function blockOf(item: WireRecord): Block[] {
  if (item.type === 'function_call') return [{ type: 'call' }];
  if (item.type === 'message') {
    const text = listOf(item.content).map((part) => (isRecord(part) ? textOf(part.text) || textOf(part.refusal) : ''));
    const options = { ...(typeof item.id === 'string' && { id: item.id }), ...phaseOf(item) };
    return [
      { type: 'text', text: text.join(''), ...(Object.keys(options).length > 0 && { options: { openai: options } }) },
    ];
  }
  const part = plainCopy(item, ITEM_DEPTH);
  return part === undefined ? [] : [{ type: 'executed', part }];
}

const phaseOf = ({ phase }: WireRecord): { [name: string]: Json } => (typeof phase === 'string' ? { phase } : {});

/** The text of a reasoning item that was not streamed. */
function summaryOf(item: WireRecord): string {
  const parts = listOf(item.summary).concat(listOf(item.content));
  return parts.map((part) => (isRecord(part) ? textOf(part.text) : '')).join('\n\n');
}

function readUsage(value: unknown): Partial<Usage> | undefined {
  if (!isRecord(value)) return undefined;
  const input = isRecord(value.input_tokens_details) ? value.input_tokens_details : {};
  const output = isRecord(value.output_tokens_details) ? value.output_tokens_details : {};
  const inputTokens = tokenCount(value.input_tokens);
  const outputTokens = tokenCount(value.output_tokens);
  return {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    cachedInputTokens: tokenCount(input.cached_tokens) ?? 0,
    cacheWriteTokens: tokenCount(input.cache_write_tokens) ?? 0,
    reasoningTokens: tokenCount(output.reasoning_tokens) ?? 0,
  };
}

const incomplete = (events: number): ModelError =>
  new ModelError({
    code: 'stream-incomplete',
    message:
      events === 0
        ? 'the model server ended its reply without sending an event'
        : 'the reply ended before response.completed: the connection was cut or the server stopped early',
  });
