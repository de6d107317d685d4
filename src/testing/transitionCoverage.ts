/**
 * Finds the transitions of a chart that were taken. Invariant: its state, its event and its index there identify a
 * definition. So a chart that was rebuilt with other implementations counts as the same chart.
 */
import type { AnyActorRef, AnyStateMachine, AnyTransitionDefinition, InspectionEvent } from 'xstate';

export interface Definition {
  /** Id of the state that has it. */
  readonly source: string;
  /** Its event descriptor; empty for an eventless transition. */
  readonly event: string;
  /** Id of the target state; the source's own if it has none. */
  readonly target: string;
}
type Node = AnyStateMachine['root'];

export interface TransitionCoverage {
  /** Pass it as `inspect` to whatever runs the chart, which may also run as a child. */
  observe(event: unknown): void;
  /** The definitions that were never taken, in the order of the chart. */
  missing(): readonly Definition[];
}

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

export function transitionCoverage(machine: AnyStateMachine): TransitionCoverage {
  const untaken = new Map<string, Definition>();
  for (const node of nodesOf(machine.root)) {
    for (const [event, list] of listsOf(node)) {
      for (const definition of list) {
        const target = definition.target?.map(({ id }) => id).join(' ') ?? node.id;
        untaken.set(keyOf(definition), { source: node.id, event, target });
      }
    }
  }
  return {
    observe(event) {
      const step = event as InspectionEvent;
      if (step.type !== '@xstate.microstep' || untaken.size === 0) return;
      const { logic } = step.actorRef as AnyActorRef & { logic: { id?: string } };
      if (logic.id !== machine.id) return;
      for (const taken of step._transitions) untaken.delete(keyOf(taken));
    },
    missing: () => [...untaken.values()],
  };
}
