/**
 * Splits a chart into levels: the states of one parent, and the transitions between them. Transitions of deeper states
 * are lifted to this level. Invariant: equal lifted transitions become one arrow. A transition that stays in its state
 * becomes none. An arrow to a state on the path to its source is a back arrow.
 */
import type { Chart, ChartState, ChartTransition } from '../chart.ts';

/** Returns a transition's key: the id of its state, its descriptor and its index there. */
export const transitionKey = (source: string, { event, index }: { event: string; index: number }): string =>
  `${source}|${event}|${index}`;

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly isBack: boolean;
  /** True on the main path: the last forward arrow of each state, beginning at the initial state. */
  readonly isSpine: boolean;
  readonly transitions: readonly string[];
  /** The guard, or the event if there is no guard. Empty if the event is only the end of an effect. */
  readonly label: string;
}

export interface Level {
  readonly parent: ChartState;
  readonly arrows: readonly Arrow[];
}

/** States by id, and the parent of each. */
export interface StateTree {
  readonly states: ReadonlyMap<string, ChartState>;
  readonly parents: ReadonlyMap<string, string>;
}

export function stateTree({ root }: Chart): StateTree {
  const states = new Map<string, ChartState>();
  const parents = new Map<string, string>();
  const add = (state: ChartState): void => {
    states.set(state.id, state);
    for (const child of state.states) {
      parents.set(child.id, state.id);
      add(child);
    }
  };
  add(root);
  return { states, parents };
}

/** Returns the ids from the state itself up to the root. */
export function lineage({ parents }: StateTree, id: string): string[] {
  const line = [id];
  for (let above = parents.get(id); above !== undefined; above = parents.get(above)) line.push(above);
  return line;
}

/** Returns the deepest state that is entered with this one. */
export function innermostInitial(state: ChartState): ChartState {
  const first = state.states.find(({ key }) => key === state.initial);
  return first ? innermostInitial(first) : state;
}

/** Returns all innermost states that are entered with this one: one in each region of a parallel state. */
export function innermostActive(state: ChartState): ChartState[] {
  const isEntered = ({ key, type }: ChartState): boolean =>
    state.type === 'parallel' ? type !== 'history' : key === state.initial;
  const inner = state.states.filter(isEntered).flatMap(innermostActive);
  return inner.length > 0 ? inner : [state];
}

export interface Lifted {
  readonly parent: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Returns the two siblings between which a transition is drawn, or undefined if it stays. A transition of the parent
 * starts at its initial state.
 */
export function lift(tree: StateTree, source: string, target: string): Lifted | undefined {
  const from = lineage(tree, source);
  const to = lineage(tree, target);
  const parent = from.find((id) => to.includes(id));
  if (parent === undefined || source === target || parent === target) return undefined;
  const first = tree.states.get(parent)?.states.find(({ key }) => key === tree.states.get(parent)?.initial)?.id;
  const a = parent === source ? first : from[from.indexOf(parent) - 1];
  const b = to[to.indexOf(parent) - 1];
  return a === undefined || b === undefined || a === b ? undefined : { parent, from: a, to: b };
}

const labelOf = ({ guard, event }: ChartTransition): string =>
  guard ?? (event === 'effect.done' ? '' : event.replace(/^xstate\.done\.actor\./, 'done: '));

interface Gathered {
  from: string;
  to: string;
  transitions: string[];
  labels: string[];
}

/** Returns the levels by the id of their parent. */
export function levelsOf(chart: Chart): ReadonlyMap<string, Level> {
  const tree = stateTree(chart);
  const gathered = new Map<string, Map<string, Gathered>>();
  for (const [source, state] of tree.states) {
    for (const transition of state.transitions) {
      for (const target of transition.targets) {
        const lifted = lift(tree, source, target);
        if (!lifted) continue;
        const level = gathered.get(lifted.parent) ?? new Map<string, Gathered>();
        gathered.set(lifted.parent, level);
        const name = `${lifted.from} ${lifted.to}`;
        const arrow = level.get(name) ?? { from: lifted.from, to: lifted.to, transitions: [], labels: [] };
        level.set(name, arrow);
        arrow.transitions.push(transitionKey(source, transition));
        const label = labelOf(transition);
        if (label !== '') arrow.labels.push(label);
      }
    }
  }
  const levels = new Map<string, Level>();
  for (const [id, parent] of tree.states) {
    if (parent.states.length > 0) levels.set(id, levelOf(parent, [...(gathered.get(id)?.values() ?? [])]));
  }
  return levels;
}

function levelOf(parent: ChartState, arrowsOfLevel: readonly Gathered[]): Level {
  const order = new Map(parent.states.map(({ id }, index) => [id, index]));
  const place = (id: string): number => order.get(id) ?? 0;
  const sorted = [...arrowsOfLevel].sort((a, b) => place(a.from) - place(b.from) || place(a.to) - place(b.to));
  const back = backEdges(parent, sorted);
  // The main path uses the last arrow in the order of the definition, not in the sorted order.
  const spine = spineOf(
    parent,
    arrowsOfLevel.filter((arrow) => !back.has(arrow)),
  );
  const arrows = sorted.map((arrow) => ({
    from: arrow.from,
    to: arrow.to,
    isBack: back.has(arrow),
    isSpine: spine.has(arrow),
    transitions: arrow.transitions,
    label: arrow.labels[0] ?? '',
  }));
  return { parent, arrows };
}

const initialOf = (parent: ChartState): string | undefined =>
  parent.states.find(({ key }) => key === parent.initial)?.id ?? parent.states[0]?.id;

/** Searches depth first from the initial state: an arrow to a state on the current path is a back arrow. */
function backEdges(parent: ChartState, arrows: readonly Gathered[]): ReadonlySet<Gathered> {
  const back = new Set<Gathered>();
  const visited = new Set<string>();
  const open = new Set<string>();
  const visit = (id: string): void => {
    visited.add(id);
    open.add(id);
    for (const arrow of arrows) {
      if (arrow.from !== id) continue;
      if (open.has(arrow.to)) back.add(arrow);
      else if (!visited.has(arrow.to)) visit(arrow.to);
    }
    open.delete(id);
  };
  const first = initialOf(parent);
  for (const id of [first, ...parent.states.map((state) => state.id)]) {
    if (id !== undefined && !visited.has(id)) visit(id);
  }
  return back;
}

function spineOf(parent: ChartState, forward: readonly Gathered[]): ReadonlySet<Gathered> {
  const spine = new Set<Gathered>();
  const passed = new Set<string>();
  let at = initialOf(parent);
  while (at !== undefined && !passed.has(at)) {
    passed.add(at);
    const from = at;
    const last = forward.filter((arrow) => arrow.from === from).at(-1);
    if (last) spine.add(last);
    at = last?.to;
  }
  return spine;
}
