/** Finds the transitions of a chart that were taken. A chart that was rebuilt counts as the same chart. */
import type { AnyActorRef, AnyStateMachine, InspectionEvent } from 'xstate';
import { keyOf, listsOf, nodesOf } from '../diagrams/chartNodes.ts';

/** A transition as the chart defines it. */
export interface Definition {
  /** Id of the state that has it. */
  readonly source: string;
  /** Its event descriptor; empty for an eventless transition. */
  readonly event: string;
  /** Id of the target state; the source's own if it has none. */
  readonly target: string;
}
/** The transitions of a chart that were taken, and those that were not. */
export interface TransitionCoverage {
  /** Pass it as `inspect` to the runner of the chart, which may also run as a child. */
  observe(event: unknown): void;
  /** The definitions that were never taken, in the order of the chart. */
  missing(): readonly Definition[];
}

/** Observes a running chart and counts which of its transitions were taken. */
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
