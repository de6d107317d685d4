/** The form of a chart's cases. Rule: JSON values and pure functions. */
import type { AnyMachineSnapshot } from 'xstate';

/**
 * The possible next acts of a chart's surroundings (its children, the host), where the context of the chart does not determine them.
 * Generated
 * paths stay possible: a child reports a call once, a message has one id.
 */
export interface Surroundings<W = unknown> {
  /** Returns the surroundings at the start of a path. */
  start(input: unknown): W;
  /** Whether `event` can come now. */
  can(world: W, event: { type: string }, state: AnyMachineSnapshot): boolean;
  /** The surroundings after `event`, with the state that followed. JSON. */
  after(world: W, event: { type: string }, state: AnyMachineSnapshot): W;
}

/** The key under which the cases of a chart hold its surroundings. An importer of the cases gets both in one object. */
export const surroundings: unique symbol = Symbol('surroundings');

/**
 * The events of a chart, by their descriptors as the chart writes them (`xstate.done.actor.*` too): one event for each outcome
 * of a guard.
 */
export interface EventCases {
  [descriptor: string]: readonly object[];
  [surroundings]?: Surroundings;
}

/** The inputs and events of a chart from which paths are generated. */
export interface Cases {
  /** Together they switch every policy and phase that a guard reads. */
  inputs: readonly unknown[];
  /** The events of the chart, by their descriptors. */
  cases: EventCases;
  /** The part of the context that guards depend on. Equal projections have equal futures. */
  projection(context: never): unknown;
}
