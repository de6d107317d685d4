/**
 * The records that the folds have built so far. Rule: only the last cycle grows, so every list is one for the whole
 * conversation; a record says where its part begins, and the next record's beginning is its end. Records are immutable,
 * but for the view made of them last.
 */
import type { GroupName, StopReason, Usage } from '../../machines/vocabulary.ts';
import { List } from './collections.ts';
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
  /** Undefined until it is read. `mark` stands for the ends it was made for; they only ever grow. */
  made: { readonly view: V; readonly mark: number } | undefined;
}

export interface GroupRecord extends Viewed<ToolGroup> {
  readonly kind: GroupName;
  readonly calls: number;
}

export interface StepRecord extends Viewed<ResolutionStep> {
  /** A user's message, or the text of a block, which may have none. */
  readonly of: RoundMessage | BlockText | null;
  readonly groups: number;
}

export interface RoundRecord extends Viewed<InferenceRound> {
  readonly texts: number;
  readonly calls: number;
  /** Its input ends here; it begins where the input of the round before ended. */
  readonly messages: number;
  readonly results: number;
  readonly usage: Usage | undefined;
}

export interface WaitingCall {
  readonly callId: string;
  /** Its place in `calls`, -1 where the call is not known. */
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
}

/** Views of the cycles before the last one, so that a list of all cycles is mostly copied. */
export interface Settled {
  views: RequestCycle[];
  count: number;
  /** May `views` grow in place? Else its first `count` are copied before. */
  own: boolean;
}

export interface Records {
  /** The number that changes the lists in place. */
  owner: number;
  /** Was a snapshot or a branch taken? Until then no view can be out of date. */
  shown: boolean;
  cycles: List<CycleRecord>;
  steps: List<StepRecord>;
  groups: List<GroupRecord>;
  calls: List<ToolCallView>;
  rounds: List<RoundRecord>;
  texts: List<BlockText>;
  messages: List<RoundMessage>;
  /** Calls in the order in which their results came. */
  results: List<number>;
  /** Does the last round still take output? */
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

/** A ledger that grows on its own from here. What may still grow is not shared, nor are the views kept in it. */
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

/** Forgets the views that show this call. Snapshots keep their records, since somebody may read them only later. */
export function outdateCall(records: Records, call: number): void {
  if (!records.shown) return;
  const { cycles, steps, groups, rounds, owner, settled } = records;
  const group = holder(groups, call, callsOf);
  const cycle = holder(cycles, call, callsOf);
  records.groups = outdated(groups, owner, group);
  records.steps = outdated(steps, owner, holder(steps, group, groupsOf));
  records.rounds = outdated(rounds, owner, holder(rounds, call, callsOf));
  records.cycles = outdated(cycles, owner, cycle);
  // Also where nobody read it yet: an older snapshot must not find what a newer one puts there.
  if (cycle < cycles.size - 1) records.settled = { ...settled, count: Math.min(settled.count, cycle), own: false };
}

export function outdateRound(records: Records, round: number): void {
  if (records.shown) records.rounds = outdated(records.rounds, records.owner, round);
}

/** For what changes the last cycle without making one of its lists longer. */
export function outdateLastCycle(records: Records): void {
  if (records.shown) records.cycles = outdated(records.cycles, records.owner, records.cycles.size - 1);
}

/** The view made for these ends. */
export const kept = <V>({ made }: Viewed<V>, mark: number): V | undefined =>
  made !== undefined && made.mark === mark ? made.view : undefined;

/** Keeps a view. Who reads an old snapshot late does not displace a newer one. */
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

/** The last record that begins at `position` or before: searched from the end, where most changes are. */
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
