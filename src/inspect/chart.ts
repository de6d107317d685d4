/**
 * Converts a machine to plain JSON for drawing: its states, and every transition with the name of its guard. Invariant:
 * the machine itself is the source, including its eventless transitions. `xstateApps.ts` reads machines that arrive as JSON.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';

export interface Chart {
  readonly name: string;
  readonly root: ChartState;
}

export interface ChartState {
  readonly id: string;
  readonly key: string;
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history';
  /** The key of the child state that is entered with it. A parallel state enters all of its regions. */
  readonly initial?: string;
  /** In the order of the definition. */
  readonly states: readonly ChartState[];
  readonly transitions: readonly ChartTransition[];
  /** Names of the actors that run while the state is active. */
  readonly invoked?: readonly string[];
  readonly description?: string;
}

export interface ChartTransition {
  /** The event descriptor; empty for an eventless transition. */
  readonly event: string;
  /** Its index in the list of transitions with that descriptor. */
  readonly index: number;
  /** The ids of the target states; empty if the transition stays in its state. */
  readonly targets: readonly string[];
  readonly guard?: string;
  readonly reenter?: true;
  readonly description?: string;
}

type Node = AnyStateMachine['root'];

/** Returns the name of a guard. Guards without a name are called `guard`. */
function guardName(guard: unknown): string | undefined {
  if (guard === undefined || guard === null) return undefined;
  if (typeof guard === 'string') return guard;
  const { type, name } = guard as { type?: unknown; name?: unknown };
  for (const candidate of [type, name]) if (typeof candidate === 'string' && candidate !== '') return candidate;
  return 'guard';
}

function transitionOf(event: string, index: number, definition: AnyTransitionDefinition): ChartTransition {
  const guard = guardName(definition.guard);
  return {
    event,
    index,
    targets: ((definition.target ?? []) as readonly Node[]).map(({ id }) => id),
    ...(guard !== undefined && { guard }),
    ...(definition.reenter && { reenter: true as const }),
    ...(definition.description && { description: definition.description }),
  };
}

/** Yields the transition lists of a state by event descriptor. */
export function* transitionLists(node: Node): Generator<[event: string, list: readonly AnyTransitionDefinition[]]> {
  yield* node.transitions as unknown as Map<string, readonly AnyTransitionDefinition[]>;
  if (node.always) yield ['', node.always as readonly AnyTransitionDefinition[]];
}

function stateOf(node: Node): ChartState {
  const initial = (node.initial as { target?: readonly Node[] } | undefined)?.target?.[0];
  const invoked = node.invoke.map(({ src, id }) => (typeof src === 'string' ? src : id));
  return {
    id: node.id,
    key: node.key,
    type: node.type,
    ...(initial && node.type === 'compound' && { initial: initial.key }),
    states: (Object.values(node.states) as Node[]).map(stateOf),
    transitions: [...transitionLists(node)].flatMap(([event, list]) =>
      list.map((definition, index) => transitionOf(event, index, definition)),
    ),
    ...(invoked.length > 0 && { invoked }),
    ...(node.description && { description: node.description }),
  };
}

export const chartOf = (machine: AnyStateMachine): Chart => ({ name: machine.id, root: stateOf(machine.root) });
