/**
 * Turns the parts of an AI SDK stream into the parts of one reply. Invariant: a reply is complete only with a finish
 * that names a reason. A call that the provider executed is not the agent's. Unusable parts become diagnostics.
 */
import type { FinishReason, Usage } from '../../../machines/vocabulary.ts';
import { toBase64 } from '../../content/imageFormat.ts';
import { toJson } from '../../json.ts';
import { ModelError, type ModelPart } from '../model.ts';
import { type Block, extraOfBlocks, extraOfCall, type Options, optionsOf } from '../wire/replyBlocks.ts';
import { ReplyWriter } from '../wire/replyWriter.ts';
import { isRecord, parseJson, type WireRecord } from '../wire/wireJson.ts';

/** A stream part of any provider: each field is validated before it is used. */
export type StreamPart = WireRecord;

/** Irrelevant to an agent. */
const IGNORED: ReadonlySet<unknown> = new Set(['response-metadata', 'raw', 'source', 'tool-input-end', 'ping']);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export class SdkReply {
  readonly #writer: ReplyWriter;
  readonly #provider: string;
  readonly #blocks: Block[] = [];
  /** Unfinished blocks, by kind and id. */
  readonly #open = new Map<string, Extract<Block, { type: 'text' | 'reasoning' }>>();
  /** Calls with streamed input: their index, and whether the provider executes them. */
  readonly #inputs = new Map<string, { index: number; executed: boolean }>();
  #calls = 0;
  #ended = false;

  constructor(write: (part: ModelPart) => void, provider: string) {
    this.#writer = new ReplyWriter(write);
    this.#provider = provider;
  }

  /** Throws ModelError if the attempt has failed. The caller handles `error` parts. */
  take(part: StreamPart): void {
    // A provider's parts are untrusted: null counts as a part without a type.
    const { type } = part ?? {};
    if (this.#ended || IGNORED.has(type)) return;
    const words = /^(text|reasoning)-(start|delta|end)$/.exec(textOf(type));
    if (words) return this.#words(words[1] as 'text' | 'reasoning', part);
    if (type === 'tool-input-start') return this.#inputStarts(part);
    if (type === 'tool-input-delta') return this.#input(part);
    if (type === 'tool-call') return this.#call(part);
    if (type === 'tool-result') return this.#executed(part);
    if (type === 'custom' || type === 'reasoning-file') return this.#kept(part);
    if (type === 'finish') return this.#finish(part);
    if (type === 'stream-start') return this.#warnings(part.warnings);
    this.#writer.diagnose('part_ignored', { type: textOf(type).slice(0, 64) });
  }

  /** True after the finish: nothing else is needed. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Called at the end of the stream. */
  end(): void {
    if (!this.#ended) throw incomplete();
  }

  #words(type: 'text' | 'reasoning', part: StreamPart): void {
    const key = `${type} ${String(part.id)}`;
    let block = part.type === `${type}-start` ? undefined : this.#open.get(key);
    if (block === undefined) {
      block = { type, text: '' };
      this.#blocks.push(block);
      this.#open.set(key, block);
    }
    const text = textOf(part.delta);
    this.#writer.addSize(text.length);
    block.text += text;
    const options = this.#countedOptions(part);
    if (options) block.options = options;
    if (text !== '') this.#writer.write({ type: `${type}-delta`, text });
  }

  /** The attachments of the provider, which count in the size of the reply. */
  #countedOptions({ providerMetadata }: StreamPart): Options | undefined {
    const options = optionsOf(providerMetadata);
    if (options) this.#writer.addSize(JSON.stringify(options).length);
    return options;
  }

  #inputStarts({ id, toolName, providerExecuted }: StreamPart): void {
    const executed = providerExecuted === true;
    const index = executed ? -1 : this.#inputs.size;
    this.#inputs.set(String(id), { index, executed });
    if (executed) return;
    const [callId, name] = [textOf(id), textOf(toolName)];
    this.#writer.write({ type: 'tool-call-delta', index, ...(callId !== '' && { callId }), name, text: '' });
  }

  #input({ id, delta }: StreamPart): void {
    const input = this.#inputs.get(String(id));
    if (input && !input.executed && textOf(delta) !== '')
      this.#writer.write({ type: 'tool-call-delta', index: input.index, text: textOf(delta) });
  }

  #call(part: StreamPart): void {
    if (part.providerExecuted === true) return this.#executed(part);
    const { toolCallId, toolName, input } = part;
    const extra = extraOfCall(this.#provider, this.#countedOptions(part));
    const args = typeof input === 'string' ? input : JSON.stringify(input ?? {});
    const call = { type: 'tool-call' as const, callId: textOf(toolCallId), name: textOf(toolName), args };
    this.#calls += 1;
    this.#writer.addSize(args.length);
    this.#blocks.push({ type: 'call' });
    this.#writer.write(extra === undefined ? call : { ...call, extra });
  }

  /** Stores the part in the form that the prompt needs. */
  #executed(part: StreamPart): void {
    const { type, toolCallId, toolName, input, result } = part;
    // Previews, such as of an image, are replaced by the result.
    if (type === 'tool-result' && part.preliminary === true) return;
    const options = optionsOf(part.providerMetadata);
    const fields =
      type === 'tool-call'
        ? { input: parsedInput(input), providerExecuted: true }
        : { output: { type: part.isError === true ? 'error-json' : 'json', value: result ?? null } };
    const json = toJson({ type, toolCallId, toolName, ...fields, ...(options && { providerOptions: options }) });
    this.#writer.diagnose('provider_executed', { name: textOf(toolName).slice(0, 64) });
    if (json.kind !== 'parsed') return;
    this.#writer.addSize(JSON.stringify(json.value).length);
    this.#blocks.push({ type: 'executed', part: json.value });
  }

  /** Version 4: content that only the provider reads. Stored in the form that the prompt needs. */
  #kept({ type, kind, mediaType, data, providerMetadata }: StreamPart): void {
    const options = optionsOf(providerMetadata);
    const json = toJson({
      ...(type === 'custom' ? { type, kind } : { type, mediaType, data: base64In(data) }),
      ...(options && { providerOptions: options }),
    });
    if (json.kind !== 'parsed') return this.#writer.diagnose('part_ignored', { type: textOf(type) });
    this.#writer.addSize(JSON.stringify(json.value).length);
    this.#blocks.push({ type: 'executed', part: json.value });
  }

  #finish({ finishReason, usage, providerMetadata }: StreamPart): void {
    const reason = this.#reason(finishReason);
    const isCut = reason === 'pause' || reason === 'length';
    const extra = extraOfBlocks(this.#provider, isCut ? answeredBlocks(this.#blocks) : this.#blocks);
    this.#ended = true;
    this.#writer.write({
      ...{ type: 'finish', reason, usage: usageOf(usage, providerMetadata) },
      ...(extra !== undefined && { extra }),
    });
  }

  /** Version 2 has a word; version 3 has the word and the provider's own one. */
  #reason(finishReason: unknown): FinishReason {
    const { unified, raw } = isRecord(finishReason) ? finishReason : { unified: finishReason, raw: undefined };
    if (raw === 'pause_turn') return 'pause';
    if (unified === 'error')
      throw new ModelError({ code: 'provider', message: 'the provider ended its reply with an error' });
    if (unified === 'length' || unified === 'content-filter' || unified === 'tool-calls') return unified;
    // Without the provider's own reason, only the stream ended, not the reply.
    if (unified !== 'stop') {
      if (unified !== 'other' || (isRecord(finishReason) && raw === undefined)) throw incomplete();
      this.#writer.diagnose('finish_reason_unknown', { reason: textOf(raw).slice(0, 64) });
    }
    return this.#calls > 0 ? 'tool-calls' : 'stop';
  }

  #warnings(warnings: unknown): void {
    for (const warning of Array.isArray(warnings) ? warnings : []) {
      const json = toJson(warning);
      this.#writer.diagnose('provider_warning', json.kind === 'parsed' ? json.value : null);
    }
  }
}

/** Leaves out the provider's own calls without a result. Anthropic refuses them if a message of the user follows. */
function answeredBlocks(blocks: readonly Block[]): readonly Block[] {
  const parts = blocks.map((block) => (block.type === 'executed' && isRecord(block.part) ? block.part : undefined));
  const answered = new Set(parts.flatMap((part) => (part?.type === 'tool-result' ? [part.toolCallId] : [])));
  return blocks.filter((_, index) => parts[index]?.type !== 'tool-call' || answered.has(parts[index].toolCallId));
}

/** Data of a file without raw bytes, which the log cannot contain. */
function base64In(data: unknown): unknown {
  if (!isRecord(data) || !(data.data instanceof Uint8Array)) return data;
  return { ...data, data: toBase64(data.data) };
}

function parsedInput(input: unknown): unknown {
  const value = typeof input === 'string' ? parseJson(input) : input;
  return typeof input === 'string' && value === undefined ? {} : value;
}

const incomplete = (): ModelError =>
  new ModelError({
    code: 'stream-incomplete',
    message: 'the reply ended without a finish reason: the connection was cut or the provider stopped early',
  });

const count = (value: unknown): number =>
  typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value : 0;

function usageOf(usage: unknown, metadata: unknown): Partial<Usage> {
  if (!isRecord(usage)) return {};
  const { inputTokens: input, outputTokens: output } = usage;
  if (isRecord(input) || isRecord(output)) {
    const { total, cacheRead, cacheWrite } = isRecord(input) ? input : ({} as StreamPart);
    const { total: written, reasoning } = isRecord(output) ? output : ({} as StreamPart);
    return {
      inputTokens: count(total),
      outputTokens: count(written),
      cachedInputTokens: count(cacheRead),
      cacheWriteTokens: count(cacheWrite),
      reasoningTokens: count(reasoning),
    };
  }
  const cached = count(usage.cachedInputTokens);
  const cacheWrites = cacheWritesApart(metadata);
  const reasoningTokens = count(usage.reasoningTokens);
  const tokens = count(input) + count(output);
  // Some providers count reasoning only in the total.
  const isReasoningApart = count(usage.totalTokens) === tokens + reasoningTokens;
  return {
    inputTokens: count(input) + (cacheWrites === undefined ? 0 : cached + cacheWrites),
    outputTokens: count(output) + (isReasoningApart ? reasoningTokens : 0),
    cachedInputTokens: cached,
    cacheWriteTokens: cacheWrites ?? 0,
    reasoningTokens,
  };
}

/** In version 2 these providers count cached tokens apart from the input, and report cache writes only in their metadata. */
function cacheWritesApart(metadata: unknown): number | undefined {
  const { anthropic, bedrock } = isRecord(metadata) ? metadata : ({} as WireRecord);
  if (isRecord(anthropic)) return count(anthropic.cacheCreationInputTokens);
  if (!isRecord(bedrock)) return undefined;
  return isRecord(bedrock.usage) ? count(bedrock.usage.cacheWriteInputTokens) : 0;
}
