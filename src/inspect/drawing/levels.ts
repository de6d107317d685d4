/**
 * What is drawn of a chart, level by level: the states of one parent, and the transitions between them, those from
 * deeper down lifted to the two that stand in this level. Rule: equal lifted transitions are one arrow; what stays in its
 * state is none; an arrow to a state that led here is a way back.
 */
import type { Chart, ChartState, ChartTransition } from '../chart.ts';

/** A transition as a key: the id of the state that holds it, its descriptor and its place there. */
export const transitionKey = (source: string, { event, index }: { event: string; index: number }): string =>
  `${source}|${event}|${index}`;

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly isBack: boolean;
  /** Of the way that a run goes where nothing is special: from the first state always the last way on. */
  readonly isSpine: boolean;
  readonly transitions: readonly string[];
  /** The guard, else the event; nothing where that says no more than that an effect is done. */
  readonly label: string;
}

export interface Level {
  readonly parent: ChartState;
  readonly arrows: readonly Arrow[];
}

/** States by id, each with its parent. */
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

/** From the state itself outwards to the root. */
export function lineage({ parents }: StateTree, id: string): string[] {
  const line = [id];
  for (let above = parents.get(id); above !== undefined; above = parents.get(above)) line.push(above);
  return line;
}

/** The first state that is entered with this one, the deepest. */
export function innermostInitial(state: ChartState): ChartState {
  const first = state.states.find(({ key }) => key === state.initial);
  return first ? innermostInitial(first) : state;
}

export interface Lifted {
  readonly parent: string;
  readonly from: string;
  readonly to: string;
}

/** Between which two siblings a transition is drawn; nothing for one that stays. One held by a parent leaves its first child. */
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

const wordOf = ({ guard, event }: ChartTransition): string =>
  guard ?? (event === 'effect.done' ? '' : event.replace(/^xstate\.done\.actor\./, 'done: '));

interface Gathered {
  from: string;
  to: string;
  transitions: string[];
  labels: string[];
}

/** Every level in which something is drawn, by its parent's id. */
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
        const word = wordOf(transition);
        if (word !== '') arrow.labels.push(word);
      }
    }
  }
  const levels = new Map<string, Level>();
  for (const [id, parent] of tree.states) {
    if (parent.states.length > 0) levels.set(id, levelOf(parent, [...(gathered.get(id)?.values() ?? [])]));
  }
  return levels;
}

function levelOf(parent: ChartState, found: readonly Gathered[]): Level {
  const order = new Map(parent.states.map(({ id }, index) => [id, index]));
  const place = (id: string): number => order.get(id) ?? 0;
  const sorted = [...found].sort((a, b) => place(a.from) - place(b.from) || place(a.to) - place(b.to));
  const back = backEdges(parent, sorted);
  // The last of those that a state names, so in the order in which the chart does.
  const spine = spineOf(
    parent,
    found.filter((arrow) => !back.has(arrow)),
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

/** Depth first from the initial state: an arrow to a state on the way here leads back. */
function backEdges(parent: ChartState, arrows: readonly Gathered[]): ReadonlySet<Gathered> {
  const back = new Set<Gathered>();
  const seen = new Set<string>();
  const open = new Set<string>();
  const visit = (id: string): void => {
    seen.add(id);
    open.add(id);
    for (const arrow of arrows) {
      if (arrow.from !== id) continue;
      if (open.has(arrow.to)) back.add(arrow);
      else if (!seen.has(arrow.to)) visit(arrow.to);
    }
    open.delete(id);
  };
  const first = initialOf(parent);
  for (const id of [first, ...parent.states.map((state) => state.id)]) {
    if (id !== undefined && !seen.has(id)) visit(id);
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
