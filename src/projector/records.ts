/**
 * The records that the projection has built so far, the message queue and the diagnostics. Invariant: only the last
 * cycle grows. Each list covers the whole conversation, and a record ends where the next one begins. Messages leave
 * the queue first in, first out. Diagnostics keep their order; after the first thousand only one counter follows.
 *
 * Codes: `unknown` (no such entry), `reserved` (a name that XState reserves), `unreadable` (reading it threw),
 * `malformed` (a known type with a wrong field), `bad_seq`, `gap`, `conversation_missing` (an entry without a
 * conversation id among others with one), `orphan` (output, result or suspension that belongs to nothing),
 * `stop_while_idle`, `kind-overridden`, `message_repeated`, `message_missing`, `call_repeated`, `result_repeated`,
 * `result_missing`, `settled_already`, `not_last` (only the last cycle reopens), `diagnostics_dropped`.
 * Diagnostics that the log contains keep their own codes.
 */
import type { Diagnostic, GroupName, Json, QueuedMessage, StopReason, Usage } from '../../machines/vocabulary.ts';
import { freezeList, List, Lookup } from './collections.ts';
import type {
  BlockText,
  InferenceRound,
  RequestCycle,
  ResolutionStep,
  RoundMessage,
  ToolCallView,
  ToolGroup,
} from './view.ts';

export interface Viewed<V> {
  /** Undefined until the view is read. `mark` is the sum of the ends that the view was made for; ends never shrink. */
  made: { readonly view: V; readonly mark: number } | undefined;
}

export interface GroupRecord extends Viewed<ToolGroup> {
  readonly kind: GroupName;
  readonly calls: number;
}

export interface StepRecord extends Viewed<ResolutionStep> {
  /** A user message, or the text of a block. A block without text has null. */
  readonly source: RoundMessage | BlockText | null;
  readonly groups: number;
}

export interface RoundRecord extends Viewed<InferenceRound> {
  readonly texts: number;
  readonly calls: number;
  /** The end of its input, which begins where the input of the round before ends. */
  readonly messages: number;
  readonly results: number;
  readonly usage: Usage | undefined;
}

export interface WaitingCall {
  readonly callId: string;
  /** Its position in `calls`, or -1 if the call is unknown. */
  readonly call: number;
}

export interface CycleRecord extends Viewed<RequestCycle> {
  readonly id: string;
  readonly root: RequestCycle['root'];
  readonly steps: number;
  readonly groups: number;
  readonly calls: number;
  readonly rounds: number;
  readonly texts: number;
  readonly messages: number;
  readonly results: number;
  readonly stop: null | { reason: StopReason; cause?: string };
  readonly waiting: readonly WaitingCall[];
  /** The seq of its root, if the entry has one. */
  readonly seq: number | undefined;
  readonly superseded: boolean;
}

/** Views of all cycles but the last. Most of a list of all cycles is copied from here. */
export interface Settled {
  views: RequestCycle[];
  count: number;
  /** True if `views` may grow in place. Otherwise its first `count` views are copied first. */
  own: boolean;
}

export interface Records {
  /** The owner number that may change the lists in place. */
  owner: number;
  /** True after a snapshot or a branch. Until then no view can be outdated. */
  shown: boolean;
  cycles: List<CycleRecord>;
  steps: List<StepRecord>;
  groups: List<GroupRecord>;
  calls: List<ToolCallView>;
  rounds: List<RoundRecord>;
  texts: List<BlockText>;
  messages: List<RoundMessage>;
  /** Calls in the order of their results. */
  results: List<number>;
  /** True while the last round accepts output. */
  replying: boolean;
  settled: Settled;
}

export const emptyRecords = (owner: number): Records => ({
  owner,
  shown: false,
  cycles: new List(owner),
  steps: new List(owner),
  groups: new List(owner),
  calls: new List(owner),
  rounds: new List(owner),
  texts: new List(owner),
  messages: new List(owner),
  results: new List(owner),
  replying: false,
  settled: { views: [], count: 0, own: true },
});

/** Returns independent records. Records that may still grow, and the views cached in them, are not shared. */
export function branchRecords(records: Records, owner: number): Records {
  const { cycles, steps, groups, rounds, settled } = records;
  return {
    ...records,
    owner,
    shown: true,
    cycles: outdated(cycles, owner, cycles.size - 1),
    steps: outdated(steps, owner, steps.size - 1),
    groups: outdated(groups, owner, groups.size - 1),
    rounds: outdated(rounds, owner, rounds.size - 1),
    settled: { ...settled, own: false },
  };
}

/** Drops the cached views that show this call. Snapshots keep their records, because they may be read later. */
export function outdateCall(records: Records, call: number): void {
  if (!records.shown) return;
  const { cycles, steps, groups, rounds, owner, settled } = records;
  const group = holder(groups, call, callsOf);
  const cycle = holder(cycles, call, callsOf);
  records.groups = outdated(groups, owner, group);
  records.steps = outdated(steps, owner, holder(steps, group, groupsOf));
  records.rounds = outdated(rounds, owner, holder(rounds, call, callsOf));
  records.cycles = outdated(cycles, owner, cycle);
  // This applies to unread cycles too: an older snapshot must not get a view that a newer one caches there.
  if (cycle < cycles.size - 1) records.settled = { ...settled, count: Math.min(settled.count, cycle), own: false };
}

/** Marks the cycles whose roots come after this entry. */
export function supersedeCycles(records: Records, toSeq: number): void {
  const { owner, settled } = records;
  let first = records.cycles.size;
  for (let index = first - 1; index >= 0; index--) {
    const cycle = records.cycles.at(index);
    if (cycle.seq === undefined || cycle.seq <= toSeq) break;
    first = index;
    if (cycle.superseded) continue;
    records.cycles = records.cycles.replace(owner, index, { ...cycle, superseded: true, made: undefined });
  }
  records.replying = false;
  records.settled = { ...settled, count: Math.min(settled.count, first), own: false };
}

export function outdateRound(records: Records, round: number): void {
  if (records.shown) records.rounds = outdated(records.rounds, records.owner, round);
}

/** For changes of the last cycle that make none of its lists longer. */
export function outdateLastCycle(records: Records): void {
  if (records.shown) records.cycles = outdated(records.cycles, records.owner, records.cycles.size - 1);
}

/** Returns the view that was made for these ends. */
export const kept = <V>({ made }: Viewed<V>, mark: number): V | undefined =>
  made !== undefined && made.mark === mark ? made.view : undefined;

/** Caches a view. A late read of an old snapshot does not replace a newer view. */
export function keep<V>(record: Viewed<V>, mark: number, view: V): V {
  if (record.made === undefined || mark > record.made.mark) record.made = { view, mark };
  return view;
}

function outdated<R extends Viewed<unknown>>(list: List<R>, owner: number, index: number): List<R> {
  if (index < 0 || index >= list.size) return list;
  return list.replace(owner, index, { ...list.at(index), made: undefined });
}

const callsOf = (record: { calls: number }): number => record.calls;
const groupsOf = (record: StepRecord): number => record.groups;

/** Returns the last record that begins at or before `position`. The search starts at the end, where most changes are. */
function holder<R>(list: List<R>, position: number, begin: (record: R) => number): number {
  let high = list.size - 1;
  let low = high;
  for (let stride = 1; low > 0 && begin(list.at(low)) > position; stride *= 2) {
    high = low - 1;
    low = Math.max(0, low - stride);
  }
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (begin(list.at(middle)) > position) high = middle - 1;
    else low = middle;
  }
  return low;
}

const NOTES_MAX = 1000;

export interface Notes {
  list: List<Diagnostic>;
  dropped: number;
  /** The last view, until a diagnostic is added. */
  view: readonly Diagnostic[] | undefined;
}

export const noNotes = (owner: number): Notes => ({ list: new List(owner), dropped: 0, view: undefined });

export function note(notes: Notes, owner: number, code: string, seq: number | undefined, detail?: Json): void {
  notes.view = undefined;
  if (notes.list.size >= NOTES_MAX) {
    notes.dropped++;
    return;
  }
  const diagnostic: Diagnostic = { code };
  if (seq !== undefined) diagnostic.seq = seq;
  // Details are flat, or are already frozen copies.
  if (detail !== undefined) diagnostic.detail = typeof detail === 'object' ? frozen(detail) : detail;
  notes.list = notes.list.push(owner, Object.freeze(diagnostic));
}

function frozen(detail: Json): Json {
  Object.freeze(detail);
  return detail;
}

export function notesView(notes: Notes): readonly Diagnostic[] {
  if (notes.view !== undefined) return notes.view;
  const { list, dropped } = notes;
  const views = list.slice(0, list.size);
  if (dropped > 0) views.push(Object.freeze({ code: 'diagnostics_dropped', detail: frozen({ count: dropped }) }));
  notes.view = freezeList(views);
  return notes.view;
}

interface Place {
  readonly message: QueuedMessage;
  readonly promotable: boolean;
}

/** Taken places stay empty until the queue is packed. */
export interface Queue {
  places: List<Place | undefined>;
  /** All places before this one are taken. */
  head: number;
  /** No place before this one is promotable. */
  promotableFrom: number;
  size: number;
  /** The last view, until the queue changes. */
  view: readonly QueuedMessage[] | undefined;
  /** Message id to place. An entry is outdated if another message is in that place. */
  index: Lookup<string>;
}

const SLACK = 64;

export const emptyQueue = (owner: number): Queue => ({
  places: new List(owner),
  head: 0,
  promotableFrom: 0,
  size: 0,
  view: undefined,
  index: new Lookup(),
});

/** Returns an independent queue. */
export const branchQueue = (queue: Queue): Queue => ({ ...queue, index: new Lookup(queue.index) });

/** Appends a message, and replaces one with the same id. Returns true if there was one. */
export function enqueue(queue: Queue, owner: number, message: QueuedMessage, promotable: boolean): boolean {
  const repeated = dequeue(queue, owner, message.messageId);
  queue.index.set(message.messageId, queue.places.size);
  queue.places = queue.places.push(owner, { message, promotable });
  queue.size++;
  queue.view = undefined;
  return repeated;
}

/** Removes the message with this id. Returns true if it was there. */
export function dequeue(queue: Queue, owner: number, messageId: string): boolean {
  if (queue.size === 0) return false;
  const at = queue.index.get(messageId);
  if (at === undefined || at >= queue.places.size || queue.places.at(at)?.message.messageId !== messageId) return false;
  empty(queue, owner, at);
  return true;
}

/** Removes the first promotable message. */
export function promote(queue: Queue, owner: number): QueuedMessage | undefined {
  for (let at = Math.max(queue.promotableFrom, queue.head); at < queue.places.size; at++) {
    queue.promotableFrom = at + 1;
    const place = queue.places.at(at);
    if (place?.promotable) {
      empty(queue, owner, at);
      return place.message;
    }
  }
  return undefined;
}

export function queueView(queue: Queue): readonly QueuedMessage[] {
  if (queue.view !== undefined) return queue.view;
  const views: QueuedMessage[] = [];
  for (let at = queue.head; at < queue.places.size; at++) {
    const place = queue.places.at(at);
    if (place !== undefined) views.push(place.message);
  }
  queue.view = freezeList(views);
  return queue.view;
}

function empty(queue: Queue, owner: number, at: number): void {
  queue.places = queue.places.replace(owner, at, undefined);
  queue.size--;
  queue.view = undefined;
  while (queue.head < queue.places.size && queue.places.at(queue.head) === undefined) queue.head++;
  if (queue.places.size > 2 * queue.size + SLACK) pack(queue, owner);
}

function pack(queue: Queue, owner: number): void {
  const { places, head, promotableFrom } = queue;
  let packed = new List<Place | undefined>(owner);
  queue.promotableFrom = 0;
  for (let at = head; at < places.size; at++) {
    const place = places.at(at);
    if (place === undefined) continue;
    queue.index.set(place.message.messageId, packed.size);
    packed = packed.push(owner, place);
    if (at < promotableFrom) queue.promotableFrom = packed.size;
  }
  queue.places = packed;
  queue.head = 0;
}
