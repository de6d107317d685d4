/**
 * What an inspector was told, numbered in order and kept within bounds, for those who watch now and those who come late.
 * Rule: keeping one makes no text, no copy and, for what comes most, no object: a record is made of it when somebody reads.
 * Of what is kept, events and transitions go first, since the log and the living actors tell where a run stands without them.
 */
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import type { Transition } from '../runtime/interpreter/plan.ts';
import { ENTRY, excerpt } from './excerpt.ts';
import {
  type ActorStatus,
  FRAME_MAX,
  type Recorded,
  type RecordedFact,
  type StateValue,
  type TakenTransition,
} from './wire.ts';

export interface RecordLimits {
  /** Events, transitions and what was settled. */
  moves: number;
  /** Events of this process that can still be asked for whole: they hold what a run is through with, and so cost the most to keep. */
  events: number;
  /** All others: charts, conversations, actors, entries. */
  rest: number;
}

const LIMITS: RecordLimits = { moves: 20_000, events: 500, rest: 100_000 };
/** Without its chart no actor can be drawn: these are never dropped. */
const isLasting = ({ type }: RecordedFact): boolean => type === 'chart' || type === 'conversation';

/** Place of the first of `count` that is numbered `from` or later. */
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

/** A fact that is recorded often has room for its number and time from its beginning: to make room later costs more. */
export type NewRecord = RecordedFact & { n?: 0; at?: 0 };

/** What a microstep took: a list, or the transition of a plan, of which a list is made for those who read. */
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
  /** When the last event or entry came: what follows of it has its time. */
  #at = 0;
  #droppedRest = 0;
  readonly #listeners = new Set<() => void>();

  constructor(now: () => number, limits: RecordLimits = LIMITS) {
    this.#now = now;
    this.#limits = limits;
    this.#moves = new Moves(limits.moves);
    this.#whole = new WholeEvents(limits.events);
  }

  /** Number of the next record. */
  get next(): number {
    return this.#next;
  }

  get dropped(): number {
    return this.#droppedRest + this.#moves.dropped;
  }

  /** The fact becomes the record: what is handed over is nobody else's any more. */
  add(fact: NewRecord): void {
    // An actor comes behind an event or with its conversation: a clock asked for each costs as much as the record.
    if (fact.type !== 'actor') this.#at = this.#now();
    if (fact.type === 'event') return this.#move(EVENT, fact.actor, fact.event, fact.from, undefined);
    if (fact.type === 'settled') return this.#move(SETTLED, fact.actor, fact.event, fact.status, fact.value);
    if (fact.type === 'transition') return this.#move(fact.step, fact.actor, fact.event, fact.taken, fact.value);
    const record = fact as Recorded;
    record.n = this.#next;
    record.at = this.#at;
    this.#next += 1;
    if (isLasting(fact)) this.#lasting.push(record);
    else this.#keep(record);
    this.#tell();
  }

  entry(conversation: string, entry: LogEntry): void {
    this.#at = this.#now();
    this.#keep({ n: this.#next, at: this.#at, type: 'entry', conversation, entry });
    this.#next += 1;
    this.#tell();
  }

  /** An event that was sent in this process; it is copied, without secrets, when somebody asks for it. */
  event(actor: string, from: string | undefined, event: { type: string }, redact: Redact): void {
    this.#at = this.#now();
    this.#whole.add(this.#next, this.#at, event, redact);
    this.#move(EVENT, actor, event.type, from, undefined);
  }

  transition(actor: string, step: number, event: string, taken: Taken, value: StateValue): void {
    this.#move(step, actor, event, taken, value);
  }

  settled(actor: string, event: string, value: StateValue, status: ActorStatus): void {
    this.#move(SETTLED, actor, event, status, value);
  }

  /** Those numbered `from` and later, in order; made one at a time. Moves that are not wanted are left out, and not made. */
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

  /** How many there are numbered `from` and later. */
  countSince(from: number): number {
    const [lasting, moves, rest] = [this.#lasting, this.#moves, this.#rest];
    const places = [lasting, rest].map((list) => list.length - placeOf(list.length, numberIn(list), from));
    const move = moves.length - placeOf(moves.length, (index) => moves.numberAt(index), from);
    return places.reduce((sum, count) => sum + count, move);
  }

  /** The whole event of a record, without secrets and cut to bounds; null where it is kept no more. */
  eventOf(n: number): Json {
    const { length } = this.#moves;
    const place = placeOf(length, (index) => this.#moves.numberAt(index), n);
    const move = this.#moves.numberAt(place) === n ? this.#moves.at(place) : undefined;
    if (move?.type !== 'event') return null;
    return move.isPart ? this.#whole.at(n) : excerpt(move.event);
  }

  /** Called behind each that is added. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #move(kind: number, actor: string, event: unknown, third: unknown, fourth: unknown): void {
    this.#moves.add(this.#next, this.#at, kind, actor, event, third, fourth);
    this.#next += 1;
    this.#tell();
  }

  #tell(): void {
    if (this.#listeners.size > 0) for (const listener of this.#listeners) listener();
  }

  /** Some more than the limit, so that dropping is rare. */
  #keep(record: Recorded): void {
    const { rest } = this.#limits;
    this.#rest.push(record);
    if (this.#rest.length <= rest * 1.25) return;
    const gone = this.#rest.length - rest;
    this.#rest.splice(0, gone);
    this.#droppedRest += gone;
  }
}

/** What a move is: an event, what was settled, or else the number of a microstep. */
const EVENT = -1;
const SETTLED = -2;
/** Fields of a move beside its kind: actor, event, and two that its kind names. */
const WIDTH = 4;

/** The latest moves as they were told, each a few fields in a row: the oldest makes room for the newest. */
class Moves {
  readonly #limit: number;
  readonly #fields: unknown[] = [];
  readonly #kinds: Int32Array;
  readonly #numbers: Float64Array;
  readonly #times: Float64Array;
  #added = 0;
  /** Of the next one. */
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

  /** Behind the last: beyond every number. */
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
      // What came from another process is a copy already.
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

/** The one list that every record of a transition shows. */
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

/** Whole events in each tenth of a second: more than a step of many calls has, and more than anybody could look at. */
const EVENTS_AT_ONCE = 100;
const AT_ONCE_MS = 100;

/** The latest events of this process, as they were sent; of a flood the first, since what they hold costs the most to keep. */
class WholeEvents {
  readonly #limit: number;
  #since = Number.NEGATIVE_INFINITY;
  #kept = 0;
  readonly #numbers: number[] = [];
  readonly #events: object[] = [];
  readonly #redacts: Redact[] = [];
  /** Of the next one. */
  #place = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(n: number, at: number, event: object, redact: Redact): void {
    // A clock may be set back.
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

  /** Without secrets and cut to bounds; null where later ones have taken its place. */
  at(n: number): Json {
    const place = this.#numbers.indexOf(n);
    const redact = this.#redacts[place];
    return redact ? excerpt(redact(this.#events[place] as object)) : null;
  }
}

/** Texts of what many records share: transitions of a chart, and its states. */
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

/** The time of a record as text: those of one step have the same. */
const timeText = { at: 0, text: '0' };

function textOfTime(at: number): string {
  if (at !== timeText.at) Object.assign(timeText, { at, text: `${at}` });
  return timeText.text;
}

/** A record as JSON, within a frame. */
export function recordText(record: Recorded): string {
  if (record.type === 'transition') {
    const { n, at, actor, step, event, taken, value } = record;
    const head = `{"n":${n},"at":${textOfTime(at)},"type":"transition","actor":"${actor}","step":${step}`;
    return `${head},"event":${JSON.stringify(event)},"taken":${textOf(taken)},"value":${textOf(value)}}`;
  }
  const whole = JSON.stringify(record);
  if (whole.length < FRAME_MAX / 2) return whole;
  const cut = record.type === 'entry' ? { ...record, entry: excerpt(record.entry, ENTRY), cut: true } : excerpt(record);
  return JSON.stringify(cut);
}
