/**
 * RequestCycles (request-cycle-model, 5). Rule: one root that is no steer, everything up to and with the stop, and
 * nothing of the next root. Only the last cycle can go on behind its stop.
 */
import { roundViews } from './inferenceRound.ts';
import { freezeList } from './json.ts';
import { type CycleRecord, keep, kept, type Ledger } from './ledger.ts';
import type { Lookup } from './lookup.ts';
import { addStep, stepViews } from './resolutionStep.ts';
import type { RequestCycle, RoundMessage } from './view.ts';

/** Longer lists of a cycle are built when they are read: the open cycle changes with every entry. */
const EAGER_MAX = 64;

const NONE: CycleRecord['waiting'] = Object.freeze([]);

export function openCycle(ledger: Ledger, id: string, root: RequestCycle['root']): void {
  const { cycles, steps, groups, calls, rounds, texts, messages, results, owner } = ledger;
  ledger.cycles = cycles.push(owner, {
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
    made: undefined,
  });
  addMessage(ledger, root);
}

/** A root's or a steer's message: a step, and input of the next round. */
export function addMessage(ledger: Ledger, message: RoundMessage): void {
  ledger.replying = false;
  ledger.messages = ledger.messages.push(ledger.owner, message);
  addStep(ledger, message);
}

export const closeCycle = (ledger: Ledger, stop: CycleRecord['stop']): void => changeCycle(ledger, stop, NONE);

/** The last cycle has no stop (again) and waits for these calls. */
export const keepOpen = (ledger: Ledger, waiting = NONE): void => changeCycle(ledger, null, waiting);

function changeCycle(ledger: Ledger, stop: CycleRecord['stop'], waiting: CycleRecord['waiting']): void {
  const { cycles, owner } = ledger;
  const last = cycles.size - 1;
  ledger.replying = false;
  ledger.cycles = cycles.replace(owner, last, { ...cycles.at(last), stop, waiting, made: undefined });
}

/** The message id where it names no cycle yet, else one made of it and the cycle's place. */
export function freshId(ids: Lookup<string>, messageId: string, place: number): string {
  if (ids.set(messageId, place)) return messageId;
  let id = `${messageId}~${place}`;
  while (!ids.set(id, place)) id += '~';
  return id;
}

/** All cycles. Those before the last one are built once and copied from then on. */
export function cycleViews(ledger: Ledger): readonly RequestCycle[] {
  const { cycles, settled } = ledger;
  const last = cycles.size - 1;
  if (last < 0) return freezeList([]);
  if (!settled.own) {
    settled.views = settled.views.slice(0, settled.count);
    settled.own = true;
  }
  for (; settled.count < last; settled.count++) settled.views.push(cycleView(ledger, settled.count));
  return freezeList(copyWith(settled.views, last, cycleView(ledger, last)));
}

/** The first `count` and one more. Copying in one go is many times faster than adding to a copy. */
function copyWith<T>(list: T[], count: number, one: T): T[] {
  if (list.length > count) return [...list.slice(0, count), one];
  list.push(one);
  const copy = list.slice();
  list.pop();
  return copy;
}

function cycleView(ledger: Ledger, index: number): RequestCycle {
  const { cycles, steps, groups, calls, rounds, texts } = ledger;
  const record = cycles.at(index);
  const next = index + 1 < cycles.size ? cycles.at(index + 1) : undefined;
  const stepsEnd = next === undefined ? steps.size : next.steps;
  const roundsEnd = next === undefined ? rounds.size : next.rounds;
  const rest = next === undefined ? groups.size + calls.size + texts.size : next.groups + next.calls + next.texts;
  // All ends only ever grow, so an equal sum means equal ends.
  const mark = stepsEnd + roundsEnd + rest;
  return kept(record, mark) ?? keep(record, mark, makeView(ledger, record, stepsEnd, roundsEnd));
}

function makeView(ledger: Ledger, record: CycleRecord, stepsEnd: number, roundsEnd: number): RequestCycle {
  const { id, root, stop } = record;
  const waiting = stillWaiting(ledger, record);
  if (stepsEnd - record.steps <= EAGER_MAX && roundsEnd - record.rounds <= EAGER_MAX) {
    const steps = stepViews(ledger, record.steps, stepsEnd);
    return Object.freeze({ id, root, steps, rounds: roundViews(ledger, record, roundsEnd), stop, waiting });
  }
  let steps: RequestCycle['steps'] | undefined;
  let rounds: RequestCycle['rounds'] | undefined;
  return Object.freeze({
    id,
    root,
    get steps() {
      steps ??= stepViews(ledger, record.steps, stepsEnd);
      return steps;
    },
    get rounds() {
      rounds ??= roundViews(ledger, record, roundsEnd);
      return rounds;
    },
    stop,
    waiting,
  });
}

/** A suspended call of this cycle waits until it has its result. */
function stillWaiting(ledger: Ledger, { waiting, calls }: CycleRecord): readonly string[] {
  if (waiting.length === 0) return freezeList([]);
  const open = waiting.filter(({ call }) => call < calls || ledger.calls.at(call).result === null);
  return freezeList(open.map(({ callId }) => callId));
}
