/**
 * A journal that delivers the lines of a recording. Invariant: nothing is executed. Deliveries, times and failed
 * appends come only from the recording, so the same charts write the same log. Nothing happens after the last line.
 */
import {
  type Delivery,
  type EffectRequest,
  type Failure,
  type Journal,
  type NewEntry,
  REPORT_KINDS,
} from '../../machines/internal.ts';
import { RunchartError } from '../errors.ts';
import type { RecordedDelivery } from './recorded.ts';

/** The lines of a recording. */
type Recording = readonly RecordedDelivery[];

/** The outcome of one append. */
interface Fate {
  failure?: Failure;
  /** It was not durable at once. */
  waited?: boolean;
  landed?: boolean;
  /** Other deliveries, or its own failure, came while it waited. */
  overtaken?: boolean;
  /** It failed, and is part of the next append. */
  carried?: boolean;
}

function fatesOf(recording: Recording): Map<number, Fate> {
  const fates = new Map<number, Fate>();
  const underWay = new Set<Fate>();
  const fateOf = (append: number): Fate => {
    const fate = fates.get(append) ?? {};
    fates.set(append, fate);
    return fate;
  };
  for (const line of recording) {
    if (line.kind === 'delivery') for (const fate of underWay) fate.overtaken = true;
    if (!('append' in line)) continue;
    const fate = fateOf(line.append);
    if (line.kind === 'overtaken') fate.overtaken = true;
    if (line.kind === 'carried') fate.carried = true;
    if (line.kind === 'landed') fate.landed = true;
    if (line.kind === 'failed') fate.failure = line.error;
    if (line.kind === 'waiting') underWay.add(Object.assign(fate, { waited: true }));
    else underWay.delete(fate);
  }
  return fates;
}

export class ReplayingJournal implements Journal {
  readonly #inner: Journal;
  readonly #recording: Recording;
  readonly #fates: Map<number, Fate>;
  readonly #openedAt: number | undefined;
  /** Appends that are not durable yet at this point of the recording. */
  readonly #pendingAppends = new Map<number, () => void>();
  /** Entries of failed appends that the next append includes. */
  #carried: readonly NewEntry[] = [];
  readonly #requestedIds = new Set<string>();
  #next = 0;
  #appends = 0;

  /** An effect that the recording answers but these charts never requested: charts or policies differ. */
  strayed: string | undefined;

  constructor(inner: Journal, recording: Recording) {
    this.#inner = inner;
    this.#recording = recording;
    this.#fates = fatesOf(recording);
    this.#openedAt = recording.find((line) => line.kind === 'opened')?.at;
  }

  /** A report to the host has no effect outside. */
  start(request: EffectRequest): void {
    if (REPORT_KINDS.has(request.kind)) this.#inner.start(request);
    else this.#requestedIds.add(request.id);
  }

  drop(): void {}

  put(): void {}

  bell(): void {}

  take(): Delivery | undefined {
    while (this.strayed === undefined) {
      const line = this.#recording[this.#next];
      if (!line) break;
      this.#next += 1;
      if (line.kind === 'landed') this.#storePending(line.append);
      if (line.kind !== 'delivery') continue;
      const { at, completion } = line;
      if ('id' in completion && !this.#requestedIds.has(completion.id)) this.strayed = completion.id;
      else return { at, completion };
    }
    return undefined;
  }

  append(logged: readonly NewEntry[], at: number): void | Promise<void> {
    const append = this.#appends;
    this.#appends += 1;
    const time = this.#next === 0 ? (this.#openedAt ?? at) : at;
    const { failure, waited, landed, overtaken, carried } = this.#fates.get(append) ?? {};
    const entries = this.#carried.length > 0 ? [...this.#carried, ...logged] : logged;
    this.#carried = carried ? entries : [];
    // If it was overtaken, the recording reports the failure in a delivery, or not at all.
    if (failure && (overtaken || carried)) return;
    if (failure) throw new RunchartError(failure.code, failure.message);
    if (waited && !landed) return overtaken ? undefined : new Promise(() => undefined);
    if (!overtaken && this.#pendingAppends.size === 0) return this.#inner.append(entries, time, false);
    this.#pendingAppends.set(append, () => void this.#inner.append(entries, time, false));
  }

  #storePending(append: number): void {
    const store = this.#pendingAppends.get(append);
    this.#pendingAppends.delete(append);
    store?.();
  }
}

/**
 * Makes a journal for `ports.journal` that replays a recording. The store must append at once, like `memoryStore()`, and contain
 * the entries at the start of the recording.
 */
export function replayingJournal(recording: Recording): (embedded: Journal) => ReplayingJournal {
  return (embedded) => new ReplayingJournal(embedded, recording);
}
