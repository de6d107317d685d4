/**
 * Request cycles and their two views, resolution steps and inference rounds (docs/internals/model.md, RequestCycle and
 * Two Views). Invariant: a cycle has one root that is not a steer, and ends with its stop. Only the last cycle can
 * continue after its stop. Each text item is a block. A call joins the open block; adjacent calls of one kind form a
 * group: by the host's function, else the tool's group, else the table. A round is one reply of the model, opened by
 * its first output. Its input is everything since the round before; each result belongs to the first round after it.
 */

import type { GroupName, Usage } from '../../machines/vocabulary.ts';
import { freezeList, type Lookup } from './collections.ts';
import { groupOfName, isGroupName } from './readEntry.ts';
import { type CycleRecord, keep, kept, outdateLastCycle, type Records, type StepRecord } from './records.ts';
import type {
  BlockText,
  InferenceRound,
  RequestCycle,
  ResolutionStep,
  RoundMessage,
  ToolCallView,
  ToolGroup,
} from './view.ts';

/** The open cycle changes with every entry, so longer lists are built only when they are read. */
const EAGER_MAX = 64;

const NONE: CycleRecord['waiting'] = Object.freeze([]);

/** `seq`: of the entry of its root. */
export function openCycle(records: Records, id: string, root: RequestCycle['root'], seq: number | undefined): void {
  const { cycles, steps, groups, calls, rounds, texts, messages, results, owner } = records;
  records.cycles = cycles.push(owner, {
    id,
    root,
    steps: steps.size,
    groups: groups.size,
    calls: calls.size,
    rounds: rounds.size,
    texts: texts.size,
    messages: messages.size,
    results: results.size,
    stop: null,
    waiting: NONE,
    seq,
    superseded: false,
    made: undefined,
  });
  addMessage(records, root);
}

/** Adds the message of a root or a steer: it is a step, and an input of the next round. */
export function addMessage(records: Records, message: RoundMessage): void {
  records.replying = false;
  records.messages = records.messages.push(records.owner, message);
  addStep(records, message);
}

export const closeCycle = (records: Records, stop: CycleRecord['stop']): void => changeCycle(records, stop, NONE);

/** Reopens the last cycle, or keeps it open, waiting for these calls. */
export const keepOpen = (records: Records, waiting = NONE): void => changeCycle(records, null, waiting);

function changeCycle(records: Records, stop: CycleRecord['stop'], waiting: CycleRecord['waiting']): void {
  const { cycles, owner } = records;
  const last = cycles.size - 1;
  records.replying = false;
  records.cycles = cycles.replace(owner, last, { ...cycles.at(last), stop, waiting, made: undefined });
}

/** Returns the message id if no cycle has it, else an id made of it and the cycle's position. */
export function freshId(ids: Lookup<string>, messageId: string, place: number): string {
  if (ids.set(messageId, place)) return messageId;
  let id = `${messageId}~${place}`;
  while (!ids.set(id, place)) id += '~';
  return id;
}

/** Returns all cycles. Cycles before the last one are built once and copied after that. */
export function cycleViews(records: Records): readonly RequestCycle[] {
  const { cycles, settled } = records;
  const last = cycles.size - 1;
  if (last < 0) return freezeList([]);
  if (!settled.own) {
    settled.views = settled.views.slice(0, settled.count);
    settled.own = true;
  }
  for (; settled.count < last; settled.count++) settled.views.push(cycleView(records, settled.count));
  return freezeList(copyWith(settled.views, last, cycleView(records, last)));
}

/** Returns the first `count` elements and one more. One copy is many times faster than a copy and a push. */
function copyWith<T>(list: T[], count: number, one: T): T[] {
  if (list.length > count) return [...list.slice(0, count), one];
  list.push(one);
  const copy = list.slice();
  list.pop();
  return copy;
}

function cycleView(records: Records, index: number): RequestCycle {
  const { cycles, steps, groups, calls, rounds, texts } = records;
  const record = cycles.at(index);
  const next = index + 1 < cycles.size ? cycles.at(index + 1) : undefined;
  const stepsEnd = next === undefined ? steps.size : next.steps;
  const roundsEnd = next === undefined ? rounds.size : next.rounds;
  const rest = next === undefined ? groups.size + calls.size + texts.size : next.groups + next.calls + next.texts;
  // The ends never shrink, so an equal sum means equal ends.
  const mark = stepsEnd + roundsEnd + rest;
  return kept(record, mark) ?? keep(record, mark, makeView(records, record, stepsEnd, roundsEnd));
}

function makeView(records: Records, record: CycleRecord, stepsEnd: number, roundsEnd: number): RequestCycle {
  const { id, root, stop } = record;
  const fate = record.superseded ? { superseded: true as const } : {};
  const waiting = stillWaiting(records, record);
  if (stepsEnd - record.steps <= EAGER_MAX && roundsEnd - record.rounds <= EAGER_MAX) {
    const steps = stepViews(records, record.steps, stepsEnd);
    return Object.freeze({ id, root, steps, rounds: roundViews(records, record, roundsEnd), stop, waiting, ...fate });
  }
  let steps: RequestCycle['steps'] | undefined;
  let rounds: RequestCycle['rounds'] | undefined;
  return Object.freeze({
    id,
    root,
    get steps() {
      steps ??= stepViews(records, record.steps, stepsEnd);
      return steps;
    },
    get rounds() {
      rounds ??= roundViews(records, record, roundsEnd);
      return rounds;
    },
    stop,
    waiting,
    ...fate,
  });
}

/** A suspended call waits until it has a result. */
function stillWaiting(records: Records, { waiting, calls }: CycleRecord): readonly string[] {
  if (waiting.length === 0) return freezeList([]);
  const open = waiting.filter(({ call }) => call < calls || records.calls.at(call).result === null);
  return freezeList(open.map(({ callId }) => callId));
}

/** Adds a step: a user message, or a block that begins with this text or with none. */
export function addStep(records: Records, source: RoundMessage | BlockText | null): void {
  const { steps, owner, groups } = records;
  records.steps = steps.push(owner, { source: source, groups: groups.size, made: undefined });
}

/** Makes the last group accept calls of this kind. The caller adds the call after that. */
export function addCallStep(records: Records, kind: GroupName): void {
  if (!isBlock(records.steps.at(records.steps.size - 1).source)) addStep(records, null);
  const { steps, groups, calls, owner } = records;
  const isFirst = steps.at(steps.size - 1).groups === groups.size;
  if (!isFirst && groups.at(groups.size - 1).kind === kind) return;
  records.groups = groups.push(owner, { kind, calls: calls.size, made: undefined });
}

const isBlock = (source: StepRecord['source']): source is BlockText | null =>
  source === null || source.kind === 'assistant' || source.kind === 'reasoning';

function stepViews(records: Records, from: number, to: number): readonly ResolutionStep[] {
  const views = new Array<ResolutionStep>(to - from);
  for (let i = from; i < to; i++) views[i - from] = stepView(records, i);
  return freezeList(views);
}

function stepView(records: Records, index: number): ResolutionStep {
  const { steps, groups } = records;
  const record = steps.at(index);
  const { source } = record;
  if (!isBlock(source)) return kept(record, 0) ?? keep(record, 0, userStep(source));
  const end = index + 1 < steps.size ? steps.at(index + 1).groups : groups.size;
  // Both ends never shrink, so an equal sum means equal ends.
  const mark = end + (end > record.groups ? endOfCalls(records, end - 1) : 0);
  const existing = kept(record, mark);
  if (existing !== undefined) return existing;
  const views = new Array<ToolGroup>(end - record.groups);
  for (let i = record.groups; i < end; i++) views[i - record.groups] = groupView(records, i);
  return keep(record, mark, Object.freeze({ type: 'ai-block', text: source, groups: freezeList(views) }));
}

const userStep = ({ kind, messageId, content }: RoundMessage): ResolutionStep =>
  Object.freeze({ type: kind === 'steer' ? 'steer' : 'non-steer', messageId, content });

function groupView(records: Records, index: number): ToolGroup {
  const record = records.groups.at(index);
  const end = endOfCalls(records, index);
  const existing = kept(record, end);
  if (existing !== undefined) return existing;
  const calls = freezeList(records.calls.slice(record.calls, end));
  return keep(record, end, Object.freeze({ kind: record.kind, calls }));
}

const endOfCalls = ({ groups, calls }: Records, group: number): number =>
  group + 1 < groups.size ? groups.at(group + 1).calls : calls.size;

/** A round shows a text without its flag. */
export function addRoundText(records: Records, text: BlockText): void {
  const plain = text.flag === undefined ? text : Object.freeze({ kind: text.kind, text: text.text });
  records.texts = records.texts.push(records.owner, plain);
}

/** Opens a round if none is open. */
export function openRound(records: Records): void {
  if (records.replying) return;
  pushRound(records, undefined);
  records.replying = true;
}

/** Records a model reply: as the usage of the last round, or as a round of its own if the reply was empty. */
export function recordReply(records: Records, usage: Usage | undefined): void {
  const { cycles, rounds, owner } = records;
  const last = rounds.size - 1;
  const record = rounds.size > cycles.at(cycles.size - 1).rounds ? rounds.at(last) : undefined;
  if (record !== undefined && record.usage === undefined) {
    records.replying = false;
    if (usage === undefined) return;
    records.rounds = rounds.replace(owner, last, { ...record, usage, made: undefined });
    outdateLastCycle(records);
    return;
  }
  pushRound(records, usage);
  // Some logs contain the reply before its output.
  records.replying = true;
}

function pushRound(records: Records, usage: Usage | undefined): void {
  const { rounds, texts, calls, messages, results, owner } = records;
  records.rounds = rounds.push(owner, {
    texts: texts.size,
    calls: calls.size,
    messages: messages.size,
    results: results.size,
    usage,
    made: undefined,
  });
}

function roundViews(records: Records, cycle: CycleRecord, to: number): readonly InferenceRound[] {
  const from = cycle.rounds;
  const views = new Array<InferenceRound>(to - from);
  for (let i = from; i < to; i++) {
    const before = i === from ? cycle : records.rounds.at(i - 1);
    views[i - from] = roundView(records, i, before.messages, before.results);
  }
  return freezeList(views);
}

function roundView(records: Records, index: number, messages: number, results: number): InferenceRound {
  const record = records.rounds.at(index);
  const after = index + 1 < records.rounds.size ? records.rounds.at(index + 1) : undefined;
  const texts = after === undefined ? records.texts.size : after.texts;
  const calls = after === undefined ? records.calls.size : after.calls;
  // Both ends never shrink, so an equal sum means equal ends.
  const mark = texts + calls;
  const existing = kept(record, mark);
  if (existing !== undefined) return existing;
  const input = Object.freeze({
    messages: freezeList(records.messages.slice(messages, record.messages)),
    results: freezeList(resultsInOrder(records, results, record.results)),
  });
  const output = Object.freeze({
    texts: freezeList(records.texts.slice(record.texts, texts)),
    calls: freezeList(records.calls.slice(record.calls, calls)),
  });
  const { usage } = record;
  return keep(record, mark, Object.freeze(usage === undefined ? { input, output } : { input, output, usage }));
}

function resultsInOrder({ results, calls }: Records, from: number, to: number): ToolCallView[] {
  if (from === to) return [];
  const arrived = results.slice(from, to);
  if (arrived.length > 1) arrived.sort((a, b) => a - b);
  return arrived.map((call) => calls.at(call));
}

export type GroupOf = (toolName: string) => GroupName | undefined;

export function groupName(name: string, own: GroupName | undefined, groupOf: GroupOf | undefined): GroupName {
  return groupFromHost(groupOf, name) ?? own ?? groupOfName(name);
}

function groupFromHost(groupOf: GroupOf | undefined, name: string): GroupName | undefined {
  if (groupOf === undefined) return undefined;
  try {
    const group: unknown = groupOf(name);
    return isGroupName(group) ? group : undefined;
  } catch {
    // A mistake in the host's function must not break the view.
    return undefined;
  }
}
