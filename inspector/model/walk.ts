/**
 * The way through a chart from one state to another, where a log says that both were entered and not what lies between.
 * Rule: the cheapest way counts: what is taken at once before answers, answers before anything from outside.
 */
import type { Chart, ChartState } from '../../src/inspect/chart.ts';
import {
  innermostInitial,
  lineage,
  type StateTree,
  stateTree,
  transitionKey,
} from '../../src/inspect/drawing/levels.ts';

/** One transition on the way. */
export interface Leg {
  readonly key: string;
  readonly source: string;
  readonly target: string;
  readonly event: string;
}

export interface Walker {
  readonly chart: Chart;
  readonly tree: StateTree;
  /** The innermost first state. */
  readonly first: string;
  /** Nothing where no way leads there. */
  walk(from: string, to: string): readonly Leg[] | undefined;
}

const price = (event: string, depth: number): number => {
  if (event === '') return 1;
  if (event === 'effect.done') return 3;
  // The end of an actor that a parent looks after may come at any time.
  return event.startsWith('xstate.done') && depth === 0 ? 3 : 40;
};

export function walker(chart: Chart): Walker {
  const tree = stateTree(chart);
  const known = new Map<string, readonly Leg[] | undefined>();
  const innermost = (id: string): string => {
    const state = tree.states.get(id);
    return state ? innermostInitial(state).id : id;
  };
  return {
    chart,
    tree,
    first: innermostInitial(chart.root).id,
    walk(from, to) {
      const name = `${from}>${to}`;
      if (!known.has(name)) known.set(name, cheapest(tree, innermost, from, to));
      return known.get(name);
    },
  };
}

interface Reached {
  readonly cost: number;
  readonly by?: { readonly from: string; readonly leg: Leg };
}

/** Legs that leave a state, those of its parents among them. */
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
    if (at === to) return wayTo(reached, to);
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

function wayTo(reached: ReadonlyMap<string, Reached>, to: string): Leg[] {
  const legs: Leg[] = [];
  for (let by = reached.get(to)?.by; by !== undefined; by = reached.get(by.from)?.by) legs.unshift(by.leg);
  return legs;
}
