/**
 * Places the labels of arrows. Invariant: a label covers no state, no arrow and no other label. It has one line if
 * possible, otherwise two lines, otherwise a place outside the chart. A label without such a place appears when the
 * pointer is on its arrow.
 */

import type { ChartLayout, DrawnArrow } from './chartDrawing.ts';
import type { Point } from './elkLevel.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

interface Box extends Size {
  readonly x: number;
  readonly y: number;
}

/** `x` and `y` are the start of the first line, on its baseline. */
export interface LabelPlace {
  readonly x: number;
  readonly y: number;
  readonly lines: readonly string[];
}

const LETTER = 5.8;
const ASCENT = 8;
/** The height of one line. */
export const HEIGHT = 10;
const widthOf = (label: string): number => label.length * LETTER;
/** The distance from the arrow. */
const BESIDE = 5;
/** Labels may leave the chart by this much: every drawing has such a margin. */
const AROUND = 8;
/** The distance for labels that find no other place. The drawing becomes larger to hold them. */
const FAR = 90;

/** Returns the preferred place of a label: beside the arrow, at its bend. */
function labelPlace({ points, isBack }: DrawnArrow): Point {
  const [, lane, turn] = points;
  // The label of a back arrow is beside its lane, which crosses no state.
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

/**
 * Yields places beside each leg. The last leg comes first, because no arrow of the same source shares it. A label of
 * one line tries the middles and ends first, then every position. Two lines try every position from the beginning of
 * the leg, because other arrows join later.
 */
function* placesOf(arrow: DrawnArrow, { width, height }: Size): Generator<Point> {
  if (height === HEIGHT) yield labelPlace(arrow);
  const { points } = arrow;
  for (const isThorough of height === HEIGHT ? [false, true] : [true]) {
    for (let index = points.length - 1; index > 0; index--) {
      const [[ax, ay], [bx, by]] = [points[index - 1] ?? [0, 0], points[index] ?? [0, 0]];
      const [left, top] = [Math.min(ax, bx), Math.min(ay, by)];
      const [right, bottom] = [Math.max(ax, bx), Math.max(ay, by)];
      if (right - left < 1) {
        const usual = [(top + bottom) / 2 + 3, top + ASCENT + 2, bottom - 4];
        const off = (y: number): number => Math.abs(y - ASCENT + height / 2 - ay);
        const all = along(top + ASCENT - height, bottom + ASCENT).sort((one, other) => off(one) - off(other));
        for (const y of isThorough ? all : usual) {
          yield [right + BESIDE, y];
          yield [left - BESIDE - width, y];
        }
      } else if (right - left > width) {
        for (const x of isThorough ? along(left, right - width) : [left + 4, right - width - 4])
          for (const y of [top - height + HEIGHT - 4, top + ASCENT + 3]) yield [x, y];
      } else if (isThorough) {
        // Above or below the middle of the leg, with a distance to the states at its ends.
        for (const off of [4, HALF_STATE + 4]) {
          yield [(left + right - width) / 2, top - height + HEIGHT - off];
          yield [(left + right - width) / 2, top + ASCENT + off];
        }
      }
    }
  }
}

const STEP = 2;
const HALF_STATE = 12.5;
const along = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, Math.floor((to - from) / STEP) + 1) }, (_, index) => from + index * STEP);

/** Splits a label into two lines at the beginning of a word, as near to the middle as possible. */
function twoLines(label: string): string[] | undefined {
  const begins = [...label.matchAll(/(?<=[^A-Z])[A-Z]|(?<=[.:_\- ])[^.:_\- ]/g)].map(({ index }) => index);
  const off = (at: number): number => Math.abs(at - label.length / 2);
  const [at] = begins.sort((one, other) => off(one) - off(other));
  return at === undefined ? undefined : [label.slice(0, at).trimEnd(), label.slice(at)];
}

const meets = (one: Box, other: Box): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

/** Returns the legs of an arrow with their drawn width. */
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

type Places = ReadonlyMap<DrawnArrow, LabelPlace>;
const placed = new WeakMap<ChartLayout, { readonly choices: Places; pointed?: Places }>();

const statesOf = ({ states }: ChartLayout): Box[] => {
  const open = states.filter(({ shape }) => shape === 'open');
  // The boxes of the borders and names of open states.
  const borders = open.flatMap(({ x, y, width, height }): Box[] => [
    { x, y, width, height: 22 },
    { x, y: y + height - 1, width, height: 2 },
    { x: x - 1, y, width: 2, height },
    { x: x + width - 1, y, width: 2, height },
  ]);
  return [...states.filter(({ shape }) => shape !== 'open'), ...borders];
};

/** Returns the label places of all arrows that are one of several choices. Cached for each layout. */
export function placedLabels(layout: ChartLayout): Places {
  const cached = placed.get(layout);
  if (cached) return cached.choices;
  const occupied = [...statesOf(layout), ...layout.arrows.flatMap(legsOf)];
  const choices = new Map<DrawnArrow, LabelPlace>();
  for (const arrow of layout.arrows) {
    const place = arrow.isChoice && freePlace(arrow, layout, occupied);
    if (!place) continue;
    choices.set(arrow, place);
    occupied.push(boxOf(place));
  }
  placed.set(layout, { choices: choices });
  return choices;
}

/**
 * Returns the label places of all arrows, for the pointer. They cover no state and no other label. Without room they
 * may cover an arrow.
 */
export function pointedLabels(layout: ChartLayout): Places {
  const choices = placedLabels(layout);
  const cached = placed.get(layout);
  if (cached?.pointed) return cached.pointed;
  const occupied = [...statesOf(layout), ...[...choices.values()].map(boxOf)];
  const lines = layout.arrows.flatMap(legsOf);
  const pointed = new Map<DrawnArrow, LabelPlace>(choices);
  for (const arrow of layout.arrows) {
    if (arrow.label === undefined || choices.has(arrow)) continue;
    const [x, y] = labelPlace(arrow);
    const place = freePlace(arrow, layout, [...occupied, ...lines]) ??
      freePlace(arrow, layout, occupied) ?? { x, y, lines: [arrow.label] };
    pointed.set(arrow, place);
    occupied.push(boxOf(place));
  }
  placed.set(layout, { choices: choices, pointed });
  return pointed;
}

/** Tries one line, then two, then the same outside the chart. */
function freePlace(arrow: DrawnArrow, { width, height }: Size, occupied: readonly Box[]): LabelPlace | undefined {
  const { label = '' } = arrow;
  if (label === '') return undefined;
  const two = twoLines(label);
  for (const around of [AROUND, FAR]) {
    for (const lines of two ? [[label], two] : [[label]]) {
      for (const [x, y] of placesOf(arrow, sizeOf(lines))) {
        const place = { x, y, lines };
        const box = boxOf(place);
        const isOutside =
          box.x < -around || box.x + box.width > width + around || box.y < 0 || box.y + box.height > height + 2;
        if (!isOutside && !occupied.some((one) => meets(one, box))) return place;
      }
    }
  }
  return undefined;
}

const sizeOf = (lines: readonly string[]): Size => ({
  width: Math.max(...lines.map(widthOf)),
  height: HEIGHT * lines.length,
});
const boxOf = ({ x, y, lines }: LabelPlace): Box => ({ x, y: y - ASCENT, ...sizeOf(lines) });

/** Returns the box of the chart with the labels outside it. */
export function drawnBox(layout: ChartLayout): Box {
  const boxes = [...placedLabels(layout).values()].map(boxOf);
  const left = Math.floor(Math.min(0, ...boxes.map(({ x }) => x)));
  const right = Math.max(layout.width, ...boxes.map(({ x, width }) => Math.ceil(x + width)));
  return { x: left, y: 0, width: right - left, height: layout.height };
}
