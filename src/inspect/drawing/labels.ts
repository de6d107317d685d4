/**
 * Where the labels of arrows stand. Rule: a label lies on no state, no arrow and no other label; one for which there is no
 * such place is shown when somebody points at its arrow.
 */
import type { Point } from './elkLevel.ts';
import type { ChartLayout, DrawnArrow } from './layout.ts';

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const LETTER = 5.8;
const ASCENT = 8;
const HEIGHT = 10;
const widthOf = (label: string): number => label.length * LETTER;
/** From its line. */
const BESIDE = 5;
/** How far it may stand out of the chart: wherever one is drawn, so much is left around it. */
const AROUND = 8;

/** Where a label that is pointed at stands: beside the arrow, at the level of its bend. */
export function labelPlace({ points, isBack }: DrawnArrow): Point {
  const [, lane, turn] = points;
  // A way back is told beside its lane, where no state stands.
  if (isBack && lane && turn) {
    const isUp = Math.abs(lane[0] - turn[0]) < 1;
    return isUp ? [lane[0] + 4, (lane[1] + turn[1]) / 2] : [(lane[0] + turn[0]) / 2, lane[1] - 4];
  }
  const [first = [0, 0], second = first] = points;
  if (points.length <= 2) return [first[0] + BESIDE, (first[1] + Math.min(second[1], first[1] + 18)) / 2 + 3];
  const bend = points.at(-2) ?? second;
  const isDown = Math.abs((points.at(-1)?.[0] ?? 0) - bend[0]) < 1;
  return isDown ? [bend[0] + BESIDE, bend[1] + 3.5] : [bend[0] - 4, bend[1] - 4];
}

/** Beside each leg, the last one first: there no arrow of the same origin runs any more. */
function* placesOf(arrow: DrawnArrow, width: number): Generator<Point> {
  yield labelPlace(arrow);
  const { points } = arrow;
  for (let index = points.length - 1; index > 0; index--) {
    const [[ax, ay], [bx, by]] = [points[index - 1] ?? [0, 0], points[index] ?? [0, 0]];
    const [left, top] = [Math.min(ax, bx), Math.min(ay, by)];
    const [right, bottom] = [Math.max(ax, bx), Math.max(ay, by)];
    if (right - left < 1) {
      for (const y of [(top + bottom) / 2 + 3, top + ASCENT + 2, bottom - 4]) {
        yield [right + BESIDE, y];
        yield [left - BESIDE - width, y];
      }
    } else if (right - left > width) {
      for (const x of [left + 4, right - width - 4]) for (const y of [top - 4, top + ASCENT + 3]) yield [x, y];
    }
  }
}

const meets = (one: Box, other: Box): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

/** Its legs, as wide as they are drawn. */
const legsOf = ({ points }: DrawnArrow): Box[] =>
  points.slice(1).map(([x, y], index): Box => {
    const [px, py] = points[index] ?? [x, y];
    return {
      x: Math.min(x, px) - 1,
      y: Math.min(y, py) - 1,
      width: Math.abs(x - px) + 2,
      height: Math.abs(y - py) + 2,
    };
  });

const placed = new WeakMap<ChartLayout, ReadonlyMap<DrawnArrow, Point>>();

/** Of the arrows that are told apart by their labels, where those stand: once a layout. */
export function placedLabels(layout: ChartLayout): ReadonlyMap<DrawnArrow, Point> {
  const known = placed.get(layout);
  if (known) return known;
  const { width, height, states, arrows } = layout;
  const taken: Box[] = [...states.filter(({ shape }) => shape !== 'open'), ...arrows.flatMap(legsOf)];
  // The borders and names of what is open.
  for (const { x, y, width: wide, height: high } of states.filter(({ shape }) => shape === 'open')) {
    taken.push({ x, y, width: wide, height: 22 }, { x, y: y + high - 1, width: wide, height: 2 });
    taken.push({ x: x - 1, y, width: 2, height: high }, { x: x + wide - 1, y, width: 2, height: high });
  }
  const places = new Map<DrawnArrow, Point>();
  for (const arrow of arrows) {
    if (arrow.label === undefined || !arrow.isChoice) continue;
    const wide = widthOf(arrow.label);
    for (const [x, y] of placesOf(arrow, wide)) {
      const box = { x, y: y - ASCENT, width: wide, height: HEIGHT };
      const isOutside = x < -AROUND || x + wide > width + AROUND || box.y < 0 || y > height;
      if (isOutside || taken.some((one) => meets(one, box))) continue;
      places.set(arrow, [x, y]);
      taken.push(box);
      break;
    }
  }
  placed.set(layout, places);
  return places;
}
