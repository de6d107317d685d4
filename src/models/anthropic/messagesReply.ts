/**
 * Turns the events of a Messages stream into the parts of one reply. Invariant: a reply is complete only with a stop
 * reason or `message_stop`. Thinking and the blocks of the provider's own tools are kept in their places, since it
 * needs them back. Unreadable data becomes diagnostics.
 */
import type { FinishReason, Json } from '../../../machines/vocabulary.ts';
import { beginning } from '../../printable.ts';
import { ModelError, type ModelPart } from '../model.ts';
import { CallAssembly } from '../wire/callAssembly.ts';
import type { WireReply } from '../wire/httpCall.ts';
import { badFrame, providerError } from '../wire/httpErrors.ts';
import { extraOfBlocks } from '../wire/replyBlocks.ts';
import { ReplyWriter } from '../wire/replyWriter.ts';
import { isRecord, parseJson, type WireRecord } from '../wire/wireJson.ts';
import { MessageUsage } from './messageUsage.ts';
import { keptBlocks, type StreamedBlock, textOf } from './streamedBlocks.ts';

const REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['pause_turn', 'pause'],
  ['refusal', 'content-filter'],
]);

export class MessagesReply implements WireReply {
  readonly #writer: ReplyWriter;
  readonly #calls: CallAssembly;
  readonly #provider: string;
  readonly #secrets: readonly string[];
  /** By their index in the reply. */
  readonly #blocks = new Map<number, StreamedBlock>();
  readonly #usage = new MessageUsage();
  #phase: WireReply['phase'] = 'reading';
  #finish: FinishReason | undefined;
  #events = 0;

  /** `provider`: the name under which the message keeps the blocks. */
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
    if (data.trim() === '') return;
    if (this.#phase === 'done') return this.diagnose('after_done');
    this.#writer.addSize(data.length);
    const event = parseJson(data);
    if (isRecord(event)) this.#take(event, textOf(event.type) || (name ?? ''));
    else if (name === 'error') throw providerError(event ?? data, this.#secrets);
    else if (event !== undefined) this.diagnose('chunk_not_object');
    else if (isCut || this.#phase === 'finished') this.diagnose('chunk_malformed');
    else throw badFrame();
  }

  whole(body: unknown): void {
    if (!isRecord(body)) throw badFrame();
    if (body.type === 'error' || body.error) throw providerError(body, this.#secrets);
    if (!Array.isArray(body.content)) throw incomplete(0);
    for (const [index, block] of body.content.entries()) {
      if (isRecord(block)) this.#start(index, block);
      this.#stop(index);
    }
    this.#usage.add(body.usage);
    this.#finished(body);
    this.#end();
  }

  diagnose(code: string): void {
    this.#writer.diagnose(code);
  }

  end(): void {
    if (this.#finish === undefined) throw incomplete(this.#events);
    for (const index of this.#blocks.keys()) this.#stop(index);
    const calls = this.#calls.end();
    const reason = this.#finish === 'stop' && calls > 0 ? 'tool-calls' : this.#finish;
    const blocks = [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => block);
    const extra = extraOfBlocks(this.#provider, keptBlocks(blocks, { reason, isSigned: isSigned(this.#provider) }));
    const usage = this.#usage.total();
    this.#writer.write({ type: 'finish', reason, ...(usage && { usage }), ...(extra !== undefined && { extra }) });
  }

  #take(event: WireRecord, type: string): void {
    this.#events += 1;
    const index = typeof event.index === 'number' ? event.index : 0;
    switch (type) {
      case 'message_start':
        if (isRecord(event.message)) this.#usage.add(event.message.usage);
        return;
      case 'content_block_start':
        return isRecord(event.content_block) ? this.#start(index, event.content_block) : undefined;
      case 'content_block_delta':
        return isRecord(event.delta) ? this.#delta(index, event.delta) : undefined;
      case 'content_block_stop':
        return this.#stop(index);
      case 'message_delta':
        this.#usage.add(event.usage);
        return isRecord(event.delta) ? this.#finished(event.delta) : undefined;
      case 'message_stop':
        return this.#end();
      case 'error':
        throw providerError(event, this.#secrets);
    }
  }

  #start(index: number, content: WireRecord): void {
    const type = textOf(content.type);
    this.#blocks.set(index, { type, content, text: '', thinking: '', signature: '', input: '', citations: [] });
    if (type === 'tool_use') this.#callPiece(index, { id: textOf(content.id), name: textOf(content.name), args: '' });
    if (type === 'text') this.#delta(index, { type: 'text_delta', text: content.text });
    if (type !== 'thinking') return;
    this.#delta(index, { type: 'thinking_delta', thinking: content.thinking });
    this.#delta(index, { type: 'signature_delta', signature: content.signature });
  }

  #delta(index: number, delta: WireRecord): void {
    const block = this.#blocks.get(index);
    if (block === undefined) return this.diagnose('delta_without_block');
    switch (delta.type) {
      case 'text_delta':
        block.text += textOf(delta.text);
        return this.#shown('text-delta', textOf(delta.text));
      case 'thinking_delta':
        block.thinking += textOf(delta.thinking);
        return this.#shown('reasoning-delta', textOf(delta.thinking));
      case 'signature_delta':
        block.signature += textOf(delta.signature);
        return;
      case 'input_json_delta':
        block.input += textOf(delta.partial_json);
        if (block.type !== 'tool_use') return;
        return this.#callPiece(index, { id: '', name: '', args: textOf(delta.partial_json) });
      case 'citations_delta':
        block.citations.push(delta.citation);
        return;
      default:
        this.#writer.diagnose('delta_unknown', { type: textOf(delta.type).slice(0, 64) });
    }
  }

  /** The block is complete. A call whose arguments were not streamed has them in its start, or has none. */
  #stop(index: number): void {
    const block = this.#blocks.get(index);
    if (block?.type !== 'tool_use' || block.input.trim() !== '') return;
    block.input = argumentsOf(block.content.input);
    this.#callPiece(index, { id: '', name: '', args: block.input });
  }

  #callPiece(index: number, { id, name, args }: { id: string; name: string; args: string }): void {
    this.#calls.nextChunk();
    this.#calls.add({ index, id: id || undefined, name, args, extra: undefined });
  }

  #shown(type: 'text-delta' | 'reasoning-delta', text: string): void {
    if (text !== '') this.#writer.write({ type, text });
  }

  #finished({ stop_reason: word, stop_details: details }: WireRecord): void {
    if (typeof word !== 'string' || word === '') return;
    const reason = REASONS.get(word);
    if (reason === undefined) this.#writer.diagnose('finish_reason_unknown', { reason: word.slice(0, 64) });
    if (reason === 'content-filter') this.#writer.diagnose('refusal', refusalOf(details));
    this.#finish = reason ?? 'stop';
    this.#phase = 'finished';
  }

  #end(): void {
    this.#finish ??= 'stop';
    this.#phase = 'done';
  }
}

function argumentsOf(input: unknown): string {
  try {
    return JSON.stringify(input ?? {});
  } catch {
    // This is not JSON, so the call fails instead of running with other arguments.
    return '[arguments nested too deep]';
  }
}

/** Models of other vendors, on servers with this API, need their thinking back without a signature. */
const isSigned = (provider: string): boolean => provider.includes('claude');

const DETAIL_CHARS = 500;

const refusalOf = (details: unknown): Json => ({
  category: isRecord(details) ? textOf(details.category).slice(0, 64) : '',
  explanation: isRecord(details) ? beginning(textOf(details.explanation), DETAIL_CHARS) : '',
});

const incomplete = (events: number): ModelError =>
  new ModelError({
    code: 'stream-incomplete',
    message:
      events === 0
        ? 'the model server ended its reply without sending an event'
        : 'the reply ended without a stop reason: the connection was cut or the server stopped early',
  });
