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
/** Without its chart no actor can be drawn: these are never dropped. */
const isLasting = ({ type }: RecordedFact): boolean => type === 'chart' || type === 'conversation';
const isMove = ({ type }: RecordedFact): boolean => type === 'event' || type === 'transition' || type === 'settled';

/** Place of the first that is numbered `from` or later. */
function placeOf(records: readonly Recorded[], from: number): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((records[middle] as Recorded).n < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A fact that is recorded very often has room for its number and time from its beginning: to make room later costs more. */
export type NewRecord = RecordedFact & { n?: 0; at?: 0 };

export class RecordLog {
  readonly #limits: RecordLimits;
  readonly #now: () => number;
  readonly #lasting: Recorded[] = [];
  readonly #moves: Recorded[] = [];
  readonly #rest: Recorded[] = [];
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

  /** The fact becomes the record: what is handed over is nobody else's any more. */
  add(fact: NewRecord): void {
    const record = fact as Recorded;
    record.n = this.#next;
    record.at = this.#now();
    this.#next += 1;
    if (isMove(fact)) this.#keep(this.#moves, record, this.#limits.moves);
    else if (isLasting(fact)) this.#lasting.push(record);
    else this.#keep(this.#rest, record, this.#limits.rest);
    for (const listener of this.#listeners) listener();
  }

  /** Those numbered `from` and later, in order. */
  since(from: number): readonly Recorded[] {
    const lists = [this.#lasting, this.#moves, this.#rest].map((list) => list.slice(placeOf(list, from)));
    const [only, ...others] = lists.filter(({ length }) => length > 0);
    if (!only || others.length === 0) return only ?? [];
    return lists.flat().sort((a, b) => a.n - b.n);
  }

  /** Called behind each that is added. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Some more than the limit, so that dropping is rare. */
  #keep(list: Recorded[], record: Recorded, limit: number): void {
    list.push(record);
    if (list.length <= limit * 1.25) return;
    const gone = list.length - limit;
    list.splice(0, gone);
    this.#dropped += gone;
  }
}

type EventFact = Extract<RecordedFact, { type: 'event' }>;

/** An event that was sent. It is copied when it is shown, and only then: as JSON it has neither secrets nor length. */
export class EventRecord {
  readonly type = 'event';
  n = 0;
  at = 0;
  readonly actor: string;
  readonly from: string | undefined;
  readonly event: EventFact['event'];
  readonly #redact: (event: object) => unknown;

  constructor(actor: string, from: string | undefined, event: { type: string }, redact: (event: object) => unknown) {
    this.actor = actor;
    this.from = from;
    this.event = event as EventFact['event'];
    this.#redact = redact;
  }

  toJSON(): Json {
    const { n, at, type, actor, from, event } = this;
    return { n, at, type, actor, ...(from !== undefined && { from }), event: excerpt(this.#redact(event)) };
  }
}

/** A record as JSON, within a frame. */
export function recordText(record: Recorded): string {
  const whole = JSON.stringify(record);
  if (whole.length < FRAME_MAX / 2) return whole;
  const cut = record.type === 'entry' ? { ...record, entry: excerpt(record.entry, ENTRY), cut: true } : excerpt(record);
  return JSON.stringify(cut);
}
