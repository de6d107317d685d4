/**
 * One attempt of a model call: reads what a model yields, watches its time, and answers with the reply or a failure. Rule: a model
 * is foreign code; a part counts only where each of its fields has its type, and reading never throws.
 */
import {
  type AgentItem,
  type FinishReason,
  isCount,
  type Json,
  type ModelValue,
  readUsage,
  type Usage,
  zeroUsage,
} from '../../machines/internal.ts';
import { RunchartError, thrownMessage } from '../errors.ts';
import { toJson } from '../json.ts';
import type { InFlight, Live } from '../live.ts';
import type { EffectAbort } from '../timeLimit.ts';
import { BATCHES, type BatchedParts, type Model, ModelError, type ModelPart, type ModelRequest } from './model.ts';

export interface AttemptOptions {
  model: Model;
  request: ModelRequest;
  attempt: number;
  /** What the model is told beside it. */
  context?: Partial<Parameters<Model['stream']>[1]>;
  runId: string;
  abort: EffectAbort;
  timeouts: AttemptTimeouts;
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
  random(): number;
  /** Undefined while nobody listens: then nothing is made for it. */
  live(): ((signal: Live) => void) | undefined;
  diagnose(code: string, detail?: Json): void;
}

export interface RawCall {
  /** Absent where the model gave none, since it wrote the call into its text. */
  callId?: string;
  name: string;
  args: string;
  extra?: Json;
}
/** What a complete reply holds, before its calls are looked at. */
export interface RawReply {
  kind: 'reply';
  items: (AgentItem | { type: 'call'; call: RawCall })[];
  finish: FinishReason;
  usage: Usage;
  extra?: Json;
}
export type Attempted = RawReply | Extract<ModelValue, { kind: 'failed' }>;

/** The items of a reply under construction: neighbouring deltas of one kind are one text. */
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

  /** All of one kind so far, for a reply that is cut or still comes. */
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

export class Attempt {
  readonly #options: AttemptOptions;
  readonly #reply = new ReplyText();
  #usage: Usage = zeroUsage.usage;
  #finish: FinishReason | undefined;
  #extra: Json | undefined;
  #inputs: Map<number, { index: number; name?: string; text: string }> | undefined;
  #streamed = false;
  /** Made when it is read, and the same until more comes. */
  #inFlight: InFlight | null = null;
  #oddSaid = false;

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /** The text streamed so far. */
  get partial(): string {
    return this.#reply.textOf('assistant');
  }

  get runId(): string {
    return this.#options.runId;
  }

  /** What was streamed, whole; nothing before the first delta, and behind a reset. */
  get inFlight(): InFlight | null {
    if (!this.#streamed) return null;
    this.#inFlight ??= Object.freeze({
      runId: this.runId,
      text: this.#reply.textOf('assistant'),
      reasoning: this.#reply.textOf('reasoning'),
      toolInputs: Object.freeze([...(this.#inputs?.values() ?? [])].map((input) => Object.freeze({ ...input }))),
    });
    return this.#inFlight;
  }

  /** Nothing of what was streamed counts; who listens is told. */
  reset(): void {
    if (!this.#streamed) return;
    this.#streamed = false;
    this.#options.live()?.({ type: 'reset', runId: this.runId });
  }

  async run(): Promise<Attempted> {
    const { abort, model, random, timeouts, now, setTimer } = this.#options;
    const clock = new AttemptClock({ timeouts, now, setTimer, expire: (error) => abort.abort(error) });
    try {
      await this.#read(clock).catch((error: unknown) => {
        // The reply is whole: a model that keeps its stream open after it is waited for no longer, and not asked again.
        if (this.#finish === undefined || !(abort.reason instanceof ModelError)) throw error;
      });
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

  /** Ends when the stream ends or the attempt is aborted, whichever comes first. */
  #read(clock: AttemptClock): Promise<void> {
    const { abort } = this.#options;
    return new Promise((resolve, reject) => {
      if (abort.aborted) return reject(abort.reason);
      abort.onAbort(() => reject(abort.reason));
      this.#consume(clock).then(resolve, reject);
    });
  }

  async #consume(clock: AttemptClock): Promise<void> {
    const { model, request, attempt, abort, context } = this.#options;
    const told = { ...context, signal: abort.signal, attempt };
    const stream: AsyncIterable<ModelPart> & Partial<BatchedParts> = model.stream(request, told);
    const batches = stream[BATCHES]?.();
    if (!batches) {
      for await (const part of stream) if (!this.#hear(part, clock)) return;
      return;
    }
    try {
      for (let batch = await batches.next(); batch; batch = await batches.next()) {
        for (const part of batch) if (!this.#hear(part, clock)) return;
      }
    } finally {
      batches.close();
    }
  }

  /** False once nobody waits for the reply. */
  #hear(part: ModelPart, clock: AttemptClock): boolean {
    if (this.#options.abort.aborted) return false;
    const read = readPart(part);
    if (read) {
      clock.part();
      this.#take(read);
    } else this.#odd();
    return true;
  }

  #streams(): void {
    this.#streamed = true;
    this.#inFlight = null;
  }

  #input(index: number, name: string | undefined, text: string): void {
    this.#inputs ??= new Map();
    const input = this.#inputs.get(index) ?? { index, text: '' };
    input.text += text;
    if (name !== undefined) input.name ??= name;
    this.#inputs.set(index, input);
  }

  /** Said once: a stream may hold any number of them. */
  #odd(): void {
    if (!this.#oddSaid) this.#options.diagnose('model_part', { model: this.#options.model.id });
    this.#oddSaid = true;
  }

  #take(part: ModelPart): void {
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
        const { index, name, text } = part;
        this.#input(index, name, text);
        this.#streams();
        live?.({ type: 'tool-input-delta', runId, index, text, ...(name !== undefined && { name }) });
        return;
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

interface AttemptTimeouts {
  /** Until the first part. */
  firstPartMs: number;
  /** From one part to the next. */
  idleMs: number;
  /** For the whole attempt. */
  totalMs: number | false;
}

/** A part is a note of the time; the timer of silence is armed anew only when it finds that a part came meanwhile. */
class AttemptClock {
  readonly #timeouts: AttemptTimeouts;
  readonly #now: () => number;
  readonly #setTimer: (ms: number, fire: () => void) => () => void;
  readonly #expire: (error: ModelError) => void;
  readonly #stopTotal: (() => void) | undefined;
  #stopSilence: () => void;
  /** Of the last part; undefined before the first. */
  #lastPart: number | undefined;
  /** None came since the timer was armed. */
  #silent = true;

  /** Starts at once; `expire` is called at most once for each of the two times. */
  constructor(options: {
    timeouts: AttemptTimeouts;
    now(): number;
    setTimer(ms: number, fire: () => void): () => void;
    expire(error: ModelError): void;
  }) {
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

  part(): void {
    const isFirst = this.#lastPart === undefined;
    this.#lastPart = this.#now();
    this.#silent = false;
    if (!isFirst) return;
    this.#stopSilence();
    this.#listen(this.#timeouts.idleMs);
  }

  stop(): void {
    this.#stopSilence();
    this.#stopTotal?.();
  }

  #listen(ms: number): void {
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
      // A clock that was set back, or stands still, makes no silence longer than twice what is allowed.
      const passed = Math.max(0, this.#now() - (this.#lastPart ?? 0));
      this.#listen(Math.max(1, allowed - passed));
    });
  }
}

const REASONS: ReadonlySet<unknown> = new Set<FinishReason>([
  'stop',
  'tool-calls',
  'length',
  'content-filter',
  'pause',
]);

const textOr = (value: unknown, other: string): string => (typeof value === 'string' ? value : other);

function json(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  const read = toJson(value);
  return read.kind === 'parsed' ? read.value : undefined;
}

function readCall(part: Extract<ModelPart, { type: 'tool-call' }>): ModelPart | undefined {
  if (typeof part.name !== 'string') return undefined;
  const extra = json(part.extra);
  const args = typeof part.args === 'object' && part.args !== null ? JSON.stringify(json(part.args)) : part.args;
  const call = { type: part.type, callId: textOr(part.callId, ''), name: part.name, args: textOr(args, '') };
  return extra === undefined ? call : { ...call, extra };
}

function readFinish({ type, reason, usage, extra: given }: Extract<ModelPart, { type: 'finish' }>): ModelPart {
  const extra = json(given);
  const finish = { type, reason, usage: readUsage(usage) };
  return extra === undefined ? finish : { ...finish, extra };
}

/** The part, or nothing where it is none. */
function readPart(part: ModelPart): ModelPart | undefined {
  try {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return typeof part.text === 'string' ? part : undefined;
      case 'tool-call-delta':
        return typeof part.text === 'string' && (part.name === undefined || typeof part.name === 'string')
          ? part
          : undefined;
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

type Failed = Omit<Extract<ModelValue, { kind: 'failed' }>, 'random' | 'model'>;
type Fields = { retryable?: unknown; retryAfterMs?: unknown };

/** What a thrown value means for the attempt; anything but a ModelError counts as a network error. */
export function failureOf(error: unknown): Failed {
  const message = thrownMessage(error);
  try {
    const { retryable, retryAfterMs } = error as Fields;
    // A ModelError of another copy of the library is one too.
    if (!RunchartError.isRunchartError(error) || typeof retryable !== 'boolean') throw error;
    const failed = { kind: 'failed' as const, code: String(error.code), message, retryable };
    return isCount(retryAfterMs) ? { ...failed, retryAfterMs } : failed;
  } catch {
    return { kind: 'failed', code: 'network', message, retryable: true };
  }
}
