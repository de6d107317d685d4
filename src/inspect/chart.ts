/**
 * A machine as it can be drawn: its states, and every transition with its guard's name, as plain JSON. Rule: read off the
 * machine itself, those that are taken at once included; of a machine that came as the JSON of its configuration the same
 * is read from there.
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
  /** Keys of the states that are entered with it; those of a parallel one are all. */
  readonly initial?: string;
  /** In the order of the definition. */
  readonly states: readonly ChartState[];
  readonly transitions: readonly ChartTransition[];
  /** Names of what runs while it is active. */
  readonly invoked?: readonly string[];
  readonly description?: string;
}

export interface ChartTransition {
  /** Descriptor it stands under; empty for one that is taken at once. */
  readonly event: string;
  /** Its place in the list under that descriptor. */
  readonly index: number;
  /** Ids of states; none where it stays. */
  readonly targets: readonly string[];
  readonly guard?: string;
  readonly reenter?: true;
  readonly description?: string;
}

type Node = AnyStateMachine['root'];

/** What a guard is called: guards without a name are `guard`. */
function guardName(guard: unknown): string | undefined {
  if (guard === undefined || guard === null) return undefined;
  if (typeof guard === 'string') return guard;
  const { type, name } = guard as { type?: unknown; name?: unknown };
  for (const said of [type, name]) if (typeof said === 'string' && said !== '') return said;
  return 'guard';
}

function transitionOf(event: string, index: number, made: AnyTransitionDefinition): ChartTransition {
  const guard = guardName(made.guard);
  return {
    event,
    index,
    targets: ((made.target ?? []) as readonly Node[]).map(({ id }) => id),
    ...(guard !== undefined && { guard }),
    ...(made.reenter && { reenter: true as const }),
    ...(made.description && { description: made.description }),
  };
}

/** The lists in which a state holds its transitions, by event descriptor. */
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
      list.map((made, index) => transitionOf(event, index, made)),
    ),
    ...(invoked.length > 0 && { invoked }),
    ...(node.description && { description: node.description }),
  };
}

/** The chart of a machine. */
export const chartOf = (machine: AnyStateMachine): Chart => ({ name: machine.id, root: stateOf(machine.root) });
