/** What path generation hands to a driver. Rule: a path holds only what can come, and where each step leads. */
import type { AnyMachineSnapshot } from 'xstate';
import type { ChartEffect } from '../../machines/internal.ts';

/** Where a step leads. What a path does not say is not compared. */
export interface PathState {
  /** The chart's snapshot, as the pure transition gives it. */
  readonly state: AnyMachineSnapshot;
  /** The state values on the way, the last one that of `state`. */
  readonly through?: readonly unknown[];
  /** What the chart itself logs and asks for. */
  readonly effects?: readonly ChartEffect[];
}

export interface PathStep extends PathState {
  readonly event: { readonly type: string };
}

export interface TestPath {
  readonly name: string;
  /** Where the chart starts. */
  readonly start?: PathState;
  readonly steps: readonly PathStep[];
}
