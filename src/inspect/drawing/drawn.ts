/** What is drawn of a chart: states and arrows at their places. Rule: plain JSON, so it may be kept in a file and sent. */
import type { Point } from './elkLevel.ts';

/** `open` shows its states, `folded` one square for each; `end` is a ring without a name. */
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
  /** A transition of it, or of what it holds, leaves its parent. */
  readonly leaves?: true;
  /** Its regions stand side by side. */
  readonly isParallel?: true;
}

export interface DrawnArrow {
  /** Nothing: the dot of the initial state. */
  readonly from: string | undefined;
  readonly to: string;
  readonly isBack?: true;
  readonly points: readonly Point[];
  readonly transitions: readonly string[];
  readonly label?: string;
  /** Where there is a choice, it is shown without being asked for. */
  readonly isChoice?: true;
}

export interface ChartLayout {
  readonly chart: string;
  readonly width: number;
  readonly height: number;
  readonly states: readonly DrawnState[];
  readonly arrows: readonly DrawnArrow[];
}
