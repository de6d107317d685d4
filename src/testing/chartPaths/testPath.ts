/**
 * The paths that a generator passes to a driver. Invariant: a path contains only possible events, with the result of
 * each step.
 */
import type { AnyMachineSnapshot } from 'xstate';
import type { ChartEffect } from '../../../machines/internal.ts';

/** The result of a step. Missing fields are not compared. */
export interface PathState {
  /** The chart's snapshot after the pure transition. */
  readonly state: AnyMachineSnapshot;
  /** The intermediate state values. The last one is that of `state`. */
  readonly through?: readonly unknown[];
  /** The chart's own entries and requests. */
  readonly effects?: readonly ChartEffect[];
}

/** A step of a path: an event and the state after it. */
export interface PathStep extends PathState {
  /** The event. */
  readonly event: { readonly type: string };
}

/** A generated path through a chart. */
export interface TestPath {
  /** The events of the path, as text. */
  readonly name: string;
  /** The state at the start. */
  readonly start?: PathState;
  /** The events, each with the state after it. */
  readonly steps: readonly PathStep[];
}
