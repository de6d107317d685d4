/**
 * Lists all transitions of the charts, and records those that were taken, by the names of `transitionCoverage`.
 * Invariant: the interpreter itself reports them, so nothing is copied for it.
 */
import type { AnyStateMachine } from 'xstate';
import { conversationMachine } from '../../../../machines/internal.ts';
import { listsOf, nodesOf } from '../../../diagrams/chartNodes.ts';
import { ActorSystem, type ChartActor, compiled, type Observer } from '../../../runtime/interpreter/chartActor.ts';
import type { Interpreter, World } from '../../../runtime/interpreter/interpreter.ts';

/** A transition of one of the charts. */
export interface ChartTransition {
  /** The id of the chart. */
  readonly machine: string;
  /** The state that has the transition. */
  readonly source: string;
  /** Its event descriptor. Empty for an eventless transition. */
  readonly event: string;
  /** The state after it. */
  readonly target: string;
}

const ignore = (): void => {};
const IGNORING = { actor: ignore, event: ignore, settled: ignore, stopped: ignore };

const observerOf = (take: (key: string) => void): Observer => ({
  ...IGNORING,
  transition(_actor, _event, transition) {
    if (transition) take(`${transition.source.id} ${transition.eventType} ${transition.index}`);
  },
});

/** Runs charts by their plans, and reports each transition that they take. */
export const coveredBy =
  (take: (key: string) => void): Interpreter =>
  (options) =>
    compiled(options, observerOf(take));

/** A separate copy of charts at rest, which reports each transition that it takes. */
export function forkedBy(take: (key: string) => void, root: ChartActor, world: World): ChartActor {
  const system = new ActorSystem(world, (error) => {
    throw error;
  });
  system.observe(observerOf(take));
  return root.fork(system);
}

/** Returns the chart of a conversation and every chart that it runs. */
function charts(machine: AnyStateMachine): AnyStateMachine[] {
  const children = Object.values(machine.implementations.actors) as AnyStateMachine[];
  const all = [machine, ...children.flatMap(charts)];
  return all.filter(({ id }, index) => all.findIndex((other) => other.id === id) === index);
}

/** Returns all transitions of all charts by name, in the order of the charts. */
export function allTransitions(): ReadonlyMap<string, ChartTransition> {
  const transitions = new Map<string, ChartTransition>();
  for (const machine of charts(conversationMachine)) {
    for (const node of nodesOf(machine.root)) {
      for (const [event, list] of listsOf(node)) {
        for (const [index, { target }] of list.entries()) {
          const leads = target?.map(({ id }) => id).join(' ') ?? node.id;
          transitions.set(`${node.id} ${event} ${index}`, {
            machine: machine.id,
            source: node.id,
            event,
            target: leads,
          });
        }
      }
    }
  }
  return transitions;
}
