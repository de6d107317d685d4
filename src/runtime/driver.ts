/**
 * Runs the charts of one conversation over a journal. A step takes one completion, delivers it, lets the charts settle,
 * appends their entries together, and only then starts their requests, in order. Invariant: one step at a time. Acts of a
 * subscriber during a step are queued. The actor that made a request receives its answer.
 */
import {
  type Completion,
  type Delivery,
  type EffectRequest,
  type Journal,
  type NewEntry,
  REPORT_KINDS,
} from '../../machines/internal.ts';
import type { Chart } from '../../machines/verbs.ts';
import { RunchartError } from '../errors.ts';
import { AppendQueue, cancelDeadline, failureOf, reportDeadline, type Step } from './appendQueue.ts';
import { compiled } from './interpreter/chartActor.ts';
import type { ChartRef, Interpreter, RootChart } from './interpreter/interpreter.ts';

export interface DriverOptions {
  machine: Chart;
  input: unknown;
  journal: Journal;
  setTimer(ms: number, fire: () => void): () => void;
  /** Adds the facts of the log to an act at its delivery. Returns the event for the chart, or nothing if the chart takes none. */
  admit?(event: { type: string }): { type: string } | undefined;
  /** Folds the entries that became durable, before the requests of their step start. */
  fold?(): void;
  /** Shows folded entries to subscribers. The end of a run is shown after the charts have taken it. */
  announce?(): void;
  /** Called after each step, when its entries are durable. */
  settled?(): void;
  /** Whether a cancel is being carried out. */
  cancelling?(): boolean;
  /** Called after each delivery that leaves nothing to cancel. A waiting `cancel()` does not wait for later work. */
  uncancelled?(): void;
  /** Called for each act whose entries could not be stored. */
  refused?(actId: string, error: unknown): void;
  /** Called when the root chart broke, which is a defect. */
  broke?(error: unknown): void;
  inspect?: ((event: unknown) => void) | undefined;
  /** The interpreter of the charts. */
  interpreter?: Interpreter | undefined;
}

export class Driver {
  readonly root: RootChart;
  readonly #options: DriverOptions;
  readonly #journal: Journal;
  readonly #requests = new OpenRequests();
  #entries: NewEntry[] = [];
  /** For each failed step: reports the failure to the hosts of its acts, when the failure is delivered. */
  #refusals: WeakMap<Completion, () => void> | undefined;
  #stepping = false;
  /** The id of a durable stop that the charts have not taken yet. */
  #durableStop: string | undefined;
  /** The durable stop is a suspension. */
  #isSuspension = false;
  readonly #appends: AppendQueue;
  readonly #deadline: ReturnType<typeof cancelDeadline>;
  readonly #reportDeadline: ReturnType<typeof reportDeadline>;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#journal = options.journal;
    this.#appends = this.#makeQueue();
    this.#deadline = cancelDeadline(options.setTimer, this.#appends);
    this.#reportDeadline = reportDeadline(options.setTimer, this.#appends);
    const { machine, input, inspect, interpreter = compiled } = options;
    this.root = interpreter({
      machine,
      input,
      world: {
        ask: (asker, request) => this.#requests.add(asker, request),
        drop: (prefix) => this.#requests.drop(prefix),
        log: (entries) => void this.#entries.push(...entries),
      },
      onError: (error) => options.broke?.(error),
      inspect,
    });
  }

  /** Starts the charts, then takes completions as they arrive. */
  start(at: number): void {
    this.#stepping = true;
    this.#journal.bell(() => this.#drain());
    this.root.start();
    if (this.#finish(at)) this.#goOn();
  }

  /** A cancel was sent: it does not wait for a slow store. */
  beginCancel(): void {
    if (this.#stepping || this.#options.cancelling?.()) this.#deadline.begin();
  }

  /** Resolves when every step so far is in the log or lost. */
  settled(): Promise<void> {
    return this.#appends.settled();
  }

  /** Every step so far is in the log. */
  get isLogged(): boolean {
    return this.#appends.isEmpty;
  }

  /** The entries that are not stored yet. */
  get unstored(): readonly NewEntry[] {
    return this.#appends.entries;
  }

  stop(): void {
    this.#stopTaken();
    this.#announce();
    this.#deadline.stop();
    this.#reportDeadline.stop();
    this.#journal.bell(() => {});
    this.#journal.drop('');
    this.#requests.drop('');
    this.root.stop();
  }

  #drain(): void {
    if (this.#stepping) return;
    this.#stepping = true;
    this.#goOn();
  }

  #goOn(): void {
    for (let next = this.#journal.take(); next; next = this.#journal.take()) {
      if (!this.#step(next)) return;
    }
    this.#stepping = false;
    this.#pace();
  }

  /** A cancel is delivered before anything else. If nothing is cancelling now, every cancel was carried out or never sent. */
  #pace(): void {
    if (this.#options.cancelling?.()) return this.#deadline.begin();
    this.#deadline.end();
    this.#options.uncancelled?.();
  }

  /** False where the step waits for its append; the loop continues after it. */
  #step({ at, completion }: Delivery): boolean {
    this.#deliver(completion);
    // This precedes the append of the next run. The cancel does not wait for that append, and sets it no time limit.
    this.#pace();
    return this.#finish(at);
  }

  #deliver(completion: Completion): void {
    switch (completion.type) {
      case 'note':
        this.#entries.push(...completion.entries);
        if (completion.actId !== undefined)
          this.#requests.add(this.root, { kind: 'answer', id: completion.actId, outcome: 'applied' });
        return;
      case 'act': {
        const { admit } = this.#options;
        const event = admit ? admit(completion.event) : completion.event;
        if (event) this.root.send(event);
        return;
      }
      case 'append.failed':
        if (this.root.getSnapshot().status === 'active') this.root.send(completion);
        return this.#refusals?.get(completion)?.();
      case 'effect.failed':
        this.#requests.close(completion.id);
        return this.root.send(completion);
      default:
        if (completion.id === this.#durableStop) this.#stopTaken();
        this.#requests.close(completion.id)?.send(completion);
    }
  }

  #finish(at: number): boolean {
    // After the charts' own actions, because ending an effect may act on other conversations.
    for (const prefix of this.#requests.takeDrops()) {
      this.#journal.drop(prefix);
      if (this.#durableStop?.startsWith(prefix)) this.#stopTaken();
    }
    // Report finished runs first; they must not wait for the next run's append.
    for (const end of this.#requests.takeEnds()) this.#journal.start(end);
    this.#announce();
    const step: Step = { at, entries: this.#entries, asks: this.#requests.take() };
    this.#entries = [];
    if (step.entries.length === 0) {
      this.#begin(step);
      return true;
    }
    if (this.#appends.add(step)) return true;
    this.#deadline.onAppend();
    // A message that arrived while a stop was being stored does not delay the report of the stop.
    if (this.#durableStop !== undefined) this.#reportDeadline.begin();
    this.#reportDeadline.onAppend();
    return false;
  }

  /** Its entries are durable. */
  #begin({ entries, asks }: Step): void {
    // Subscribers read the waiting calls of a suspension, so they receive it before a decision that follows is folded.
    if (this.#isSuspension) this.#options.announce?.();
    this.#options.fold?.();
    const stop = asks.find((request) => isStop(request) && this.#requests.isOpen(request));
    if (stop) {
      this.#durableStop = stop.id;
      this.#isSuspension = entries.some(({ type }) => type === 'run-suspended');
    }
    this.#announce();
    for (const request of asks) {
      if (!this.#requests.isOpen(request)) continue;
      if (REPORT_KINDS.has(request.kind)) this.#requests.close(request.id);
      this.#journal.start(request);
    }
    this.#options.settled?.();
  }

  /** An append has ended that later steps may have overtaken. Acts of its subscribers wait until its requests have started. */
  #land(step: Step): void {
    const isStepping = this.#stepping;
    this.#stepping = true;
    this.#begin(step);
    this.#stepping = isStepping;
    this.#drain();
  }

  /** Subscribers and charts agree about the end of a run: both have it, or neither. */
  #announce(): void {
    if (this.#durableStop === undefined) this.#options.announce?.();
  }

  #stopTaken(): void {
    this.#durableStop = undefined;
    this.#isSuspension = false;
    this.#reportDeadline.end();
  }

  /** Requests of a failed step are not started. An abandoned commit may still be stored. */
  #failure(error: unknown, { asks }: Step, lost: readonly NewEntry[]): Completion {
    const answers = asks.filter((request) => REPORT_KINDS.has(request.kind) && this.#requests.isOpen(request));
    for (const request of asks) if (request.kind !== 'commit' || lost.length > 0) this.#requests.close(request.id);
    const failure: Completion = { type: 'append.failed', error: failureOf(error), lost };
    this.#refusals ??= new WeakMap();
    this.#refusals.set(failure, () => {
      for (const { id } of answers) this.#options.refused?.(id, error);
    });
    return failure;
  }

  #makeQueue(): AppendQueue {
    const isWanted = ({ asks }: Step): boolean =>
      asks.some((request) => !REPORT_KINDS.has(request.kind) && this.#requests.isOpen(request));
    return new AppendQueue({
      append: (entries, at, carried) => this.#journal.append(entries, at, carried),
      proceed: () => this.#goOn(),
      landed: (step) => this.#land(step),
      lost: (step, error, isNext) => {
        const completion = this.#failure(error, step, step.entries);
        if (isNext) return this.#step({ at: step.at, completion });
        // Later steps have overtaken the lost one, so the failure is delivered before anything else.
        this.#journal.put(completion);
        return false;
      },
      givenUp: (step) => {
        if (!isWanted(step)) return;
        // The entries may still be stored. None of them is lost, so none is written twice.
        const silence = new RunchartError('store', 'the store did not answer in time');
        this.#journal.put(this.#failure(silence, step, []));
      },
    });
  }
}

const isStop = (request: EffectRequest): boolean => request.kind === 'commit' && request.boundary === 'RunFinished';

export class OpenRequests {
  readonly #requesters = new Map<string, ChartRef>();
  #ofStep: EffectRequest[] = [];
  #ends: EffectRequest[] = [];
  #drops: string[] = [];

  /** The end of a run is a report without an answer. */
  add(asker: ChartRef, request: EffectRequest): void {
    if (request.kind === 'ended') {
      this.#ends.push(request);
      return;
    }
    this.#ofStep.push(request);
    this.#requesters.set(request.id, asker);
  }

  /** The requests since the last call, in order. */
  take(): EffectRequest[] {
    const asks = this.#ofStep;
    this.#ofStep = [];
    return asks;
  }

  /** The reports of ended runs. */
  takeEnds(): EffectRequest[] {
    const ends = this.#ends;
    this.#ends = [];
    return ends;
  }

  /** The prefixes dropped since the last call, in order. */
  takeDrops(): string[] {
    const drops = this.#drops;
    this.#drops = [];
    return drops;
  }

  /** Whether the answer is still needed. */
  isOpen({ id }: EffectRequest): boolean {
    return this.#requesters.has(id);
  }

  /** Removes the request and returns the actor that made it. */
  close(id: string): ChartRef | undefined {
    const asker = this.#requesters.get(id);
    this.#requesters.delete(id);
    return asker;
  }

  /** Effects are ended after the charts have settled. */
  drop(prefix: string): void {
    this.#drops.push(prefix);
    const stays = ({ id }: EffectRequest): boolean => !id.startsWith(prefix);
    this.#ofStep = this.#ofStep.filter(stays);
    this.#ends = this.#ends.filter(stays);
    for (const id of this.#requesters.keys()) if (id.startsWith(prefix)) this.#requesters.delete(id);
  }
}
