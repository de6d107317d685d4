/**
 * The journal around the embedded one while an agent is tested. Rule: a tool's answer is held until the script lets it
 * go; what gates and phases say is handed over in the order in which they were asked, however they settle; a process that
 * died does nothing more.
 */
import {
  type Completion,
  type Delivery,
  type EffectRequest,
  type Journal,
  type NewEntry,
  REPORT_KINDS,
} from '../../../../machines/internal.ts';

/** What the agent under test does by itself between two moves. */
const BY_ITSELF: ReadonlySet<EffectRequest['kind']> = new Set(['gate', 'phase', 'afterTool', 'context']);

export interface HoldingOptions {
  /** The process lives. */
  lives(): boolean;
  /** The ends of tools wait to be let go. */
  holdsTools: boolean;
  /** Holds the answer until an act has arrived. */
  holds(request: EffectRequest): boolean;
  /** Something happened. */
  stirred(): void;
  /** Called around the start of an effect. */
  starting(request: EffectRequest, start: () => void): void;
  /** Told of every answer that is delivered. */
  answered(request: EffectRequest, completion: Completion): void;
}

const idOf = (completion: Completion): string | undefined => ('id' in completion ? completion.id : undefined);

export class HoldingJournal implements Journal {
  /** Started and not answered, in start order. */
  readonly open = new Map<string, EffectRequest>();
  readonly #embedded: Journal;
  readonly #options: HoldingOptions;
  readonly #arrived = new Map<string, Delivery>();
  readonly #released = new Set<string>();
  #ring: () => void = () => {};

  constructor(embedded: Journal, options: HoldingOptions) {
    this.#embedded = embedded;
    this.#options = options;
  }

  bell(ring: () => void): void {
    this.#ring = ring;
    this.#embedded.bell(ring);
  }

  put(completion: Completion): void {
    this.#options.stirred();
    this.#embedded.put(completion);
  }

  append(entries: readonly NewEntry[], at: number, carried: boolean): void | Promise<void> {
    if (!this.#options.lives()) return new Promise(() => undefined);
    this.#options.stirred();
    return this.#embedded.append(entries, at, carried);
  }

  start(request: EffectRequest): void {
    if (!this.#options.lives()) return;
    this.#options.stirred();
    const isWatched = !REPORT_KINDS.has(request.kind) && request.kind !== 'commit';
    if (isWatched || this.#options.holds(request)) this.open.set(request.id, request);
    this.#options.starting(request, () => this.#embedded.start(request));
  }

  drop(prefix: string): void {
    for (const id of this.open.keys()) if (id.startsWith(prefix)) this.open.delete(id);
    for (const id of this.#arrived.keys()) if (id.startsWith(prefix)) this.#arrived.delete(id);
    // A process that died aborts nothing.
    if (this.#options.lives()) this.#embedded.drop(prefix);
  }

  take(): Delivery | undefined {
    if (!this.#options.lives()) return undefined;
    for (;;) {
      const ready = this.#nextReady();
      if (ready) return ready;
      const delivery = this.#embedded.take();
      if (!delivery) return undefined;
      const { completion } = delivery;
      const request = this.open.get(idOf(completion) ?? '');
      if (!request || !this.#isHeld(request)) return this.#handedOver(delivery);
      this.#options.stirred();
      this.#arrived.set(request.id, delivery);
    }
  }

  /** Lets the answer of a tool go, now or when it comes. */
  release(id: string): void {
    this.#released.add(id);
    this.#ring();
  }

  /** Releases held requests that may continue now. */
  letGo(): void {
    this.#ring();
  }

  /** A request is held until the next move. */
  get isHolding(): boolean {
    return [...this.open.values()].some((request) => this.#options.holds(request));
  }

  /** The agent has something to do by itself, or the answer of a tool that was let go is still to come. */
  get isBusy(): boolean {
    const first = this.#first;
    const goesOn = first !== undefined && !this.#options.holds(first);
    for (const { id, kind } of this.open.values()) {
      if (BY_ITSELF.has(kind) && goesOn) return true;
      if (kind === 'tool' && (!this.#options.holdsTools || this.#released.has(id))) return true;
    }
    return false;
  }

  #isHeld(request: EffectRequest): boolean {
    const { kind } = request;
    return BY_ITSELF.has(kind) || (kind === 'tool' && this.#options.holdsTools) || this.#options.holds(request);
  }

  /** What the agent does by itself is answered in the order in which it was asked. */
  get #first(): EffectRequest | undefined {
    return [...this.open.values()].find(({ kind }) => BY_ITSELF.has(kind));
  }

  #nextReady(): Delivery | undefined {
    const first = this.#first;
    for (const [id, delivery] of this.#arrived) {
      const request = this.open.get(id);
      const isDue = id === first?.id || this.#released.has(id) || request?.kind === 'commit';
      if (!isDue || (request && this.#options.holds(request))) continue;
      this.#arrived.delete(id);
      return this.#handedOver(delivery);
    }
    return undefined;
  }

  #handedOver(delivery: Delivery): Delivery {
    this.#options.stirred();
    const request = this.open.get(idOf(delivery.completion) ?? '');
    if (request) {
      this.open.delete(request.id);
      this.#released.delete(request.id);
      this.#options.answered(request, delivery.completion);
    }
    return delivery;
  }
}
