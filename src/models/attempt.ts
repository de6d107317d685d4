/**
 * One attempt of a model call: reads the parts, watches the time, and resolves to the reply or a failure. Invariant: a
 * model is foreign code. A part counts only if each of its fields has its type, and reading never throws.
 */
import {
  type AgentItem,
  type FinishReason,
  type Json,
  type ModelValue,
  readUsage,
  type Usage,
  zeroUsage,
} from '../../machines/internal.ts';
import { toJson } from '../json.ts';
import type { InFlight, Live } from '../live.ts';
import { closedAtAbort, type EffectAbort, nextTurn } from '../timeLimit.ts';
import { failureOf, noStream } from './attemptFailure.ts';
import { BATCHES, type BatchedParts, type Model, ModelError, type ModelPart, type ModelRequest } from './model.ts';

/** After this many parts, timers and other tasks get a turn. */
const PARTS_A_TURN = 256;

export interface AttemptOptions {
  model: Model;
  request: ModelRequest;
  attempt: number;
  /** Further fields of the context that the model receives. */
  context?: Partial<Parameters<Model['stream']>[1]>;
  runId: string;
  abort: EffectAbort;
  timeouts: AttemptTimeouts;
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
  random(): number;
  /** Undefined without a listener: then no signal is made. */
  live(): ((signal: Live) => void) | undefined;
  diagnose(code: string, detail?: Json): void;
}

export interface RawCall {
  /** Missing if the model gave none, because it wrote the call into its text. */
  callId?: string;
  name: string;
  args: string;
  extra?: Json;
}
/** The contents of a complete reply, before its calls are parsed. */
export interface RawReply {
  kind: 'reply';
  items: (AgentItem | { type: 'call'; call: RawCall })[];
  finish: FinishReason;
  usage: Usage;
  extra?: Json;
}
export type Attempted = RawReply | Extract<ModelValue, { kind: 'failed' }>;

/** The items of a reply under construction: adjacent deltas of one kind form one text. */
class ReplyText {
  readonly items: RawReply['items'] = [];
  #kind: 'assistant' | 'reasoning' | undefined;
  #text = '';
  #refusal = false;

  add(kind: 'assistant' | 'reasoning', text: string): void {
    if (this.#kind !== kind) this.end();
    this.#kind = kind;
    this.#text += text;
  }

  refuse(): void {
    this.#refusal = true;
  }

  call(call: RawCall): void {
    this.end();
    this.items.push({ type: 'call', call });
  }

  /** Returns all text of one kind so far, for a reply that is cut or still streams. */
  textOf(kind: 'assistant' | 'reasoning'): string {
    const open = this.#kind === kind ? this.#text : '';
    const done = this.items.map((item) => (item.type === kind ? item.text : ''));
    return done.join('') + open;
  }

  end(): void {
    const flag = this.#kind === 'assistant' && this.#refusal ? { flag: 'refusal' as const } : {};
    if (this.#kind && this.#text !== '') this.items.push({ type: this.#kind, text: this.#text, ...flag });
    this.#kind = undefined;
    this.#text = '';
  }
}

type PartStream = AsyncIterable<ModelPart> & Partial<BatchedParts>;

/** Accepts lists and generators, which `for await` reads too. */
const isStream = (value: unknown): value is PartStream =>
  typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);

export class Attempt {
  readonly #options: AttemptOptions;
  readonly #reply = new ReplyText();
  #usage: Usage = zeroUsage.usage;
  #finish: FinishReason | undefined;
  #extra: Json | undefined;
  #inputs: Map<number, InFlight['toolInputs'][number]> | undefined;
  #streamed = false;
  /** Made when it is read, and kept until more text comes. */
  #inFlight: InFlight | null = null;
  readonly #diagnosed = new Set<string>();
  #parts = 0;

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** The streamed text so far. */
  get partial(): string {
    return this.#reply.textOf('assistant');
  }

  get runId(): string {
    return this.#options.runId;
  }

  /** All streamed text. Null before the first delta and after a reset. */
  get inFlight(): InFlight | null {
    if (!this.#streamed) return null;
    this.#inFlight ??= Object.freeze({
      runId: this.runId,
      text: this.#reply.textOf('assistant'),
      reasoning: this.#reply.textOf('reasoning'),
      toolInputs: Object.freeze([...(this.#inputs?.values() ?? [])]),
    });
    return this.#inFlight;
  }

  /** Discards the streamed text, and emits a `reset`. */
  reset(): void {
    if (!this.#streamed) return;
    this.#streamed = false;
    this.#options.live()?.({ type: 'reset', runId: this.runId });
  }

  async run(): Promise<Attempted> {
    const { abort, model, random, timeouts, now, setTimer } = this.#options;
    const clock = new AttemptClock({ timeouts, now, setTimer, expire: (error) => abort.abort(error) });
    try {
      await this.#read(clock);
      this.#reply.end();
      if (this.#finish === undefined) throw new ModelError({ code: 'stream-incomplete' });
      if (this.#finish === 'content-filter') throw new ModelError({ code: 'content-filter' });
      const extra = this.#extra === undefined ? {} : { extra: this.#extra };
      return { kind: 'reply', items: this.#reply.items, finish: this.#finish, usage: this.#usage, ...extra };
    } catch (thrown) {
      const error = abort.aborted && abort.reason instanceof ModelError ? abort.reason : thrown;
      this.reset();
      return { ...failureOf(error), random: random(), model: model.id };
    } finally {
      clock.stop();
    }
  }

  /** Ends with the reply, with the stream or with an abort, whichever comes first. */
  #read(clock: AttemptClock): Promise<void> {
    const { abort } = this.#options;
    return new Promise((resolve, reject) => {
      if (abort.aborted) return reject(abort.reason);
      abort.onAbort(() => reject(abort.reason));
      this.#consume(clock, resolve).then(resolve, reject);
    });
  }

  /** Calls `complete` with the last part: the attempt does not wait until the model has closed its stream. */
  async #consume(clock: AttemptClock, complete: () => void): Promise<void> {
    const stream = await this.#open();
    const batches = stream[BATCHES]?.();
    if (!batches) {
      for await (const part of closedAtAbort(stream, this.#options.abort)) {
        if (!this.#processPart(part, clock)) return complete();
        if (this.#turnIsDue) await nextTurn();
      }
      return;
    }
    try {
      for (let batch = await batches.next(); batch; batch = await batches.next()) {
        for (const part of batch) {
          if (!this.#processPart(part, clock)) return complete();
          if (this.#turnIsDue) await nextTurn();
        }
      }
    } finally {
      batches.close();
    }
  }

  async #open(): Promise<PartStream> {
    const { model, request, attempt, abort, context } = this.#options;
    const stream: unknown = await model.stream(request, { ...context, signal: abort.signal, attempt });
    if (!isStream(stream)) throw noStream(stream, model);
    if (!abort.aborted) return stream;
    // The stream came after the abort, so it is closed.
    stream[Symbol.asyncIterator]?.()
      .return?.()
      ?.catch(() => {});
    throw abort.reason;
  }

  /** Returns false if no more parts are needed: the reply is complete, or the attempt has ended. */
  #processPart(part: ModelPart, clock: AttemptClock): boolean {
    if (this.#options.abort.isLongOver) this.#diagnoseOnce('late_part');
    if (this.#options.abort.aborted) return false;
    this.#parts += 1;
    const read = readPart(part);
    if (read) {
      clock.notePart();
      this.#applyPart(read);
    } else this.#diagnoseOnce('model_part');
    return this.#finish === undefined;
  }

  /** A model that never waits would block timers, timeouts and a cancel. */
  get #turnIsDue(): boolean {
    return this.#parts % PARTS_A_TURN === 0;
  }

  #streams(): void {
    this.#streamed = true;
    this.#inFlight = null;
  }

  /** Later deltas add text; the first id and the first name count. */
  #addInput(index: number, named: { callId?: string; name?: string }, text: string): void {
    this.#inputs ??= new Map();
    const input = this.#inputs.get(index);
    this.#inputs.set(index, Object.freeze({ index, ...named, ...input, text: (input?.text ?? '') + text }));
  }

  /** Reported once, because a stream may contain any number of such parts. */
  #diagnoseOnce(code: 'model_part' | 'late_part'): void {
    if (!this.#diagnosed.has(code)) this.#options.diagnose(code, { model: this.#options.model.id });
    this.#diagnosed.add(code);
  }

  #applyPart(part: ModelPart): void {
    if (this.#finish !== undefined && part.type !== 'diagnostic') return;
    const { runId } = this.#options;
    const live = this.#options.live();
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        this.#reply.add(part.type === 'text-delta' ? 'assistant' : 'reasoning', part.text);
        this.#streams();
        live?.({ type: part.type, runId, text: part.text });
        return;
      case 'tool-call-delta': {
        const { index, callId, name, text } = part;
        const named = { ...(callId !== undefined && { callId }), ...(name !== undefined && { name }) };
        this.#addInput(index, named, text);
        this.#streams();
        return void live?.({ type: 'tool-input-delta', runId, index, text, ...named });
      }
      case 'tool-call': {
        const { type: _, ...call } = part;
        return this.#reply.call(call);
      }
      case 'refusal':
        return this.#reply.refuse();
      case 'diagnostic':
        return this.#options.diagnose(part.code, part.detail);
      case 'finish':
        this.#finish = part.reason;
        this.#usage = { ...zeroUsage.usage, ...part.usage };
        this.#extra = part.extra;
    }
  }
}

/** See the policy `modelTimeout`. */
type AttemptTimeouts = { firstPartMs: number; idleMs: number; totalMs: number | false };
type ClockOptions = Pick<AttemptOptions, 'timeouts' | 'now' | 'setTimer'>;

/** A part only stores its time. The silence timer restarts only when it fires and finds that a part has come. */
class AttemptClock {
  readonly #timeouts: AttemptTimeouts;
  readonly #now: ClockOptions['now'];
  readonly #setTimer: ClockOptions['setTimer'];
  readonly #expire: (error: ModelError) => void;
  readonly #stopTotal: (() => void) | undefined;
  #stopSilence: () => void;
  /** The time of the last part. Undefined before the first. */
  #lastPart: number | undefined;
  /** True if no part has come since the timer started. */
  #silent = true;

  /** Starts at once. `expire` is called at most once for each of the two timeouts. */
  constructor(options: ClockOptions & { expire(error: ModelError): void }) {
    const { timeouts, now, setTimer, expire } = options;
    this.#timeouts = timeouts;
    this.#now = now;
    this.#setTimer = setTimer;
    this.#expire = expire;
    this.#stopSilence = this.#waitFor(timeouts.firstPartMs, timeouts.firstPartMs);
    const { totalMs } = timeouts;
    if (totalMs === false) return;
    this.#stopTotal = setTimer(totalMs, () => {
      expire(new ModelError({ code: 'timeout', message: `the model did not finish within ${totalMs} ms` }));
    });
  }

  notePart(): void {
    const isFirst = this.#lastPart === undefined;
    this.#lastPart = this.#now();
    this.#silent = false;
    if (!isFirst) return;
    this.#stopSilence();
    this.#restartSilence(this.#timeouts.idleMs);
  }

  stop(): void {
    this.#stopSilence();
    this.#stopTotal?.();
  }

  #restartSilence(ms: number): void {
    this.#silent = true;
    this.#stopSilence = this.#waitFor(ms, this.#timeouts.idleMs);
  }

  /** `allowed`: how long the model may be silent. */
  #waitFor(ms: number, allowed: number): () => void {
    return this.#setTimer(ms, () => {
      if (this.#silent) {
        this.#expire(new ModelError({ code: 'timeout', message: `the model sent nothing for ${allowed} ms` }));
        return;
      }
      // If the clock was set back or forward, the allowed silence is between its normal length and twice that.
      const passed = this.#now() - (this.#lastPart ?? 0);
      this.#restartSilence(passed < 0 || passed > ms + 1_000 ? allowed : Math.max(1, allowed - passed));
    });
  }
}

const REASONS = new Set<unknown>(['stop', 'tool-calls', 'length', 'content-filter', 'pause']);

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other);

function json(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  const read = toJson(value);
  return read.kind === 'parsed' ? read.value : undefined;
}

function readCall(part: Extract<ModelPart, { type: 'tool-call' }>): ModelPart | undefined {
  if (typeof part.name !== 'string') return undefined;
  const extra = json(part.extra);
  // The text does not parse, so the call fails instead of running without arguments.
  const args = typeof part.args === 'object' && part.args ? (JSON.stringify(json(part.args)) ?? 'no JSON') : part.args;
  const call = { type: part.type, callId: textOr(part.callId, ''), name: part.name, args: textOr(args, '') };
  return extra === undefined ? call : { ...call, extra };
}

function readFinish({ type, reason, usage, extra: attached }: Extract<ModelPart, { type: 'finish' }>): ModelPart {
  const extra = json(attached);
  const finish = { type, reason, usage: readUsage(usage) };
  return extra === undefined ? finish : { ...finish, extra };
}

const isMaybeText = (value: unknown): boolean => value === undefined || typeof value === 'string';

/** Returns undefined unless each field of the part has its type. */
function readPart(part: ModelPart): ModelPart | undefined {
  try {
    switch (part.type) {
      case 'tool-call-delta':
        if (typeof part.index !== 'number' || !isMaybeText(part.name) || !isMaybeText(part.callId)) return undefined;
        return typeof part.text === 'string' ? part : undefined;
      case 'text-delta':
      case 'reasoning-delta':
        return typeof part.text === 'string' ? part : undefined;
      case 'tool-call':
        return readCall(part);
      case 'finish':
        return REASONS.has(part.reason) ? readFinish(part) : undefined;
      case 'diagnostic': {
        const detail = json(part.detail);
        const code = textOr(part.code, 'model');
        return detail === undefined ? { type: part.type, code } : { type: part.type, code, detail };
      }
      case 'refusal':
        return part;
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}
