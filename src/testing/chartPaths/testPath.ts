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

export interface PathStep extends PathState {
  readonly event: { readonly type: string };
}

export interface TestPath {
  readonly name: string;
  /** The state at the start. */
  readonly start?: PathState;
  readonly steps: readonly PathStep[];
}
