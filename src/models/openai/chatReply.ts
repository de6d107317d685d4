/**
 * Turns the events of a chat completion stream into the parts of one reply. Invariant: a reply is complete only with
 * a finish reason. Complete calls come before it, in order of first appearance. Unreadable data becomes diagnostics,
 * at most a few of a kind.
 */
import type { FinishReason, Json, Usage } from '../../../machines/vocabulary.ts';
import { providerError } from '../httpErrors.ts';
import { ModelError, type ModelPart } from '../model.ts';
import { parseJson } from '../wireJson.ts';
import { type ChatChunk, type ChunkReading, finishReason, readChunk } from './chunk.ts';
import { SentBack } from './reasoningFields.ts';
import { CallAssembly, type CallDelta, completeCalls } from './toolCalls.ts';

/** Characters of text, reasoning, arguments and unknown fields of one reply. */
const REPLY_CHARS = 64 * 1024 * 1024;
/** The size of a call besides its arguments. */
const CALL_CHARS = 256;
const DIAGNOSTICS_OF_A_KIND = 4;

/** Passes its parts to `out`. Each method throws ModelError if the attempt has failed. */
export class ChatReply {
  readonly #out: (part: ModelPart) => void;
  readonly #secrets: readonly string[];
  readonly #model: string;
  /** Made on demand, because most replies need none. */
  #assembly: CallAssembly | undefined;
  #sentBack: SentBack | undefined;
  #noted: Map<string, number> | undefined;
  #phase: 'reading' | 'finished' | 'done' = 'reading';
  #finish: FinishReason | undefined;
  #usage: Partial<Usage> | undefined;
  #refused = false;
  #chunks = 0;
  #chars = 0;

  /** `model`: the name of the model that writes the reply. */
  constructor(out: (part: ModelPart) => void, { model, secrets }: { model: string; secrets: readonly string[] }) {
    this.#out = out;
    this.#model = model;
    this.#secrets = secrets;
  }

  /** `reading`, then `finished` (a finish reason came), then `done` (the end mark came). */
  get phase(): 'reading' | 'finished' | 'done' {
    return this.#phase;
  }

  /** Processes one event of the stream. `cut`: the stream ended inside it. */
  event(data: string, name: string | undefined, cut: boolean): void {
    if (this.#phase === 'done') {
      this.note('after_done');
      return;
    }
    if (name === 'error') throw providerError(parseJson(data) ?? data, this.#secrets);
    if (data.length < 16 && data.trim() === '[DONE]') {
      this.#phase = 'done';
      return;
    }
    const reading = readChunk(data);
    if (reading.kind === 'malformed' && (cut || this.#phase === 'finished')) this.note('chunk_malformed');
    else this.take(reading);
  }

  take(reading: ChunkReading): void {
    if (reading.kind === 'chunk') this.#chunk(reading);
    else if (reading.kind === 'skipped') this.note(reading.code);
    else if (reading.kind === 'error') throw providerError(reading.body, this.#secrets);
    else throw badFrame();
  }

  note(code: string, detail?: Json): void {
    this.#noted ??= new Map();
    const count = (this.#noted.get(code) ?? 0) + 1;
    this.#noted.set(code, count);
    if (count > DIAGNOSTICS_OF_A_KIND) return;
    this.#out(detail === undefined ? { type: 'diagnostic', code } : { type: 'diagnostic', code, detail });
  }

  /** Emits the calls and the finish at the end of the stream. */
  end(): void {
    if (this.#finish === undefined) throw incomplete(this.#chunks);
    const pieces = this.#assembly?.calls;
    const calls = pieces ? completeCalls(pieces, (code, detail) => this.note(code, detail)) : [];
    for (const call of calls) this.#out(call);
    // Many servers report `stop` although they called tools, so the calls decide.
    const reason = this.#finish === 'stop' && calls.length > 0 ? 'tool-calls' : this.#finish;
    const extra = this.#sentBack?.extraFor(this.#model);
    this.#out({
      ...{ type: 'finish', reason },
      ...(this.#usage !== undefined && { usage: this.#usage }),
      ...(extra !== undefined && { extra }),
    });
  }

  #chunk(chunk: ChatChunk): void {
    this.#chunks += 1;
    for (const code of chunk.odd) this.note(code);
    if (chunk.reasoning !== '') {
      this.#grow(chunk.reasoning.length);
      this.#out({ type: 'reasoning-delta', text: chunk.reasoning });
    }
    if (chunk.text !== '') {
      this.#grow(chunk.text.length);
      this.#out({ type: 'text-delta', text: chunk.text });
    }
    if (chunk.sentBack !== undefined) {
      this.#grow(JSON.stringify(chunk.sentBack).length);
      this.#sentBack ??= new SentBack();
      this.#sentBack.add(chunk.sentBack);
    }
    if (chunk.refusal !== '') this.#refusal(chunk.refusal);
    if (chunk.calls.length > 0) this.#calls(chunk.calls);
    if (chunk.usage !== undefined) this.#usage = chunk.usage;
    if (chunk.finish !== '') this.#finished(chunk.finish);
  }

  #refusal(text: string): void {
    this.#grow(text.length);
    if (!this.#refused) this.#out({ type: 'refusal' });
    this.#refused = true;
    this.#out({ type: 'text-delta', text });
  }

  #calls(deltas: readonly CallDelta[]): void {
    this.#assembly ??= new CallAssembly();
    this.#assembly.nextChunk();
    for (const delta of deltas) {
      const before = this.#assembly.calls.length;
      const { position } = this.#assembly.add(delta);
      const own = CALL_CHARS * (this.#assembly.calls.length - before);
      this.#grow(own + delta.args.length + (delta.extra === undefined ? 0 : JSON.stringify(delta.extra).length));
      if (delta.name !== '') {
        this.#out({ type: 'tool-call-delta', index: position, name: delta.name, text: delta.args });
      } else if (delta.args !== '') {
        this.#out({ type: 'tool-call-delta', index: position, text: delta.args });
      }
    }
  }

  #finished(word: string): void {
    const reason = finishReason(word);
    if (reason === 'failed') throw providerError({ message: `finish_reason ${word}` }, this.#secrets);
    if (reason === undefined) this.note('finish_reason_unknown', { reason: word.slice(0, 64) });
    // A second reason never hides a first one that marks the reply as incomplete.
    if (this.#finish === undefined || this.#finish === 'stop') this.#finish = reason ?? 'stop';
    this.#phase = 'finished';
  }

  #grow(by: number): void {
    this.#chars += by;
    if (this.#chars > REPLY_CHARS) throw tooLarge(`${REPLY_CHARS} characters`);
  }
}

const tooLarge = (what: string): ModelError =>
  new ModelError({
    code: 'reply-too-large',
    message: `the reply holds more than ${what}: it was cut off and is not used`,
  });

const badFrame = (): ModelError =>
  new ModelError({
    code: 'bad-frame',
    message: 'the model server sent data that is no JSON; the reply so far is not used',
  });

const incomplete = (chunks: number): ModelError =>
  new ModelError({
    code: 'stream-incomplete',
    message:
      chunks === 0
        ? 'the model server ended its reply without sending a chunk'
        : 'the reply ended without a finish reason: the connection was cut or the server stopped early',
  });
