/** What path generation hands to a driver. Rule: a path holds only what can come, and where each step leads. */
import type { AnyMachineSnapshot } from 'xstate';

export interface PathStep {
  readonly event: { readonly type: string };
  /** The chart's snapshot behind the event, as the pure transition gives it. */
  readonly state: AnyMachineSnapshot;
  /** The state values entered on the way, the last one that of `state`. */
  readonly through: readonly unknown[];
}

export interface TestPath {
  readonly name: string;
  /** Where the chart starts. */
  readonly start: Omit<PathStep, 'event'>;
  readonly steps: readonly PathStep[];
}
