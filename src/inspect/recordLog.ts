/**
 * What an inspector was told, numbered in order and kept within bounds, for those who watch now and those who come late.
 * Rule: adding one is cheap and makes no text; of what is kept, events and transitions go first, since the log and the
 * living actors tell where a run stands without them.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { ENTRY, excerpt } from './excerpt.ts';
import { FRAME_MAX, type Recorded, type RecordedFact } from './wire.ts';

export interface RecordLimits {
  /** Events, transitions and what was settled. */
  moves: number;
  /** All others: charts, conversations, actors, entries. */
  rest: number;
}

const LIMITS: RecordLimits = { moves: 20_000, rest: 100_000 };
const isMove = ({ type }: RecordedFact): boolean => type === 'event' || type === 'transition' || type === 'settled';
/** Of a record of its kind that must not be lost while others of that kind are kept: without its chart no actor can be drawn. */
const isLasting = ({ type }: RecordedFact): boolean => type === 'chart' || type === 'conversation';

export class RecordLog {
  readonly #limits: RecordLimits;
  readonly #now: () => number;
  #kept: Recorded[] = [];
  #moves = 0;
  #next = 0;
  #dropped = 0;
  readonly #listeners = new Set<() => void>();

  constructor(now: () => number, limits: RecordLimits = LIMITS) {
    this.#now = now;
    this.#limits = limits;
  }

  /** Number of the next record. */
  get next(): number {
    return this.#next;
  }

  get dropped(): number {
    return this.#dropped;
  }

  add(fact: RecordedFact): void {
    this.#kept.push({ n: this.#next, at: this.#now(), ...fact } as Recorded);
    this.#next += 1;
    if (isMove(fact)) this.#moves += 1;
    const { moves, rest } = this.#limits;
    if (this.#moves > moves * 1.25) this.#drop(this.#moves - moves, isMove);
    else if (this.#kept.length - this.#moves > rest * 1.25)
      this.#drop(this.#kept.length - this.#moves - rest, (record) => !isMove(record) && !isLasting(record));
    for (const listener of this.#listeners) listener();
  }

  /** Those numbered `from` and later, in order. */
  since(from: number): readonly Recorded[] {
    let low = 0;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#kept[middle] as Recorded).n < from) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? this.#kept : this.#kept.slice(low);
  }

  /** Called behind each that is added. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #drop(count: number, mayGo: (record: Recorded) => boolean): void {
    let left = count;
    const kept = this.#kept.filter((record) => {
      if (left === 0 || !mayGo(record)) return true;
      left -= 1;
      return false;
    });
    const gone = this.#kept.length - kept.length;
    this.#dropped += gone;
    if (mayGo === isMove) this.#moves -= gone;
    this.#kept = kept;
  }
}

type EventFact = Extract<RecordedFact, { type: 'event' }>;

/** An event as it is to be shown; it is copied when that is sent, and only then. */
export class ShownEvent {
  readonly type: string;
  readonly #event: object;
  readonly #redact: (event: object) => unknown;

  constructor(event: { type: string }, redact: (event: object) => unknown) {
    this.type = event.type;
    this.#event = event;
    this.#redact = redact;
  }

  /** As part of a record, which is only ever made JSON. */
  get asField(): EventFact['event'] {
    return this as unknown as EventFact['event'];
  }

  toJSON(): Json {
    return excerpt(this.#redact(this.#event));
  }
}

/** A record as JSON, within a frame. */
export function recordText(record: Recorded): string {
  const whole = JSON.stringify(record);
  if (whole.length < FRAME_MAX / 2) return whole;
  const cut = record.type === 'entry' ? { ...record, entry: excerpt(record.entry, ENTRY), cut: true } : excerpt(record);
  return JSON.stringify(cut);
}
