/**
 * The journal of a conversation that a durable engine holds. Invariant: a delivery reaches the charts only after the engine
 * has recorded it, so a later attempt repeats the same deliveries. While recorded deliveries are repeated, no effect starts.
 * A tool that must not be repeated starts only after its intent is recorded.
 */
import {
  type Completion,
  type Delivery,
  type EffectRequest,
  type Journal,
  type ModelValue,
  type NewEntry,
  REPORT_KINDS,
} from '../../../machines/internal.ts';
import type { RepeatedReply } from '../../runtime/effects.ts';
import { nextTurn } from '../../timeLimit.ts';
import { EarlierEffects } from './earlierEffects.ts';

interface OpenEffect {
  request: EffectRequest;
  /** Undefined for an effect that may be repeated, and before its intent is recorded. */
  intent?: 'own' | 'foreign';
  /** A call that only opens sub-agents. Each attempt runs it from its request on. */
  isLocal?: true;
}

export interface EngineJournalOptions {
  now(): number;
  /** False for a tool that was not declared idempotent. */
  mayRepeat(request: EffectRequest): boolean;
  /**
   * True for a call that only opens sub-agents and waits for them. It runs in each attempt, also while recorded deliveries are repeated.
   */
  isLocal(request: EffectRequest): boolean;
  /** A local effect has begun its work. */
  hasBegun(request: EffectRequest): boolean;
  /** A model call that nothing accompanies may wait for another invocation. */
  mayWait(): boolean;
  /** The engine waits for the timer, and `elapsed` is called. */
  startTimer(id: string, until: number): void;
  /** The working time of the cycle so far. */
  cycleMs(): number;
  /** The most characters of the JSON of one delivery. */
  charactersMost: number;
  /** Called when `arrived` may have something. */
  wake(): void;
  /** No recorded delivery follows. */
  isLive: boolean;
}

/** A delivery that is too large for the engine becomes a failure. */
function withinLimit(delivery: Delivery, most: number): Delivery {
  const { completion } = delivery;
  if (completion.type !== 'effect.done' || most === Number.POSITIVE_INFINITY) return delivery;
  const { length } = JSON.stringify(completion.value);
  if (length <= most) return delivery;
  const message = `the engine records at most ${most} characters, got ${length}: give serveAgent the option store`;
  const error = { code: 'too_large', message };
  return { ...delivery, completion: { type: 'effect.failed', id: completion.id, cause: 'executor', error } };
}

export class EngineJournal implements Journal {
  readonly #inner: Journal;
  readonly #options: EngineJournalOptions;
  /** Requests without an answer, in the order of their start. */
  readonly #open = new Map<string, OpenEffect>();
  /** Completions that follow from the deliveries. */
  #local: Completion[] = [];
  /** Completions that were put while recorded deliveries were repeated. */
  #early: Completion[] = [];
  #recorded: Delivery | undefined;
  #unintended: OpenEffect[] = [];
  #isLive: boolean;
  #at = 0;
  #heldBack: string | undefined;
  /** Earlier effects that only another process has executed and that a later effect needs. */
  readonly #earlierEffects = new EarlierEffects();
  /** Replies that later effects do not find yet. */
  readonly #repeating = new Set<string>();
  /** Deliveries that arrived while recorded deliveries were repeated. */
  #kept: Delivery[] = [];
  #ring: () => void = () => {};

  constructor(inner: Journal, options: EngineJournalOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#isLive = options.isLive;
    inner.bell(() => options.wake());
  }

  start(request: EffectRequest): void {
    if (REPORT_KINDS.has(request.kind)) return this.#inner.start(request);
    const { id, kind } = request;
    if (kind === 'commit') {
      this.#local.push({ type: 'effect.done', id, value: { kind: 'committed' } });
      return this.#ring();
    }
    if (request.kind === 'timer') return this.#startTimer(request);
    const isLocal = this.#options.isLocal(request);
    const effect: OpenEffect = { request, ...(isLocal && { isLocal }) };
    this.#open.set(id, effect);
    if (!this.#options.mayRepeat(request)) this.#unintended.push(effect);
    else if (this.#isLive || isLocal) this.#begin(effect);
  }

  /** Timers are started in each attempt, because the engine measures them. */
  #startTimer(request: EffectRequest & { kind: 'timer' }): void {
    const { id, ofCycle } = request;
    const ms = ofCycle ? request.ms - this.#options.cycleMs() : request.ms;
    // The cycle has no time left: its end comes before any later start of the run.
    if (ofCycle && ms <= 0) {
      this.#local.push({ type: 'timer.elapsed', id });
      return this.#ring();
    }
    this.#open.set(id, { request });
    this.#options.startTimer(id, this.#at + ms);
  }

  /** The engine has measured the time of a timer. */
  elapsed(id: string): void {
    if (!this.#open.has(id)) return;
    this.#kept.push({ at: this.#at, completion: { type: 'timer.elapsed', id } });
    this.#options.wake();
  }

  drop(prefix: string): void {
    const isUnder = (id: string): boolean => id.startsWith(prefix);
    for (const id of this.#open.keys()) if (isUnder(id)) this.#open.delete(id);
    this.#local = this.#local.filter((completion) => !('id' in completion && isUnder(completion.id)));
    this.#unintended = this.#unintended.filter(({ request }) => !isUnder(request.id));
    if (prefix === '') this.#repeating.clear();
    this.#inner.drop(prefix);
  }

  put(completion: Completion): void {
    if (this.#isLive) return this.#inner.put(completion);
    this.#early.push(completion);
    this.#options.wake();
  }

  bell(ring: () => void): void {
    this.#ring = ring;
  }

  take(): Delivery | undefined {
    const completion = this.#local.shift();
    if (completion) return { at: this.#at, completion };
    const delivery = this.#recorded;
    this.#recorded = undefined;
    if (!delivery) return undefined;
    if ('id' in delivery.completion && !this.#open.delete(delivery.completion.id)) return undefined;
    this.#at = delivery.at;
    return delivery;
  }

  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void> {
    this.#at = at;
    return this.#inner.append(entries, at, carried);
  }

  /** Something that the engine has not recorded. Its time is not before that of the last delivery. */
  arrived(): Delivery | undefined {
    for (;;) {
      const kept = this.#kept.shift();
      const delivery = kept ? { ...kept, at: this.#options.now() } : this.#taken();
      if (!delivery) return undefined;
      // A local effect may end after another attempt's end of it was delivered.
      if ('id' in delivery.completion && !this.#open.has(delivery.completion.id)) continue;
      return withinLimit({ ...delivery, at: Math.max(delivery.at, this.#at) }, this.#options.charactersMost);
    }
  }

  /** The next completion of this process. Effects that run again lead to the next one of their chain. */
  #taken(): Delivery | undefined {
    for (;;) {
      const delivery = this.#inner.take();
      if (!delivery) return undefined;
      const id = 'id' in delivery.completion ? delivery.completion.id : undefined;
      if (id !== undefined && this.#repeating.delete(id)) continue;
      const next = id === undefined ? undefined : this.#earlierEffects.after(id);
      if (!next) return delivery;
      this.#inner.start(next);
    }
  }

  /** True if this process has caused a recorded delivery: an act was sent, or a local effect has ended. */
  hasCome(recorded: Completion): boolean {
    if (recorded.type === 'act') return this.#early.some((completion) => keyOf(completion) === keyOf(recorded));
    if (!('id' in recorded) || !this.#open.get(recorded.id)?.isLocal) return true;
    return this.#kept.some(({ completion }) => isOf(completion, recorded.id));
  }

  /** Removes the number of an act that this attempt has not sent, because the number could be that of another act. */
  #unanswered(completion: Completion): Completion {
    if (this.#isLive || completion.type !== 'act') return completion;
    const { actId: _, ...event } = completion.event as { type: string } & Sent;
    return { ...completion, event };
  }

  /** Takes completions that have arrived while recorded deliveries are repeated. An effect that waits for an earlier one then begins. */
  keep(): void {
    for (let delivery = this.#taken(); delivery; delivery = this.#taken()) this.#kept.push(delivery);
  }

  /** There are local effects. */
  get hasLocal(): boolean {
    return [...this.#open.values()].some(({ isLocal }) => isLocal);
  }

  /** Some of them have neither begun their work nor ended. */
  get hasUnbegun(): boolean {
    const waiting = [...this.#open.values()].filter(
      ({ request, isLocal }) => isLocal && !this.#options.hasBegun(request),
    );
    if (waiting.length === 0) return false;
    this.keep();
    return waiting.some(({ request }) => !this.#kept.some(({ completion }) => isOf(completion, request.id)));
  }

  /** Delivers a delivery that the engine has recorded. */
  deliver({ at, completion }: Delivery): void {
    const index = this.#isLive ? -1 : this.#early.findIndex((early) => keyOf(early) === keyOf(completion));
    const [early] = index < 0 ? [] : this.#early.splice(index, 1);
    this.#remember(completion);
    if ('id' in completion) this.#kept = this.#kept.filter((kept) => !isOf(kept.completion, completion.id));
    this.#recorded = { at, completion: early ? withActOf(completion, early) : this.#unanswered(completion) };
    this.#ring();
  }

  /** Stores the result of this effect for effects that begin later. */
  #remember(completion: Completion): void {
    if (completion.type !== 'effect.done') return;
    const request = this.#open.get(completion.id)?.request;
    if (!request) return;
    if (request.kind === 'model') {
      this.#earlierEffects.forget();
      if (!this.#isLive) this.#repeat(request, completion.value as ModelValue);
    } else if (!this.#isLive) this.#earlierEffects.add(request);
  }

  #repeat(request: EffectRequest & { kind: 'model' }, repeated: ModelValue): void {
    const id = `repeated/${request.id}`;
    this.#repeating.add(id);
    const again: EffectRequest & RepeatedReply = { ...request, id, repeated };
    this.#inner.start(again);
  }

  /** Resolves when effects may begin. */
  async ready(): Promise<void> {
    while (this.#repeating.size > 0) {
      this.keep();
      if (this.#repeating.size > 0) await nextTurn();
    }
  }

  /** Tools wait for the record of their intent. */
  get hasUnintended(): boolean {
    return this.#unintended.length > 0;
  }

  /** The intent is recorded. An earlier attempt may have started the tools if it is not this attempt's. */
  intend(isOwn: boolean): void {
    for (const effect of this.#unintended.splice(0)) {
      effect.intent = isOwn ? 'own' : 'foreign';
      if (isOwn && this.#isLive) this.#begin(effect);
    }
  }

  /** A tool that an earlier attempt may have started must not start again. */
  get isLost(): boolean {
    return [...this.#open.values()].some(({ intent }) => intent === 'foreign');
  }

  /** True if the delivery is the outcome of a model call. */
  isReply({ completion }: Delivery): boolean {
    return 'id' in completion && this.#open.get(completion.id)?.request.kind === 'model';
  }

  /** A model call waits for another invocation. */
  get isHeldBack(): boolean {
    return this.#heldBack !== undefined && this.#open.has(this.#heldBack);
  }

  /** The model call that waits begins here. */
  release(): void {
    const effect = this.#open.get(this.#heldBack ?? '');
    this.#heldBack = undefined;
    if (effect) this.#inner.start(this.#earlierEffects.before(effect.request));
  }

  /** Nothing is under way here but a model call that waits for another invocation. */
  get isWaiting(): boolean {
    return this.#isAlone(this.#heldBack ?? '') && this.#early.length === 0 && this.#local.length === 0;
  }

  /** Nothing is recorded beyond this point: effects without an answer start. */
  goLive(): void {
    if (this.#isLive) return;
    this.#isLive = true;
    if (this.isLost) return;
    for (const effect of this.#open.values())
      if (effect.request.kind !== 'timer' && !this.#unintended.includes(effect) && !effect.isLocal) this.#begin(effect);
    for (const completion of this.#early.splice(0)) this.#inner.put(completion);
  }

  /** Nothing is under way but timers and local effects. */
  get isTimed(): boolean {
    return this.#isAlone('') && this.#early.length === 0 && this.#local.length === 0 && this.#kept.length === 0;
  }

  get hasTimer(): boolean {
    return [...this.#open.values()].some(({ request }) => request.kind === 'timer');
  }

  /** The engine measures timers, and local effects begin again in each attempt. */
  #isAlone(id: string): boolean {
    return [...this.#open.values()].every(
      ({ request, isLocal }) => request.id === id || request.kind === 'timer' || isLocal,
    );
  }

  get isQuiet(): boolean {
    return this.#open.size === 0 && this.#early.length === 0 && this.#local.length === 0 && this.#kept.length === 0;
  }

  #begin({ request }: OpenEffect): void {
    if (request.kind === 'model' && this.#options.mayWait() && this.#isAlone(request.id)) {
      this.#heldBack = request.id;
      return this.#options.wake();
    }
    this.#inner.start(this.#earlierEffects.before(request));
  }
}

type Sent = { actId?: string; withdrawn?: true; returned?: true };

/** Returns a key that is the same in each attempt: it leaves out the number of an act, which differs between processes. */
function keyOf(completion: Completion): string {
  if (completion.type === 'act') {
    const { actId: _, withdrawn: __, returned: ___, ...event } = completion.event as { type: string } & Sent;
    return JSON.stringify(['act', event]);
  }
  if (completion.type === 'note') return JSON.stringify(['note', completion.entries]);
  return JSON.stringify(completion);
}

function withActOf(recorded: Completion, early: Completion): Completion {
  if (recorded.type === 'act' && early.type === 'act') {
    const { actId } = early.event as Sent;
    return { ...recorded, event: { ...recorded.event, ...(actId !== undefined && { actId }) } as { type: string } };
  }
  if (recorded.type === 'note' && early.type === 'note' && early.actId !== undefined)
    return { ...recorded, actId: early.actId };
  return recorded;
}

const isOf = (completion: Completion, id: string): boolean => 'id' in completion && completion.id === id;
