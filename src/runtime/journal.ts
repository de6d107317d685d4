/**
 * The journal of an embedded conversation: effects run in this process, and completions wait in one queue. Invariant: a lost
 * append comes first, because every judgement depends on it, then cancel, then first in, first out. Nothing is delivered for a
 * dropped id. An answer given inside `start` is queued.
 */
import type {
  Completion,
  Delivery,
  EffectRequest,
  EffectValue,
  Journal,
  NewEntry,
  Report,
} from '../../machines/internal.ts';
import { thrownMessage } from '../errors.ts';
import { EffectAbort } from '../timeLimit.ts';

/** The functions of the conversation that the journal calls. */
export type ExecutedRequest = Exclude<EffectRequest, Report | { kind: 'commit' | 'timer' }>;
export type Execute = (request: ExecutedRequest, abort: EffectAbort) => EffectValue | Promise<EffectValue>;
export interface JournalOptions {
  execute: Execute;
  append(entries: readonly NewEntry[], at: number): void | Promise<void>;
  now(): number;
  setTimer(ms: number, fire: () => void): () => void;
  /** The duration of the earlier runs of the cycle. */
  cycleMs(): number;
  /** Receives reports to the host: a run is over, or an act is answered. */
  report(report: Report): void;
  /** Called when an effect ends after it was dropped. */
  late(request: EffectRequest, completion: Completion): void;
}

/** Ends an active effect. */
type Stop = () => void;
/** A completion that waits for its delivery, and the function to call if it is dropped before. */
interface Arrival {
  completion: Completion;
  dropped?(): void;
}

export class EmbeddedJournal implements Journal {
  readonly #options: JournalOptions;
  readonly #urgent: Completion[] = [];
  #queue: Arrival[] = [];
  #head = 0;
  /** In the order of their start. */
  readonly #underWay = new Map<string, Stop>();
  #ring: () => void = () => {};

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  bell(ring: () => void): void {
    this.#ring = ring;
  }

  put(completion: Completion): void {
    if (completion.type === 'append.failed' && completion.lost.length > 0) this.#urgent.unshift(completion);
    else if (completion.type === 'act' && completion.priority === 'cancel') this.#urgent.push(completion);
    else this.#queue.push({ completion });
    this.#ring();
  }

  take(): Delivery | undefined {
    const completion = this.#urgent.shift() ?? this.#next();
    return completion && { at: this.#options.now(), completion };
  }

  append(entries: readonly NewEntry[], at: number): void | Promise<void> {
    return this.#options.append(entries, at);
  }

  start(request: EffectRequest): void {
    const { id } = request;
    switch (request.kind) {
      case 'ended':
      case 'answer':
        return this.#options.report(request);
      case 'commit':
        return this.put({ type: 'effect.done', id, value: { kind: 'committed' } });
      case 'timer': {
        const ms = request.ofCycle ? request.ms - this.#options.cycleMs() : request.ms;
        // The cycle has no time left: its end comes before any later start of the run.
        if (request.ofCycle && ms <= 0) return this.put({ type: 'timer.elapsed', id });
        const stop = this.#options.setTimer(ms, () => {
          if (this.#underWay.delete(id)) this.put({ type: 'timer.elapsed', id });
        });
        this.#underWay.set(id, stop);
        return;
      }
      default:
        this.#execute(request);
    }
  }

  drop(prefix: string): void {
    const ids = [...this.#underWay.keys()].filter((id) => id.startsWith(prefix));
    for (const id of ids.reverse()) {
      const stop = this.#underWay.get(id);
      this.#underWay.delete(id);
      stop?.();
    }
    if (this.#head < this.#queue.length) {
      // An empty prefix ends everything, including acts and notes.
      const isUnder = ({ completion }: Arrival): boolean =>
        prefix === '' || ('id' in completion && completion.id.startsWith(prefix));
      const arrived = this.#queue.slice(this.#head);
      this.#queue = arrived.filter((arrival) => !isUnder(arrival));
      this.#head = 0;
      for (const arrival of arrived) if (isUnder(arrival)) arrival.dropped?.();
    }
  }

  #next(): Completion | undefined {
    const arrival = this.#queue[this.#head];
    if (arrival === undefined) return undefined;
    this.#head += 1;
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    }
    return arrival.completion;
  }

  #execute(request: ExecutedRequest): void {
    const { id } = request;
    const abort = new EffectAbort();
    const stop = (): void => abort.abort(new DOMException('the run no longer waits for this', 'AbortError'));
    this.#underWay.set(id, stop);
    const arrive = (completion: Completion): void => {
      if (this.#underWay.get(id) !== stop) return this.#options.late(request, completion);
      this.#underWay.delete(id);
      this.#queue.push({ completion, dropped: () => this.#options.late(request, completion) });
      this.#ring();
    };
    const fail = (error: unknown): void => {
      const message = thrownMessage(error);
      const cause = error instanceof Error && 'runCause' in error ? String(error.runCause) : 'executor';
      arrive({ type: 'effect.failed', id, cause, error: { code: codeOf(error) ?? cause, message } });
    };
    try {
      const value = this.#options.execute(request, abort);
      if (value instanceof Promise) value.then((settled) => arrive({ type: 'effect.done', id, value: settled }), fail);
      else arrive({ type: 'effect.done', id, value });
    } catch (error) {
      fail(error);
    }
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
