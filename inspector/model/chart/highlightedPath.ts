/**
 * The lines of the highlighted transitions in a drawing. Invariant: the line of a drawn arrow is reused. A transition
 * from inside a compound state runs to the right, along the gutter, and then along the arrow that leaves the compound.
 */

import type { ChartLayout, DrawnArrow, DrawnState } from '../../../src/inspect/drawing/chartDrawing.ts';
import type { Point } from '../../../src/inspect/drawing/elkLevel.ts';
import { lift, type StateTree } from '../../../src/inspect/drawing/levels.ts';
import type { Leg } from './inferredPath.ts';

export interface HighlightedLeg {
  readonly leg: Leg;
  readonly arrow: DrawnArrow;
  readonly points: readonly Point[];
  readonly target: string;
}

const GUTTER = 13;

export interface Drawing {
  readonly layout: ChartLayout;
  readonly tree: StateTree;
  readonly states: ReadonlyMap<string, DrawnState>;
  readonly arrows: ReadonlyMap<string, DrawnArrow>;
}

export function drawingOf(layout: ChartLayout, tree: StateTree): Drawing {
  return {
    layout,
    tree,
    states: new Map(layout.states.map((state) => [state.id, state])),
    arrows: new Map(layout.arrows.map((arrow) => [`${arrow.from} ${arrow.to}`, arrow])),
  };
}

/** Returns the drawn state that contains another: itself, or a folded ancestor. */
export function shownFor({ states, tree }: Drawing, id: string): DrawnState | undefined {
  for (let at: string | undefined = id; at !== undefined; at = tree.parents.get(at)) {
    const state = states.get(at);
    if (state) return state;
  }
  return undefined;
}

/** Returns undefined for a leg inside one drawn state. */
export function highlightedLeg(drawing: Drawing, leg: Leg): HighlightedLeg | undefined {
  const lifted = lift(drawing.tree, leg.source, leg.target);
  const arrow = lifted && drawing.arrows.get(`${lifted.from} ${lifted.to}`);
  if (!lifted || !arrow) return undefined;
  const from = shownFor(drawing, leg.source);
  const points =
    from && from.id !== lifted.from && from.shape !== 'open' ? pathOutOf(drawing, from, arrow) : arrow.points;
  return { leg, arrow, points, target: arrow.to };
}

function pathOutOf({ states }: Drawing, from: DrawnState, arrow: DrawnArrow): Point[] {
  const outer = arrow.from === undefined ? undefined : states.get(arrow.from);
  const [first = [0, 0], ...rest] = arrow.points;
  if (!outer) return [...arrow.points];
  const middle = from.y + from.height / 2;
  const gutter = outer.x + outer.width - GUTTER;
  const [x, y] = first;
  const isRight = Math.abs(x - (outer.x + outer.width)) < 1;
  const start: Point[] = [
    [from.x + from.width, middle],
    [gutter, middle],
  ];
  if (isRight) return [...start, [gutter, y], ...rest];
  // If the arrow leaves on another side, the line follows the inner border to its start.
  const inner = Math.abs(y - (outer.y + outer.height)) < 1 ? y - 7 : y + 7;
  return [...start, [gutter, inner], [x, inner], first, ...rest];
}

/** Returns the initial arrows that were taken with an entered state. */
export function initialsOf({ layout, tree }: Drawing, entered: ReadonlyMap<string, number>): Set<DrawnArrow> {
  const initials = new Set<DrawnArrow>();
  for (const arrow of layout.arrows) {
    if (arrow.from !== undefined) continue;
    const parent = tree.parents.get(arrow.to);
    if (entered.has(arrow.to) && (parent === undefined || entered.has(parent))) initials.add(arrow);
  }
  return initials;
}

/** Returns an SVG path with rounded corners. */
export function roundedPath(points: readonly Point[], radius = 4.5): string {
  const corners = points.filter(([x, y], index) => {
    const before = points[index - 1];
    return !before || Math.abs(before[0] - x) + Math.abs(before[1] - y) > 0.1;
  });
  const [first, ...rest] = corners;
  if (!first) return '';
  let path = `M${first[0]} ${first[1]}`;
  for (const [index, [x, y]] of rest.entries()) {
    const before = corners[index] ?? first;
    const after = rest[index + 1];
    if (!after) {
      path += `L${x} ${y}`;
      continue;
    }
    const inLength = Math.hypot(x - before[0], y - before[1]);
    const outLength = Math.hypot(after[0] - x, after[1] - y);
    const r = Math.min(radius, inLength / 2, outLength / 2);
    const [ux, uy] = [(x - before[0]) / (inLength || 1), (y - before[1]) / (inLength || 1)];
    const [vx, vy] = [(after[0] - x) / (outLength || 1), (after[1] - y) / (outLength || 1)];
    path += `L${x - ux * r} ${y - uy * r}Q${x} ${y} ${x + vx * r} ${y + vy * r}`;
  }
  return path;
}

/** Returns the head of an arrow that ends at the last point. */
export function headPath(points: readonly Point[], size = 5.5): string {
  const end = points.at(-1);
  const before = [...points].reverse().find(([x, y]) => end && Math.abs(x - end[0]) + Math.abs(y - end[1]) > 0.5);
  if (!end || !before) return '';
  const length = Math.hypot(end[0] - before[0], end[1] - before[1]);
  const [ux, uy] = [(end[0] - before[0]) / length, (end[1] - before[1]) / length];
  const [x, y] = [end[0] - ux * size, end[1] - uy * size];
  const half = size * 0.5;
  return `M${end[0]} ${end[1]}L${x - uy * half} ${y + ux * half}L${x + uy * half} ${y - ux * half}Z`;
}

/** Returns the middle of the line, but not too close to its end. */
export function middleOf(points: readonly Point[]): Point {
  const total = points.reduce((sum, [x, y], index) => {
    const before = points[index - 1];
    return before ? sum + Math.hypot(x - before[0], y - before[1]) : 0;
  }, 0);
  let remaining = Math.min(total / 2, Math.max(4, total - 14));
  for (const [index, [x, y]] of points.entries()) {
    const before = points[index - 1];
    if (!before) continue;
    const length = Math.hypot(x - before[0], y - before[1]);
    if (length >= remaining) {
      return [
        before[0] + ((x - before[0]) * remaining) / (length || 1),
        before[1] + ((y - before[1]) * remaining) / (length || 1),
      ];
    }
    remaining -= length;
  }
  return points.at(-1) ?? [0, 0];
}
