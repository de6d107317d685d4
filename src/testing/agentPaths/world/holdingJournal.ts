/**
 * A journal around the embedded one, for an agent under test. Invariant: the script releases a tool's answer. Answers
 * of gates and phases are delivered in the order of their requests. A dead process does nothing more.
 */
import {
  type Completion,
  type Delivery,
  type EffectRequest,
  type Journal,
  type NewEntry,
  REPORT_KINDS,
} from '../../../../machines/internal.ts';

/** The agent's own work between two moves. */
const BY_ITSELF: ReadonlySet<EffectRequest['kind']> = new Set(['gate', 'phase', 'afterTool', 'context']);

export interface HoldingOptions {
  /** Returns true while the process is alive. */
  lives(): boolean;
  /** The ends of tools wait for their release. */
  holdsTools: boolean;
  /** Returns true to hold the answer until an act has arrived. */
  holds(request: EffectRequest): boolean;
  /** Something happened. */
  stirred(): void;
  /** Called around the start of an effect, which may start another request in its place. */
  starting(request: EffectRequest, start: (request: EffectRequest) => void): void;
  /** Called before entries are appended. */
  appending(entries: readonly NewEntry[]): void;
  /** Receives every delivered answer. */
  answered(request: EffectRequest, completion: Completion): void;
}

const idOf = (completion: Completion): string | undefined => ('id' in completion ? completion.id : undefined);

export class HoldingJournal implements Journal {
  /** The unanswered requests in start order. */
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
    this.#options.appending(entries);
    return this.#embedded.append(entries, at, carried);
  }

  start(request: EffectRequest): void {
    if (!this.#options.lives()) return;
    this.#options.stirred();
    const isWatched = !REPORT_KINDS.has(request.kind) && request.kind !== 'commit';
    if (isWatched || this.#options.holds(request)) this.open.set(request.id, request);
    this.#options.starting(request, (started) => this.#embedded.start(started));
  }

  drop(prefix: string): void {
    for (const id of this.open.keys()) if (id.startsWith(prefix)) this.open.delete(id);
    for (const id of this.#arrived.keys()) if (id.startsWith(prefix)) this.#arrived.delete(id);
    // A dead process aborts nothing.
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

  /** Releases the answer of a tool, now or on arrival. */
  release(id: string): void {
    this.#released.add(id);
    this.#ring();
  }

  /** Releases the held requests that may continue now. */
  letGo(): void {
    this.#ring();
  }

  /** Some request is held until the next move. */
  get isHolding(): boolean {
    return [...this.open.values()].some((request) => this.#options.holds(request));
  }

  /** The agent has its own work to do, or the answer of a released tool is pending. */
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

  /** The agent's own requests are answered in their order. */
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
