/**
 * A journal that delivers what a recording holds. Rule: nothing is executed; deliveries, times and failed appends come
 * from the recording and from nowhere else, so the same charts write the same log. Behind the last line nothing
 * happens any more.
 */
import type { Delivery, EffectRequest, Failure, Journal, NewEntry } from '../../machines/index.ts';
import { RunchartError } from '../errors.ts';
import type { RecordedDelivery } from './recorded.ts';

type Recording = readonly RecordedDelivery[];

export class ReplayingJournal implements Journal {
  readonly #inner: Journal;
  readonly #recording: Recording;
  readonly #failures = new Map<number, Failure>();
  readonly #overtaken = new Set<number>();
  readonly #late = new Set<number>();
  /** Appends that are not durable yet at this point of the recording. */
  readonly #held = new Map<number, () => void>();
  readonly #asked = new Set<string>();
  #openedAt: number | undefined;
  #next = 0;
  #appends = 0;

  /** An effect the recording answers though these charts never asked for it: they are other charts, or other policies. */
  strayed: string | undefined;

  constructor(inner: Journal, recording: Recording) {
    this.#inner = inner;
    this.#recording = recording;
    for (const line of recording) {
      if (line.kind === 'opened') this.#openedAt = line.at;
      else if (line.kind === 'failed') this.#failures.set(line.append, line.error);
      else if (line.kind === 'overtaken') this.#overtaken.add(line.append);
      else if (line.kind === 'landed') this.#late.add(line.append);
    }
  }

  /** Telling the host that a run is over is no effect on the world. */
  start(request: EffectRequest): void {
    if (request.kind === 'ended') this.#inner.start(request);
    else this.#asked.add(request.id);
  }

  drop(): void {}

  put(): void {}

  bell(): void {}

  take(): Delivery | undefined {
    while (this.strayed === undefined) {
      const line = this.#recording[this.#next];
      if (!line) break;
      this.#next += 1;
      if (line.kind === 'landed') this.#held.get(line.append)?.();
      if (line.kind !== 'delivery') continue;
      const { at, completion } = line;
      if ('id' in completion && !this.#asked.has(completion.id)) this.strayed = completion.id;
      else return { at, completion };
    }
    return undefined;
  }

  append(entries: readonly NewEntry[], at: number): void | Promise<void> {
    const append = this.#appends;
    this.#appends += 1;
    const failure = this.#failures.get(append);
    // Where it was overtaken, a delivery of the recording tells of it.
    if (failure && this.#overtaken.has(append)) return;
    if (failure) throw new RunchartError(failure.code, failure.message);
    const time = this.#next === 0 ? (this.#openedAt ?? at) : at;
    if (!this.#late.has(append)) return this.#inner.append(entries, time);
    this.#held.set(append, () => void this.#inner.append(entries, time));
  }
}

/**
 * For `ports.journal`: replays a recording. The store should append at once, as `memoryStore()` does, and hold the
 * entries the recording began with.
 */
export function replayingJournal(recording: Recording): (embedded: Journal) => ReplayingJournal {
  return (embedded) => new ReplayingJournal(embedded, recording);
}
