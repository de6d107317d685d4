/**
 * Turns the events of a chat completion stream into the parts of one reply. Invariant: a reply is complete only with
 * a finish reason. Complete calls come before it, in order of first appearance. Unreadable data becomes diagnostics.
 */
import type { FinishReason, Usage } from '../../../machines/vocabulary.ts';
import { ModelError, type ModelPart } from '../model.ts';
import { CallAssembly, type CallDelta } from '../wire/callAssembly.ts';
import type { WireReply } from '../wire/httpCall.ts';
import { badFrame, providerError } from '../wire/httpErrors.ts';
import { ReplyWriter } from '../wire/replyWriter.ts';
import { parseJson } from '../wire/wireJson.ts';
import { type ChatChunk, type ChunkReading, chunkOf, finishReason, readChunk } from './chatChunk.ts';
import { extraOfCall, ReasoningFields } from './reasoningFields.ts';
import type { ChatModel } from './serverRules.ts';

export class ChatReply implements WireReply {
  readonly #writer: ReplyWriter;
  readonly #calls: CallAssembly;
  readonly #reasoningFields = new ReasoningFields();
  readonly #secrets: readonly string[];
  readonly #writtenBy: ChatModel;
  #phase: WireReply['phase'] = 'reading';
  #finish: FinishReason | undefined;
  #usage: Partial<Usage> | undefined;
  #refused = false;
  #chunks = 0;

  /** `model`, `server`: of the model that writes the reply. */
  constructor(
    write: (part: ModelPart) => void,
    { model, server, secrets }: ChatModel & { secrets: readonly string[] },
  ) {
    this.#writtenBy = { model, server };
    this.#writer = new ReplyWriter(write);
    this.#calls = new CallAssembly(this.#writer, (fields) => extraOfCall(this.#writtenBy, fields));
    this.#secrets = secrets;
  }

  get phase(): WireReply['phase'] {
    return this.#phase;
  }

  event(data: string, name: string | undefined, isCut: boolean): void {
    if (this.#phase === 'done') {
      this.diagnose('after_done');
      return;
    }
    if (name === 'error') throw providerError(parseJson(data) ?? data, this.#secrets);
    if (data.length < 16 && data.trim() === '[DONE]') {
      this.#phase = 'done';
      return;
    }
    const reading = readChunk(data);
    if (reading.kind === 'malformed' && (isCut || this.#phase === 'finished')) this.diagnose('chunk_malformed');
    else this.#take(reading);
  }

  whole(body: unknown): void {
    this.#take(body === undefined ? { kind: 'malformed' } : chunkOf(body, 'message'));
  }

  diagnose(code: string): void {
    this.#writer.diagnose(code);
  }

  end(): void {
    if (this.#finish === undefined) throw incomplete(this.#chunks);
    const calls = this.#calls.end();
    // Many servers report `stop` although they called tools, so the calls decide.
    const reason = this.#finish === 'stop' && calls > 0 ? 'tool-calls' : this.#finish;
    const extra = this.#reasoningFields.extraFor(this.#writtenBy.model);
    this.#writer.write({
      ...{ type: 'finish', reason },
      ...(this.#usage !== undefined && { usage: this.#usage }),
      ...(extra !== undefined && { extra }),
    });
  }

  #take(reading: ChunkReading): void {
    if (reading.kind === 'chunk') this.#chunk(reading);
    else if (reading.kind === 'skipped') this.diagnose(reading.code);
    else if (reading.kind === 'error') throw providerError(reading.body, this.#secrets);
    else throw badFrame();
  }

  #chunk(chunk: ChatChunk): void {
    this.#chunks += 1;
    for (const code of chunk.odd) this.diagnose(code);
    if (chunk.reasoning !== '') this.#delta('reasoning-delta', chunk.reasoning);
    if (chunk.text !== '') this.#delta('text-delta', chunk.text);
    if (chunk.reasoningFields !== undefined) {
      this.#writer.addSize(JSON.stringify(chunk.reasoningFields).length);
      this.#reasoningFields.add(chunk.reasoningFields);
    }
    if (chunk.refusal !== '') this.#refusal(chunk.refusal);
    if (chunk.calls.length > 0) this.#callDeltas(chunk.calls);
    if (chunk.usage !== undefined) this.#usage = chunk.usage;
    if (chunk.finish !== '') this.#finished(chunk.finish);
  }

  #delta(type: 'text-delta' | 'reasoning-delta', text: string): void {
    this.#writer.addSize(text.length);
    this.#writer.write({ type, text });
  }

  #refusal(text: string): void {
    if (!this.#refused) this.#writer.write({ type: 'refusal' });
    this.#refused = true;
    this.#delta('text-delta', text);
  }

  #callDeltas(deltas: readonly CallDelta[]): void {
    this.#calls.nextChunk();
    for (const delta of deltas) this.#calls.add(delta);
  }

  #finished(word: string): void {
    const reason = finishReason(word);
    if (reason === 'failed') throw providerError({ message: `finish_reason ${word}` }, this.#secrets);
    if (reason === undefined) this.#writer.diagnose('finish_reason_unknown', { reason: word.slice(0, 64) });
    // A second reason never hides a first one that marks the reply as incomplete.
    if (this.#finish === undefined || this.#finish === 'stop') this.#finish = reason ?? 'stop';
    this.#phase = 'finished';
  }
}

const incomplete = (chunks: number): ModelError =>
  new ModelError({
    code: 'stream-incomplete',
    message:
      chunks === 0
        ? 'the model server ended its reply without sending a chunk'
        : 'the reply ended without a finish reason: the connection was cut or the server stopped early',
  });
