/** The form of a chart's cases. Rule: JSON values and pure functions. */
import type { AnyMachineSnapshot } from 'xstate';

/**
 * What a chart's surroundings (its children, the host) can do next, as far as the chart itself does not know it. It
 * keeps generated paths possible: a child reports a call once, a message has one id.
 */
export interface Surroundings<W = unknown> {
  start(input: unknown): W;
  /** Whether `event` can come now. */
  can(world: W, event: { type: string }, state: AnyMachineSnapshot): boolean;
  /** The surroundings behind `event`, with the state that it led to. JSON. */
  after(world: W, event: { type: string }, state: AnyMachineSnapshot): W;
}

/** Under this key the cases of a chart hold its surroundings: whoever is given the cases is given both. */
export const surroundings: unique symbol = Symbol('surroundings');

/** By event descriptor as the chart writes it (`xstate.done.actor.*` too): one event for each outcome of a guard. */
export interface EventCases {
  [descriptor: string]: readonly object[];
  [surroundings]?: Surroundings;
}

export interface Cases {
  /** Together they switch every policy and phase that a guard reads. */
  inputs: readonly unknown[];
  cases: EventCases;
  /** The part of the context that guards depend on; equal projections have equal futures. */
  projection(context: never): unknown;
}
