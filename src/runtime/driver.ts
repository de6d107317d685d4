/**
 * Runs the charts of one conversation over a journal. A step takes one completion, delivers it, lets the charts
 * settle, appends what they logged in one go, and only then starts what they asked for, in ask order. Rule: one step
 * at a time; a subscriber that acts in between is queued; an answer goes to the actor that asked.
 */
import type { Completion, Delivery, EffectRequest, Journal, NewEntry } from '../../machines/internal.ts';
import type { Chart } from '../../machines/verbs.ts';
import { RunchartError } from '../errors.ts';
import { AppendQueue, CancelDeadline, failureOf, type Step } from './appendQueue.ts';
import { compiled } from './interpreter/chartActor.ts';
import type { ChartRef, Interpreter, RootChart } from './interpreter/interpreter.ts';

export interface DriverOptions {
  machine: Chart;
  input: unknown;
  journal: Journal;
  setTimer(ms: number, fire: () => void): () => void;
  /** Judges an act at its delivery: the events for the chart, none where the act changes nothing. */
  admit?(event: { type: string }): readonly { type: string }[];
  /** Called after each step, when what it logged is durable, with the acts that it delivered. */
  settled?(acts: readonly object[]): void;
  /** Whether a cancel is still being carried out. */
  cancelling?(): boolean;
  /** What a step logged could not be stored. */
  refused?(acts: readonly object[], error: unknown): void;
  /** The root chart broke: a defect. */
  broke?(error: unknown): void;
  inspect?: ((event: unknown) => void) | undefined;
  /** What runs the charts. */
  interpreter?: Interpreter | undefined;
}

export class Driver {
  readonly root: RootChart;
  readonly #options: DriverOptions;
  readonly #journal: Journal;
  readonly #requests = new OpenRequests();
  #entries: NewEntry[] = [];
  #acts: object[] = [];
  /** What the hosts of a failed step's acts are told, when its failure is delivered. */
  #refusals: WeakMap<Completion, () => void> | undefined;
  #stepping = false;
  readonly #appends: AppendQueue;
  readonly #deadline: CancelDeadline;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#journal = options.journal;
    this.#appends = this.#makeQueue();
    this.#deadline = new CancelDeadline(options.setTimer, this.#appends);
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

  /** Starts the charts and takes what comes from now on. */
  start(at: number): void {
    this.#stepping = true;
    this.#journal.bell(() => this.#drain());
    this.root.start();
    if (this.#finish(at)) this.#goOn();
  }

  /** A cancel was put: it does not wait for a slow store. */
  beginCancel(): void {
    if (this.#stepping || this.#options.cancelling?.()) this.#deadline.begin();
  }

  /** Resolves when every step so far is in the log, or never will be. */
  settled(): Promise<void> {
    return this.#appends.settled();
  }

  /** Every step so far is in the log. */
  get isLogged(): boolean {
    return this.#appends.isEmpty;
  }

  stop(): void {
    this.#deadline.stop();
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
      this.#deliver(next.completion);
      // Before what follows is appended: the run behind a cancel has all the time it needs.
      this.#pace();
      if (!this.#finish(next.at)) return;
    }
    this.#stepping = false;
    this.#pace();
  }

  /** A cancel is taken before anything else, so what is not cancelling now has been cancelled, or never was. */
  #pace(): void {
    if (this.#options.cancelling?.()) this.#deadline.begin();
    else this.#deadline.end();
  }

  /** False where the step waits for its append; the drain goes on behind it. */
  #step({ at, completion }: Delivery): boolean {
    this.#deliver(completion);
    return this.#finish(at);
  }

  #deliver(completion: Completion): void {
    switch (completion.type) {
      case 'note':
        this.#entries.push(...completion.entries);
        return;
      case 'act': {
        this.#acts.push(completion.event);
        const events = this.#options.admit?.(completion.event) ?? [completion.event];
        for (const event of events) this.root.send(event);
        return;
      }
      case 'append.failed':
        if (this.root.getSnapshot().status === 'active') this.root.send(completion);
        return this.#refusals?.get(completion)?.();
      case 'effect.failed':
        this.#requests.close(completion.id);
        return this.root.send(completion);
      default:
        this.#requests.close(completion.id)?.send(completion);
    }
  }

  #finish(at: number): boolean {
    // Behind the charts' own actions: what ends an effect may act on other conversations.
    for (const prefix of this.#requests.takeDrops()) this.#journal.drop(prefix);
    // A run was over before: nobody waits for what begins behind it to be stored.
    for (const end of this.#requests.takeEnds()) this.#journal.start(end);
    const step: Step = { at, entries: this.#entries, asks: this.#requests.take(), acts: this.#acts };
    this.#entries = [];
    this.#acts = [];
    if (step.entries.length === 0) {
      this.#begin(step);
      return true;
    }
    try {
      if (this.#appends.add(step)) {
        this.#deadline.onAppend();
        return false;
      }
    } catch (error) {
      // The failure itself is the next step.
      return this.#step({ at, completion: this.#failure(error, step, step.entries) });
    }
    this.#begin(step);
    return true;
  }

  #begin({ asks, acts }: Step): void {
    for (const request of asks) if (this.#requests.isOpen(request)) this.#journal.start(request);
    this.#options.settled?.(acts);
  }

  /** What a failed step asked for is not started. A commit given up may land. */
  #failure(error: unknown, { asks, acts }: Step, lost: readonly NewEntry[]): Completion {
    for (const request of asks) if (request.kind !== 'commit' || lost.length > 0) this.#requests.close(request.id);
    const failure: Completion = { type: 'append.failed', error: failureOf(error), lost };
    this.#refusals ??= new WeakMap();
    this.#refusals.set(failure, () => this.#options.refused?.(acts, error));
    return failure;
  }

  #makeQueue(): AppendQueue {
    const isWanted = ({ asks }: Step): boolean => asks.some((request) => this.#requests.isOpen(request));
    return new AppendQueue({
      append: (entries, at, carried) => this.#journal.append(entries, at, carried),
      ahead: () => this.#goOn(),
      landed: (step) => this.#begin(step),
      failed: ({ step, blocks, carries }, error) => {
        const completion = this.#failure(error, step, step.entries);
        if (blocks && !carries) {
          if (this.#step({ at: step.at, completion })) this.#goOn();
          return;
        }
        // Others have overtaken what is lost, so it comes as a delivery, and before any other one.
        this.#journal.put(completion);
        if (blocks) this.#goOn();
      },
      tooLate: (wait) => {
        if (wait.givenUp || !isWanted(wait.step)) return;
        wait.givenUp = true;
        // The entries may still land: nothing of them is lost, so nothing is written twice.
        const silence = new RunchartError('store', 'the store did not answer in time');
        this.#journal.put(this.#failure(silence, wait.step, []));
      },
    });
  }
}

export class OpenRequests {
  readonly #requesters = new Map<string, ChartRef>();
  #ofStep: EffectRequest[] = [];
  #ends: EffectRequest[] = [];
  #drops: string[] = [];

  /** The end of a run is told and takes no answer. */
  add(asker: ChartRef, request: EffectRequest): void {
    if (request.kind === 'ended') {
      this.#ends.push(request);
      return;
    }
    this.#ofStep.push(request);
    this.#requesters.set(request.id, asker);
  }

  /** What was asked for since the last time, in ask order. */
  take(): EffectRequest[] {
    const asks = this.#ofStep;
    this.#ofStep = [];
    return asks;
  }

  /** What tells that runs are over. */
  takeEnds(): EffectRequest[] {
    const ends = this.#ends;
    this.#ends = [];
    return ends;
  }

  /** The prefixes that were dropped since the last time, in order. */
  takeDrops(): string[] {
    const drops = this.#drops;
    this.#drops = [];
    return drops;
  }

  /** Whether the answer is still wanted. */
  isOpen({ id }: EffectRequest): boolean {
    return this.#requesters.has(id);
  }

  /** Removes the request and returns the actor that made it. */
  close(id: string): ChartRef | undefined {
    const asker = this.#requesters.get(id);
    this.#requesters.delete(id);
    return asker;
  }

  /** What was under way is ended once the charts have settled. */
  drop(prefix: string): void {
    this.#drops.push(prefix);
    const stays = ({ id }: EffectRequest): boolean => !id.startsWith(prefix);
    this.#ofStep = this.#ofStep.filter(stays);
    this.#ends = this.#ends.filter(stays);
    for (const id of this.#requesters.keys()) if (id.startsWith(prefix)) this.#requesters.delete(id);
  }
}
