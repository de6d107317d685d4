/**
 * The numbered records of an inspector, in order and within limits, for pages that watch now or connect late.
 * Invariant: storing a record creates no text, no copy and, for frequent kinds, no object. Records are built when they
 * are read. Events and transitions are dropped first, because the log and the running actors show the state of a run
 * without them.
 */
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import type { Transition } from '../runtime/interpreter/plan.ts';
import type { Chart } from './chart.ts';
import { ENTRY, excerpt, pageJson } from './excerpt.ts';
import {
  type ActorStatus,
  FRAME_MAX,
  type Recorded,
  type RecordedFact,
  type StateValue,
  type TakenTransition,
} from './wire.ts';

export interface RecordLimits {
  /** The limit of events, transitions and settled states. */
  moves: number;
  /**
   * The limit of events of this process that a page can still request as a whole. They keep references to old values of
   * a run, so they need the most memory.
   */
  events: number;
  /** The limit of all others: charts, conversations, actors, entries. */
  rest: number;
}

const LIMITS: RecordLimits = { moves: 20_000, events: 500, rest: 100_000 };
/**
 * These are kept: no actor can be drawn without its chart. A conversation is dropped with the record that it was closed.
 */
const isLasting = ({ type }: RecordedFact): boolean => type === 'chart' || type === 'conversation';

/** Returns the index of the first of `count` records that is numbered `from` or later. */
function placeOf(count: number, numberAt: (index: number) => number, from: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numberAt(middle) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

const numberIn = (list: readonly Recorded[]) => (index: number) => (list[index] as Recorded).n;

/** Frequent facts have fields for number and time from the start: adding them later costs more. */
export type NewRecord = RecordedFact & { n?: 0; at?: 0 };

/** The transitions of a microstep: a list, or the transition of a plan, whose list is built when it is read. */
export type Taken = readonly TakenTransition[] | Transition | undefined;

type Redact = (event: object) => unknown;
type EventFact = Extract<RecordedFact, { type: 'event' }>;

export class RecordLog {
  readonly #limits: RecordLimits;
  readonly #now: () => number;
  readonly #lasting: Recorded[] = [];
  readonly #moves: Moves;
  readonly #whole: WholeEvents;
  readonly #rest: Recorded[] = [];
  #next = 0;
  /** The time of the last event or entry. The records that it causes have the same time. */
  #at = 0;
  #droppedRest = 0;
  readonly #listeners = new Set<() => void>();

  constructor(now: () => number, limits: RecordLimits = LIMITS) {
    this.#now = now;
    this.#limits = limits;
    this.#moves = new Moves(limits.moves);
    this.#whole = new WholeEvents(limits.events);
  }

  /** The number of the next record. */
  get next(): number {
    return this.#next;
  }

  get dropped(): number {
    return this.#droppedRest + this.#moves.dropped;
  }

  /** The fact becomes the record, so the caller must not use it again. */
  add(fact: NewRecord): void {
    // An actor comes after an event or with its conversation, so it takes their time. Reading the clock would cost as
    // much as the record.
    if (fact.type !== 'actor') this.#at = this.#now();
    if (fact.type === 'event') return this.#addMove(EVENT, fact.actor, fact.event, fact.from, undefined);
    if (fact.type === 'settled') return this.#addMove(SETTLED, fact.actor, fact.event, fact.status, fact.value);
    if (fact.type === 'transition') return this.#addMove(fact.step, fact.actor, fact.event, fact.taken, fact.value);
    const record = fact as Recorded;
    record.n = this.#next;
    record.at = this.#at;
    this.#next += 1;
    if (isLasting(fact)) this.#lasting.push(record);
    else this.#addRecord(record);
    this.#notifyListeners();
  }

  entry(conversation: string, entry: LogEntry): void {
    this.#at = this.#now();
    this.#addRecord({ n: this.#next, at: this.#at, type: 'entry', conversation, entry });
    this.#next += 1;
    this.#notifyListeners();
  }

  /** Records an event of this process. It is copied, without secrets, only when it is requested. */
  event(actor: string, from: string | undefined, event: { type: string }, redact: Redact): void {
    this.#at = this.#now();
    this.#whole.add(this.#next, this.#at, event, redact);
    this.#addMove(EVENT, actor, event.type, from, undefined);
  }

  transition(actor: string, step: number, event: string, taken: Taken, value: StateValue): void {
    this.#addMove(step, actor, event, taken, value);
  }

  settled(actor: string, event: string, value: StateValue, status: ActorStatus): void {
    this.#addMove(SETTLED, actor, event, status, value);
  }

  /**
   * Yields the records numbered `from` and later, in order. Moves that are not wanted are skipped before they are
   * made.
   */
  *since(from: number, wantsMove: (n: number) => boolean = () => true): Generator<Recorded> {
    const [lasting, moves, rest] = [this.#lasting, this.#moves, this.#rest];
    let place = placeOf(lasting.length, numberIn(lasting), from);
    let move = placeOf(moves.length, (index) => moves.numberAt(index), from);
    let other = placeOf(rest.length, numberIn(rest), from);
    for (;;) {
      const n = moves.numberAt(move);
      const first = lasting[place];
      const next = rest[other];
      if (next && next.n < n && next.n < (first?.n ?? Number.POSITIVE_INFINITY)) {
        other += 1;
        yield next;
      } else if (first && first.n < n) {
        place += 1;
        yield first;
      } else if (move >= moves.length) return;
      else if (wantsMove(n)) yield moves.at(move++);
      else move += 1;
    }
  }

  /** Returns how many records are numbered `from` or later. */
  countSince(from: number): number {
    const [lasting, moves, rest] = [this.#lasting, this.#moves, this.#rest];
    const places = [lasting, rest].map((list) => list.length - placeOf(list.length, numberIn(list), from));
    const move = moves.length - placeOf(moves.length, (index) => moves.numberAt(index), from);
    return places.reduce((sum, count) => sum + count, move);
  }

  /** Returns the whole event of a record, without secrets and within limits, or null if it is no longer kept. */
  eventOf(n: number): Json {
    const { length } = this.#moves;
    const place = placeOf(length, (index) => this.#moves.numberAt(index), n);
    const move = this.#moves.numberAt(place) === n ? this.#moves.at(place) : undefined;
    if (move?.type !== 'event') return null;
    return move.isPart ? this.#whole.at(n) : excerpt(move.event);
  }

  /** The listener is called after each added record. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #addMove(kind: number, actor: string, event: unknown, third: unknown, fourth: unknown): void {
    this.#moves.add(this.#next, this.#at, kind, actor, event, third, fourth);
    this.#next += 1;
    this.#notifyListeners();
  }

  #notifyListeners(): void {
    if (this.#listeners.size > 0) for (const listener of this.#listeners) listener();
  }

  /** Exceeds the limit by a small amount, so that records are dropped rarely. */
  #addRecord(record: Recorded): void {
    const { rest } = this.#limits;
    this.#rest.push(record);
    if (this.#rest.length <= rest * 1.25) return;
    const dropped = this.#rest.splice(0, this.#rest.length - rest);
    this.#droppedRest += dropped.length + this.#dropClosed(dropped);
  }

  /** Drops conversations whose end was dropped. Returns how many records that were. */
  #dropClosed(dropped: readonly Recorded[]): number {
    const ends = new Map(dropped.flatMap((one) => (one.type === 'closed' ? [[one.conversation, one.n]] : [])));
    if (ends.size === 0) return 0;
    const { length } = this.#lasting;
    // One that was observed again has a later record.
    const kept = this.#lasting.filter(
      (one) => one.type !== 'conversation' || one.n > (ends.get(one.conversation) ?? -1),
    );
    this.#lasting.splice(0, length, ...kept);
    return length - kept.length;
  }
}

/** The kind of a move: an event, a settled state, or else the number of a microstep. */
const EVENT = -1;
const SETTLED = -2;
/** The number of fields of a move besides its kind: actor, event, and two that depend on the kind. */
const WIDTH = 4;

/** The latest moves as rows of a few fields. The newest replaces the oldest. */
class Moves {
  readonly #limit: number;
  readonly #fields: unknown[] = [];
  readonly #kinds: Int32Array;
  readonly #numbers: Float64Array;
  readonly #times: Float64Array;
  #added = 0;
  /** The place of the next move. */
  #place = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#kinds = new Int32Array(limit);
    this.#numbers = new Float64Array(limit);
    this.#times = new Float64Array(limit);
  }

  get length(): number {
    return Math.min(this.#added, this.#limit);
  }

  get dropped(): number {
    return this.#added - this.length;
  }

  add(n: number, at: number, kind: number, actor: string, event: unknown, third: unknown, fourth: unknown): void {
    const place = this.#place;
    const start = place * WIDTH;
    const fields = this.#fields;
    this.#kinds[place] = kind;
    this.#numbers[place] = n;
    this.#times[place] = at;
    fields[start] = actor;
    fields[start + 1] = event;
    fields[start + 2] = third;
    fields[start + 3] = fourth;
    this.#added += 1;
    this.#place = place + 1 === this.#limit ? 0 : place + 1;
  }

  /** Returns infinity after the last move. */
  numberAt(index: number): number {
    return index < this.length ? (this.#numbers[this.#placeOf(index)] as number) : Number.POSITIVE_INFINITY;
  }

  at(index: number): Recorded {
    const place = this.#placeOf(index);
    const start = place * WIDTH;
    const [n, at] = [this.#numbers[place] as number, this.#times[place] as number];
    const kind = this.#kinds[place] as number;
    const [actor, event, third, fourth] = this.#fields.slice(start, start + WIDTH) as [string, ...unknown[]];
    if (kind === EVENT) {
      const from = third === undefined ? {} : { from: third as string };
      // An event of another process is a copy already.
      if (typeof event !== 'string')
        return { n, at, type: 'event', actor, ...from, event: event as EventFact['event'] };
      return { n, at, type: 'event', actor, ...from, event: { type: event }, isPart: true };
    }
    const move = { n, at, actor, event: event as string, value: fourth as StateValue };
    if (kind === SETTLED) return { ...move, type: 'settled', status: third as ActorStatus };
    return { ...move, type: 'transition', step: kind, taken: listOf(third as Taken) };
  }

  #placeOf(index: number): number {
    return (this.dropped + index) % this.#limit;
  }
}

const lists = new WeakMap<Transition, readonly TakenTransition[]>();
const NOTHING: readonly TakenTransition[] = [];

/** Returns the one list that all records of a transition share. */
function listOf(taken: Taken): readonly TakenTransition[] {
  if (!taken) return NOTHING;
  if (!('source' in taken)) return taken;
  let list = lists.get(taken);
  if (!list) {
    const { source, eventType, index, target, guardName } = taken;
    const place = { source: source.id, event: eventType, index, targets: target ? [target.id] : [] };
    list = [{ ...place, ...(guardName !== undefined && { guard: guardName }) }];
    lists.set(taken, list);
  }
  return list;
}

/** The most whole events in a tenth of a second. This is more than a step with many calls makes. */
const EVENTS_AT_ONCE = 100;
const AT_ONCE_MS = 100;

/**
 * The latest events of this process, as they were sent. If many come at once, only the first are kept, because their
 * contents need the most memory.
 */
class WholeEvents {
  readonly #limit: number;
  #since = Number.NEGATIVE_INFINITY;
  #kept = 0;
  readonly #numbers: number[] = [];
  readonly #events: object[] = [];
  readonly #redacts: Redact[] = [];
  /** The place of the next event. */
  #place = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(n: number, at: number, event: object, redact: Redact): void {
    // The clock may be set back.
    if (at - this.#since >= AT_ONCE_MS || at < this.#since) {
      this.#since = at;
      this.#kept = 0;
    }
    this.#kept += 1;
    if (this.#kept > EVENTS_AT_ONCE) return;
    const place = this.#place;
    this.#numbers[place] = n;
    this.#events[place] = event;
    this.#redacts[place] = redact;
    this.#place = place + 1 === this.#limit ? 0 : place + 1;
  }

  /** Returns the event without secrets and within limits, or null if later ones have replaced it. */
  at(n: number): Json {
    const place = this.#numbers.indexOf(n);
    const redact = this.#redacts[place];
    return redact ? excerpt(redact(this.#events[place] as object)) : null;
  }
}

/** JSON texts of values that many records share: transitions and state values. */
const texts = new WeakMap<object, string>();

function textOf(shared: StateValue | readonly TakenTransition[]): string {
  if (typeof shared === 'string') return JSON.stringify(shared);
  let text = texts.get(shared);
  if (text === undefined) {
    text = JSON.stringify(shared);
    texts.set(shared, text);
  }
  return text;
}

/** The last time as text, because records of one step have the same time. */
const timeText = { at: 0, text: '0' };

function textOfTime(at: number): string {
  if (at !== timeText.at) Object.assign(timeText, { at, text: `${at}` });
  return timeText.text;
}

/** Takes the place of a chart that is too large, because a page needs a chart of this shape. */
function undrawn({ name, root: { id, key } }: Chart): Chart {
  const description = 'This chart is too large to be drawn.';
  return { name, root: { id, key, type: 'atomic', states: [], transitions: [], description } };
}

/** Returns a record as JSON that fits a frame. */
export function recordText(record: Recorded): string {
  if (record.type === 'transition') {
    const { n, at, actor, step, event, taken, value } = record;
    const head = `{"n":${n},"at":${textOfTime(at)},"type":"transition","actor":"${actor}","step":${step}`;
    return `${head},"event":${JSON.stringify(event)},"taken":${textOf(taken)},"value":${textOf(value)}}`;
  }
  const whole = JSON.stringify(record);
  if (whole.length >= FRAME_MAX / 2) {
    if (record.type === 'chart') return JSON.stringify({ ...record, drawn: undrawn(record.drawn) });
    const isEntry = record.type === 'entry';
    return JSON.stringify(isEntry ? { ...record, entry: excerpt(record.entry, ENTRY), cut: true } : excerpt(record));
  }
  if (record.type !== 'entry') return whole;
  const entry = pageJson(record.entry, whole);
  return entry === record.entry ? whole : JSON.stringify({ ...record, entry });
}
