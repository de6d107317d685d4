/**
 * The states of a chart and the transitions of each. Invariant: a transition is named by its state, its event and its index
 * there, so a chart that was rebuilt with other implementations has the same names.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';

type Node = AnyStateMachine['root'];

/** Yields the transition lists of a state by event descriptor. */
export function* listsOf(node: Node): Generator<[event: string, list: readonly AnyTransitionDefinition[]]> {
  yield* node.transitions as unknown as Map<string, readonly AnyTransitionDefinition[]>;
  if (node.always) yield ['', node.always as readonly AnyTransitionDefinition[]];
}

export function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of Object.values(node.states)) yield* nodesOf(child as Node);
}

const keys = new WeakMap<AnyTransitionDefinition, string>();
/** Names a definition by its state, its event and its index, which are the same in every rebuilt chart. */
export function keyOf(taken: AnyTransitionDefinition): string {
  const existing = keys.get(taken);
  if (existing) return existing;
  const source = taken.source as Node;
  const [event = '', list = []] = [...listsOf(source)].find(([, candidates]) => candidates.includes(taken)) ?? [];
  const key = `${source.id} ${event} ${list.indexOf(taken)}`;
  keys.set(taken, key);
  return key;
}
