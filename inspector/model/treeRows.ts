/** The rows of the tree: conversations, below each its runs, newest first, and below a run its actors. */

import type { Chart } from '../../src/inspect/chart.ts';
import { stateTree } from '../../src/inspect/drawing/levels.ts';
import { duration, oneLine, plural, telling } from '../../src/words/formats.ts';
import { argsAt, type CallState, callAt, roundState } from './callStates.ts';
import { type CallFacts, type LogFacts, type RunFacts, type RunState, runStateAt } from './logFacts.ts';
import type { ActorView } from './observedActors.ts';
import { callMs, type Moment } from './stepRows.ts';

export type MarkName = 'running' | 'waiting' | 'done' | 'failed' | 'cancelled' | 'queued' | 'idle';

export interface TreeRow {
  /** Examples: `run 2`, `round 2`, `call call_1`, `model 2`, `actor x:3`. */
  readonly key: string;
  readonly depth: number;
  readonly mark: MarkName;
  readonly machine?: string;
  readonly name: string;
  readonly fact: string;
  readonly hasChildren: boolean;
  /** Its children are shown. */
  readonly isOpen: boolean;
  /** The row begins after the cursor. */
  readonly isLater: boolean;
  readonly icon?: 'branch';
  /** The sub-agent's conversation. */
  readonly child?: string;
}

export const markOfRun = (state: RunState): MarkName => (state === 'completed' ? 'done' : state);
export const markOfCall = (state: CallState): MarkName =>
  state === 'decided' ? 'queued' : state === 'unknown' || state === 'denied' ? 'cancelled' : state;

/**
 * The number of runs around the cursor that get rows. Earlier runs can be loaded in steps; the others are only counted.
 */
export const RUNS_BEFORE = 40;
const RUNS_AHEAD = 20;

type IsOpen = (key: string, byDefault: boolean) => boolean;

/**
 * Returns the rows of one conversation. `isOpen` returns whether a row is unfolded; `isAsking` means that the model
 * is being called.
 */
export function runRows(moment: Moment, isOpen: IsOpen, isAsking: boolean, runsBefore = RUNS_BEFORE): TreeRow[] {
  const { facts, index } = moment;
  const begun = facts.runs.filter(({ from }) => from <= index);
  const current = begun.at(-1);
  const from = Math.max(0, begun.length - runsBefore);
  const to = Math.min(facts.runs.length, begun.length + RUNS_AHEAD);
  const rows = facts.runs.slice(from, to).flatMap((_, place) => {
    const at = to - 1 - place;
    const run = facts.runs[at];
    if (!run) return [];
    const key = `run ${at}`;
    const below = run.from <= index ? rowsBelow(run, at, moment, isOpen, isAsking) : [];
    const state = runStateAt(run, index);
    const open = isOpen(key, run === current);
    const row: TreeRow = {
      key,
      depth: 1,
      mark: run.from > index ? 'idle' : markOfRun(state),
      machine: `RUN ${run.number}`,
      name: oneLine(run.words, 60),
      fact: '',
      hasChildren: below.length > 0,
      isOpen: open,
      isLater: run.from > index,
    };
    return open ? [row, ...below] : [row];
  });
  return from > 0 ? [...rows, earlier(from)] : rows;
}

const earlier = (runs: number): TreeRow => ({
  key: 'earlier',
  depth: 1,
  mark: 'idle',
  name: `${plural(runs, 'earlier run')} · load more`,
  fact: '',
  hasChildren: false,
  isOpen: false,
  isLater: true,
});

function callsOf({ calls }: LogFacts, run: RunFacts, index: number): CallFacts[] {
  return [...calls.values()].filter(
    ({ requestedAt, starts }) =>
      (requestedAt >= run.from && requestedAt <= Math.min(run.to, index)) ||
      starts.some(({ at }) => at >= run.from && at <= Math.min(run.to, index)),
  );
}

function rowsBelow(run: RunFacts, at: number, moment: Moment, isOpen: IsOpen, isAsking: boolean): TreeRow[] {
  const { facts, index } = moment;
  const rows: TreeRow[] = [];
  const state = runStateAt(run, index);
  if (state === 'running' && isAsking) {
    const turn = run.turns.filter(({ reply = 0 }) => reply <= index).length + 1;
    rows.push({
      key: `model ${at}`,
      depth: 2,
      mark: 'running',
      machine: 'LLM_CALL',
      name: '',
      fact: `turn ${turn}`,
      hasChildren: false,
      isOpen: false,
      isLater: false,
    });
  }
  const calls = callsOf(facts, run, index);
  if (calls.length === 0) return rows;
  const states = calls.map((call) => callAt(call, index));
  const key = `round ${at}`;
  // Calls that were interrupted with their run no longer run.
  const live = state === 'running' ? states : states.map((one) => (one === 'running' ? 'cancelled' : one));
  const mark = markOfCall(roundState(live));
  const fact = plural(calls.length, 'call');
  const open = isOpen(key, true);
  const round = {
    key,
    depth: 2,
    mark,
    machine: 'TOOL_ROUND',
    name: '',
    fact,
    hasChildren: true,
    isLater: false,
  } as const;
  return [
    ...rows,
    { ...round, isOpen: open },
    ...(open ? calls.flatMap((call) => callRows(call, calls.length, moment)) : []),
  ];
}

/** Returns the rows of a call and its sub-agents. `siblings` is the number of calls in its round. */
function callRows(call: CallFacts, siblings: number, moment: Moment): TreeRow[] {
  const { index } = moment;
  const state = callAt(call, index);
  const ms = callMs(call, moment);
  const isTimed = state === 'running' || state === 'waiting' || siblings === 1;
  const fact = !isTimed ? telling(argsAt(call, index), 18) : ms > 0 ? duration(ms) : '';
  const mark = markOfCall(state);
  const row = { depth: 3, mark, name: call.name, fact, hasChildren: false, isOpen: false, isLater: false };
  const children = call.children.filter(({ from }) => from <= index);
  return [
    { ...row, key: `call ${call.callId}` },
    ...children.map(({ id, name, task, to = index + 1 }): TreeRow => {
      const isOver = to <= index || state === 'done';
      const own = { key: `child ${id}`, name: `${name} ${oneLine(task, 40)}`, child: id, icon: 'branch' } as const;
      return { ...row, ...own, depth: 4, mark: isOver ? 'done' : mark, fact: '' };
    }),
  ];
}

const stateTrees = new WeakMap<Chart, ReturnType<typeof stateTree>>();

/** Returns the name of a state. Its id may have nothing in common with it. */
function stateName(chart: Chart | undefined, id: string): string {
  if (!chart) return id;
  const tree = stateTrees.get(chart) ?? stateTree(chart);
  stateTrees.set(chart, tree);
  return tree.states.get(id)?.key ?? id;
}

/** Deeper actors have no rows. */
const ACTOR_DEPTH_MAX = 12;

/** Returns the rows of an app's actors, children below their parents. The time grows linearly with their number. */
export function actorRows(
  actors: readonly ActorView[],
  isOpen: IsOpen,
  chartOf: (key: string) => Chart | undefined,
): TreeRow[] {
  const ids = new Set(actors.map(({ id }) => id));
  const children = new Map<string | undefined, ActorView[]>();
  for (const actor of actors) {
    const { parent } = actor;
    const above = parent !== undefined && ids.has(parent) ? parent : undefined;
    const siblings = children.get(above);
    if (siblings) siblings.push(actor);
    else children.set(above, [actor]);
  }
  const below = (parent: string | undefined, depth: number): TreeRow[] =>
    (children.get(parent) ?? []).flatMap((actor) => {
      const key = `actor ${actor.id}`;
      const hasChildren = depth <= ACTOR_DEPTH_MAX && children.has(actor.id);
      const chart = actor.chart === undefined ? undefined : chartOf(actor.chart);
      const open = isOpen(key, true);
      const row: TreeRow = {
        key,
        depth,
        mark: actor.status === 'active' ? 'running' : actor.status === 'error' ? 'failed' : 'done',
        ...(chart && { machine: chart.name }),
        name: /^x:\d+$/.test(actor.name) ? '' : actor.name,
        fact: actor.leaves.map((leaf) => stateName(chart, leaf)).join(', '),
        hasChildren,
        isOpen: open,
        isLater: false,
      };
      return hasChildren && open ? [row, ...below(actor.id, depth + 1)] : [row];
    });
  return below(undefined, 1);
}

/** Returns the place of each row among the rows below the same parent, and the number of those. */
export function siblingPlaces(rows: readonly TreeRow[]): { place: number; of: number }[] {
  const groups: { count: number }[] = [];
  const places = rows.map(({ depth }) => {
    // The groups below an earlier row end here.
    groups.length = Math.min(groups.length, depth + 1);
    const group = groups[depth] ?? { count: 0 };
    groups[depth] = group;
    group.count += 1;
    return { place: group.count, group };
  });
  return places.map(({ place, group }) => ({ place, of: group.count }));
}
