/**
 * Which transitions of a chart were taken. Rule: a definition is known by the state that holds it, its event and its
 * place there, so a chart that was rebuilt with other implementations counts as the same chart.
 */
import type { AnyActorRef, AnyStateMachine, AnyTransitionDefinition, InspectionEvent } from 'xstate';

export interface Definition {
  /** Id of the state that holds it. */
  readonly source: string;
  /** Its event descriptor; empty for one that is taken at once. */
  readonly event: string;
  /** Id of the state it leads to; the source's own where it leads nowhere. */
  readonly target: string;
}
type Node = AnyStateMachine['root'];

export interface TransitionCoverage {
  /** To be given as `inspect` to whatever runs the chart; it may run as a child too. */
  observe(event: unknown): void;
  /** The definitions never taken, in the order of the chart. */
  missing(): readonly Definition[];
}

/** The lists in which a state holds its transitions, by event descriptor. */
export function* listsOf(node: Node): Generator<[event: string, list: readonly AnyTransitionDefinition[]]> {
  yield* node.transitions as unknown as Map<string, readonly AnyTransitionDefinition[]>;
  if (node.always) yield ['', node.always as readonly AnyTransitionDefinition[]];
}

export function* nodesOf(node: Node): Generator<Node> {
  yield node;
  for (const child of Object.values(node.states)) yield* nodesOf(child as Node);
}

const keys = new WeakMap<AnyTransitionDefinition, string>();
/** Names a definition by the state that holds it, its event and its place; the same in every rebuilt chart. */
export function keyOf(taken: AnyTransitionDefinition): string {
  const known = keys.get(taken);
  if (known) return known;
  const source = taken.source as Node;
  const [event = '', list = []] = [...listsOf(source)].find(([, candidates]) => candidates.includes(taken)) ?? [];
  const key = `${source.id} ${event} ${list.indexOf(taken)}`;
  keys.set(taken, key);
  return key;
}

export function transitionCoverage(machine: AnyStateMachine): TransitionCoverage {
  const left = new Map<string, Definition>();
  for (const node of nodesOf(machine.root)) {
    for (const [event, list] of listsOf(node)) {
      for (const definition of list) {
        const target = definition.target?.map(({ id }) => id).join(' ') ?? node.id;
        left.set(keyOf(definition), { source: node.id, event, target });
      }
    }
  }
  return {
    observe(event) {
      const step = event as InspectionEvent;
      if (step.type !== '@xstate.microstep' || left.size === 0) return;
      const { logic } = step.actorRef as AnyActorRef & { logic: { id?: string } };
      if (logic.id !== machine.id) return;
      for (const taken of step._transitions) left.delete(keyOf(taken));
    },
    missing: () => [...left.values()],
  };
}
