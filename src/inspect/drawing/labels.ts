/**
 * Where the labels of arrows stand. Rule: a label lies on no state, no arrow and no other label. It stands in one line, else
 * in two, else out of the chart; one for which there is no such place is shown when somebody points at its arrow.
 */

import type { ChartLayout, DrawnArrow } from './drawn.ts';
import type { Point } from './elkLevel.ts';

interface Size {
  readonly width: number;
  readonly height: number;
}

interface Box extends Size {
  readonly x: number;
  readonly y: number;
}

/** `x`, `y`: where the first line begins, on its base line. */
export interface LabelPlace {
  readonly x: number;
  readonly y: number;
  readonly lines: readonly string[];
}

const LETTER = 5.8;
const ASCENT = 8;
/** From one line to the next, and of one. */
export const HEIGHT = 10;
const widthOf = (label: string): number => label.length * LETTER;
/** From its line. */
const BESIDE = 5;
/** How far it may stand out of the chart: wherever one is drawn, so much is left around it. */
const AROUND = 8;
/** And where it finds no place so: what shows the chart makes room. */
const FAR = 90;

/** Where a label stands first of all: beside the arrow, at the level of its bend. */
function labelPlace({ points, isBack }: DrawnArrow): Point {
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

/**
 * Beside each leg, the last one first: there no arrow of the same origin runs any more. One line first at the middles and
 * ends, then all along; several all along, from where the leg begins: further on others join it.
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
        // Over or under its middle, and there clear of the states at its ends.
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

/** In two lines: where a word begins, as near to the middle as there is one. */
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

type Places = ReadonlyMap<DrawnArrow, LabelPlace>;
const placed = new WeakMap<ChartLayout, { readonly told: Places; pointed?: Places }>();

const statesOf = ({ states }: ChartLayout): Box[] => {
  const open = states.filter(({ shape }) => shape === 'open');
  // The borders and names of what is open.
  const borders = open.flatMap(({ x, y, width, height }): Box[] => [
    { x, y, width, height: 22 },
    { x, y: y + height - 1, width, height: 2 },
    { x: x - 1, y, width: 2, height },
    { x: x + width - 1, y, width: 2, height },
  ]);
  return [...states.filter(({ shape }) => shape !== 'open'), ...borders];
};

/** Of the arrows that are told apart by their labels, where those stand: once a layout. */
export function placedLabels(layout: ChartLayout): Places {
  const known = placed.get(layout);
  if (known) return known.told;
  const taken = [...statesOf(layout), ...layout.arrows.flatMap(legsOf)];
  const told = new Map<DrawnArrow, LabelPlace>();
  for (const arrow of layout.arrows) {
    const found = arrow.isChoice && freePlace(arrow, layout, taken);
    if (!found) continue;
    told.set(arrow, found);
    taken.push(boxOf(found));
  }
  placed.set(layout, { told });
  return told;
}

/** Those of all arrows, for who points at them: on no state and no other label; where there is no room besides, on an arrow. */
export function pointedLabels(layout: ChartLayout): Places {
  const told = placedLabels(layout);
  const known = placed.get(layout);
  if (known?.pointed) return known.pointed;
  const taken = [...statesOf(layout), ...[...told.values()].map(boxOf)];
  const lines = layout.arrows.flatMap(legsOf);
  const pointed = new Map<DrawnArrow, LabelPlace>(told);
  for (const arrow of layout.arrows) {
    if (arrow.label === undefined || told.has(arrow)) continue;
    const [x, y] = labelPlace(arrow);
    const place = freePlace(arrow, layout, [...taken, ...lines]) ??
      freePlace(arrow, layout, taken) ?? { x, y, lines: [arrow.label] };
    pointed.set(arrow, place);
    taken.push(boxOf(place));
  }
  placed.set(layout, { told, pointed });
  return pointed;
}

/** In one line, else in two; else out of the chart. */
function freePlace(arrow: DrawnArrow, { width, height }: Size, taken: readonly Box[]): LabelPlace | undefined {
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
        if (!isOutside && !taken.some((one) => meets(one, box))) return place;
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

/** The chart with the labels that stand out of it. */
export function drawnBox(layout: ChartLayout): Box {
  const boxes = [...placedLabels(layout).values()].map(boxOf);
  const left = Math.floor(Math.min(0, ...boxes.map(({ x }) => x)));
  const right = Math.max(layout.width, ...boxes.map(({ x, width }) => Math.ceil(x + width)));
  return { x: left, y: 0, width: right - left, height: layout.height };
}
