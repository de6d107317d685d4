/** A chart's layout: states and arrows with coordinates. Invariant: plain JSON, so it can be stored and sent. */
import type { Point } from './elkLevel.ts';

/** `open` shows its child states, and `folded` shows one square for each. `end` is a ring without a name. */
export type StateShape = 'leaf' | 'folded' | 'open' | 'final' | 'end';

export interface DrawnState {
  readonly id: string;
  readonly key: string;
  readonly shape: StateShape;
  readonly parent: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** A transition of the state, or of a state inside it, leaves its parent. */
  readonly leaves?: true;
  /** The regions of the state are drawn side by side. */
  readonly isParallel?: true;
}

export interface DrawnArrow {
  /** Undefined for the dot of the initial state. */
  readonly from: string | undefined;
  readonly to: string;
  readonly isBack?: true;
  readonly points: readonly Point[];
  readonly transitions: readonly string[];
  readonly label?: string;
  /** Its source has other arrows too, so its label is always shown. */
  readonly isChoice?: true;
}

export interface ChartLayout {
  readonly chart: string;
  readonly width: number;
  readonly height: number;
  readonly states: readonly DrawnState[];
  readonly arrows: readonly DrawnArrow[];
}
