/**
 * Finds the path through a chart between two states, if a log proves both but not the states between. Invariant: the
 * cheapest path is used. Eventless transitions cost less than the ends of effects, which cost less than outside events.
 */
import type { Chart, ChartState } from '../../../src/inspect/chart.ts';
import {
  innermostInitial,
  lineage,
  type StateTree,
  stateTree,
  transitionKey,
} from '../../../src/inspect/drawing/levels.ts';

/** One transition of the path. */
export interface Leg {
  readonly key: string;
  readonly source: string;
  readonly target: string;
  readonly event: string;
  /** The innermost states after its microstep, if it was observed. Parallel regions have one each. */
  readonly leaves?: readonly string[];
  /** More transitions of the same microstep follow. */
  readonly isPart?: true;
}

export interface Walker {
  readonly chart: Chart;
  readonly tree: StateTree;
  /** The innermost initial state. */
  readonly first: string;
  /** Ids from the state itself up to the root. */
  lineage(id: string): readonly string[];
  /** Undefined if no path leads there. */
  walk(from: string, to: string): readonly Leg[] | undefined;
}

const price = (event: string, depth: number): number => {
  if (event === '') return 1;
  if (event === 'effect.done') return 3;
  // The end of an actor that a parent state invoked may come at any time.
  return event.startsWith('xstate.done') && depth === 0 ? 3 : 40;
};

export function walker(chart: Chart): Walker {
  const tree = stateTree(chart);
  const paths = new Map<string, readonly Leg[] | undefined>();
  const innermost = (id: string): string => {
    const state = tree.states.get(id);
    return state ? innermostInitial(state).id : id;
  };
  const lineages = new Map<string, readonly string[]>();
  return {
    chart,
    tree,
    lineage(id) {
      const line = lineages.get(id) ?? lineage(tree, id);
      lineages.set(id, line);
      return line;
    },
    first: innermostInitial(chart.root).id,
    walk(from, to) {
      const name = `${from}>${to}`;
      if (!paths.has(name)) paths.set(name, cheapest(tree, innermost, from, to));
      return paths.get(name);
    },
  };
}

interface Reached {
  readonly cost: number;
  readonly by?: { readonly from: string; readonly leg: Leg };
}

/** Returns the legs that leave a state, also those of its parents. */
function legsFrom(tree: StateTree, id: string): { leg: Leg; cost: number }[] {
  return lineage(tree, id).flatMap((source, depth) => {
    const state = tree.states.get(source) as ChartState;
    return state.transitions.flatMap((transition) =>
      transition.targets.slice(0, 1).map((target) => ({
        leg: { key: transitionKey(source, transition), source, target, event: transition.event },
        cost: price(transition.event, depth) + depth * 0.1 + transition.index * 0.01,
      })),
    );
  });
}

function cheapest(tree: StateTree, innermost: (id: string) => string, from: string, to: string): Leg[] | undefined {
  if (from === to) return [];
  const reached = new Map<string, Reached>([[from, { cost: 0 }]]);
  const open = new Set([from]);
  while (open.size > 0) {
    let at: string | undefined;
    for (const id of open) {
      if (at === undefined || (reached.get(id)?.cost ?? 0) < (reached.get(at)?.cost ?? 0)) at = id;
    }
    if (at === undefined) break;
    open.delete(at);
    if (at === to) return pathTo(reached, to);
    const spent = reached.get(at)?.cost ?? 0;
    for (const { leg, cost } of legsFrom(tree, at)) {
      const leaf = innermost(leg.target);
      const before = reached.get(leaf);
      if (before && before.cost <= spent + cost) continue;
      reached.set(leaf, { cost: spent + cost, by: { from: at, leg } });
      open.add(leaf);
    }
  }
  return undefined;
}

function pathTo(reached: ReadonlyMap<string, Reached>, to: string): Leg[] {
  const legs: Leg[] = [];
  for (let by = reached.get(to)?.by; by !== undefined; by = reached.get(by.from)?.by) legs.unshift(by.leg);
  return legs;
}
