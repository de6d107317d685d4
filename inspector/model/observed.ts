/**
 * Actors and what they did, as the wire tells it. Rule: a fold of records: it keeps of each actor its path, bounded, and
 * where it stands; the log is not its business.
 */
import type { Chart, ChartState } from '../../src/inspect/chart.ts';
import { innermostInitial, transitionKey } from '../../src/inspect/drawing/levels.ts';
import type { ActorStatus, Recorded, StateValue } from '../../src/inspect/wire.ts';
import type { Move } from './chartPath.ts';

export interface ActorView {
  readonly id: string;
  readonly name: string;
  readonly parent?: string;
  /** Key of its chart; none for what is no machine. */
  readonly chart?: string;
  readonly isLate: boolean;
  readonly status: ActorStatus;
  readonly leaves: readonly string[];
  readonly path: readonly Move[];
  readonly error?: string;
}

export interface EventRow {
  readonly n: number;
  readonly at: number;
  readonly actor: string;
  readonly from?: string;
  readonly event: { readonly type: string };
  readonly took: readonly string[];
}

export interface Observed {
  readonly actors: ReadonlyMap<string, ActorView>;
  readonly events: readonly EventRow[];
}

export const NOTHING_OBSERVED: Observed = { actors: new Map(), events: [] };
const MOVES_MAX = 4000;
const EVENTS_MAX = 5000;

/** Ids of the innermost states of a value. */
export function leavesOf(chart: Chart | undefined, value: StateValue | undefined): string[] {
  if (!chart || value === undefined) return [];
  const down = (state: ChartState, inner: StateValue): string[] => {
    if (typeof inner === 'string') {
      const child = state.states.find(({ key }) => key === inner);
      return [child?.id ?? state.id];
    }
    const found = Object.entries(inner).flatMap(([key, deeper]) => {
      const child = state.states.find((one) => one.key === key);
      return child ? down(child, deeper) : [];
    });
    return found.length > 0 ? found : [state.id];
  };
  return down(chart.root, value);
}

type Fact = Exclude<Recorded, { type: 'chart' | 'conversation' | 'entry' | 'status' | 'closed' }>;

/** `behind`: index of the last entry that was known then. */
export function observe(seen: Observed, fact: Fact, charts: ReadonlyMap<string, Chart>, behind: number): Observed {
  if (fact.type === 'event') {
    const { n, at, actor, from, event } = fact;
    const row: EventRow = { n, at, actor, event, took: [], ...(from !== undefined && { from }) };
    return { ...seen, events: [...seen.events.slice(-EVENTS_MAX), row] };
  }
  const actors = new Map(seen.actors);
  const known = actors.get(fact.actor);
  if (fact.type === 'actor') {
    const drawn = fact.chart === undefined ? undefined : charts.get(fact.chart);
    // One that begins under the observer's eyes begins in its first state.
    const first = drawn && fact.late !== true && fact.value === undefined ? [innermostInitial(drawn.root).id] : [];
    const leaves = fact.value === undefined ? first : leavesOf(drawn, fact.value);
    const path = leaves.length === 0 ? [] : [{ at: behind, legs: [], leaf: leaves[0] ?? '', time: fact.at }];
    const { actor: id, name, parent, chart } = fact;
    actors.set(id, {
      id,
      name,
      isLate: fact.late === true,
      status: 'active',
      leaves,
      path,
      ...(parent !== undefined && { parent }),
      ...(chart !== undefined && { chart }),
    });
    return { ...seen, actors };
  }
  if (!known) return seen;
  const chart = known.chart === undefined ? undefined : charts.get(known.chart);
  if (fact.type === 'stopped') {
    actors.set(known.id, { ...known, status: fact.status, ...(fact.error !== undefined && { error: fact.error }) });
    return { ...seen, actors };
  }
  const leaves = leavesOf(chart, fact.value);
  if (fact.type === 'settled') {
    const moved = known.leaves.join() !== leaves.join();
    const move: Move = { at: behind, legs: [], leaf: leaves[0] ?? '', time: fact.at };
    actors.set(known.id, { ...known, status: fact.status, leaves, path: moved ? added(known.path, move) : known.path });
    return { ...seen, actors };
  }
  const legs = fact.taken.flatMap((taken) =>
    taken.targets.slice(0, 1).map((target) => {
      const { source, event } = taken;
      return { key: transitionKey(source, taken), source, target, event };
    }),
  );
  if (legs.length === 0) return seen;
  const move: Move = { at: behind, legs, leaf: leaves[0] ?? '', time: fact.at };
  const before = known.path.at(-1);
  // Microsteps of one event are one step.
  const joined = fact.step > 0 && before ? { ...move, legs: [...before.legs, ...legs] } : move;
  const path = fact.step > 0 && before ? [...known.path.slice(0, -1), joined] : added(known.path, move);
  actors.set(known.id, { ...known, leaves, path });
  return { ...seen, actors };
}

const added = (path: readonly Move[], move: Move): Move[] => [...path.slice(-MOVES_MAX), move];
