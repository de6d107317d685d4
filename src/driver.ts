/**
 * Runs the charts of one conversation over a journal. A step takes one completion, delivers it, lets the charts
 * settle, appends what they logged in one go, and only then starts what they asked for, in ask order. Rule: one step
 * at a time; a subscriber that acts in between is queued. A cancel waits at most a moment for a store that is slow.
 */
import { type AnyActorRef, type AnyStateMachine, createActor, type InspectionEvent } from 'xstate';
import type { Completion, Delivery, EffectRequest, Failure, Journal, NewEntry } from '../machines/index.ts';
import { awaitAppend } from './appendWait.ts';
import { connect } from './charts.ts';
import { RunchartError } from './errors.ts';
import { Hurry } from './hurry.ts';
import { thrownMessage } from './thrown.ts';

export interface DriverOptions {
  machine: AnyStateMachine;
  input: unknown;
  journal: Journal;
  setTimer(ms: number, fire: () => void): () => void;
  /** Judges an act at its delivery: the events for the chart, none where the act changes nothing. */
  admit?(event: { type: string }): readonly { type: string }[];
  /** Called after each step, when what it logged is durable. */
  settled?(): void;
  /** Whether a cancel is still being carried out. */
  cancelling?(): boolean;
  /** An append failed. */
  refused?(error: unknown): void;
  /** The root chart broke: a defect. */
  broke?(error: unknown): void;
  inspect?(event: InspectionEvent): void;
}

export class Driver {
  readonly root: AnyActorRef;
  readonly #options: DriverOptions;
  readonly #journal: Journal;
  readonly #askers = new Map<string, AnyActorRef>();
  #entries: NewEntry[] = [];
  #asks: EffectRequest[] = [];
  #stepping = false;
  readonly #hurry: Hurry;

  constructor(options: DriverOptions) {
    this.#options = options;
    this.#journal = options.journal;
    this.#hurry = new Hurry(options.setTimer);
    const { inspect } = options;
    this.root = createActor(options.machine, { input: options.input, ...(inspect && { inspect }) });
    connect(this.root.system, {
      ask: (asker, request) => {
        this.#asks.push(request);
        this.#askers.set(request.id, asker);
      },
      drop: (prefix) => this.#drop(prefix),
      log: (entries) => void this.#entries.push(...entries),
    });
    this.root.subscribe({ error: (error: unknown) => options.broke?.(error) });
  }

  /** Starts the charts and takes what comes from now on. */
  start(at: number): void {
    this.#stepping = true;
    this.#journal.bell(() => this.#drain());
    this.root.start();
    if (this.#finish(at)) this.#goOn();
  }

  /** A cancel was put: it does not wait for a slow store. */
  hurry(): void {
    if (this.#stepping || this.#options.cancelling?.()) this.#hurry.begin();
  }

  stop(): void {
    this.#hurry.end();
    this.#journal.bell(() => {});
    this.#journal.drop('');
    this.root.stop();
  }

  #drain(): void {
    if (this.#stepping) return;
    this.#stepping = true;
    this.#goOn();
  }

  #goOn(): void {
    for (;;) {
      const delivery = this.#journal.take();
      if (!delivery) break;
      if (!this.#step(delivery)) return;
    }
    this.#stepping = false;
    if (!this.#hurry.calm && !this.#options.cancelling?.()) this.#hurry.end();
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
        const events = this.#options.admit?.(completion.event) ?? [completion.event];
        for (const event of events) this.root.send(event as never);
        return;
      }
      case 'append.failed':
        return this.root.send(completion);
      case 'effect.failed':
        this.#askers.delete(completion.id);
        return this.root.send(completion);
      default: {
        const asker = this.#askers.get(completion.id);
        this.#askers.delete(completion.id);
        asker?.send(completion);
      }
    }
  }

  #finish(at: number): boolean {
    const entries = this.#entries;
    const asks = this.#asks;
    this.#entries = [];
    this.#asks = [];
    if (entries.length === 0) {
      this.#begin(asks);
      return true;
    }
    try {
      const pending = this.#journal.append(entries, at);
      if (pending) {
        this.#await(pending, entries, asks, at);
        return false;
      }
    } catch (error) {
      return this.#fail(error, entries, asks, at);
    }
    this.#begin(asks);
    return true;
  }

  #begin(asks: readonly EffectRequest[]): void {
    for (const request of asks) if (this.#askers.has(request.id)) this.#journal.start(request);
    this.#options.settled?.();
  }

  /** What the step asked for is not started; the failure itself is the next step. */
  #fail(error: unknown, lost: readonly NewEntry[], asks: readonly EffectRequest[], at: number): boolean {
    this.#discard(asks);
    this.#options.refused?.(error);
    return this.#step({ at, completion: { type: 'append.failed', error: failureOf(error), lost } });
  }

  /** What a failed step asked for is not started; only that a run was over before stays true. */
  #discard(asks: readonly EffectRequest[]): void {
    for (const request of asks) {
      if (request.kind === 'ended') this.#journal.start(request);
      this.#askers.delete(request.id);
    }
  }

  #await(pending: Promise<void>, lost: readonly NewEntry[], asks: readonly EffectRequest[], at: number): void {
    const wait = awaitAppend(pending, {
      ahead: () => this.#goOn(),
      settled: () => this.#hurry.remove(wait),
      landed: () => this.#begin(asks),
      failed: (error, overtaken) => {
        if (overtaken) this.#putFailure(error, lost, asks);
        else if (this.#fail(error, lost, asks, at)) this.#goOn();
      },
      tooLate: () => {
        if (!asks.some(({ id }) => this.#askers.has(id))) return;
        // The entries may still land: nothing of them is lost, so nothing is written twice.
        this.#putFailure(new RunchartError('store', 'the store did not answer in time'), [], asks);
      },
    });
    this.#hurry.add(wait);
  }

  /** A failure behind a step that others have overtaken: it waits its turn. */
  #putFailure(error: unknown, lost: readonly NewEntry[], asks: readonly EffectRequest[]): void {
    this.#discard(asks);
    this.#options.refused?.(error);
    this.#journal.put({ type: 'append.failed', error: failureOf(error), lost });
  }

  #drop(prefix: string): void {
    this.#asks = this.#asks.filter(({ id }) => !id.startsWith(prefix));
    for (const id of this.#askers.keys()) if (id.startsWith(prefix)) this.#askers.delete(id);
    this.#journal.drop(prefix);
  }
}

const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'store',
  message: thrownMessage(error),
});
