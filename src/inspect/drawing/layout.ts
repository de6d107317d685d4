/**
 * Places the states and arrows of a chart. Invariant: ELK lays out each level separately, children first. Back arrows
 * get lanes left of the column. The result is plain JSON, made once for each machine and never changed by a run.
 */
import type { Chart, ChartState } from '../chart.ts';
import type { ChartLayout, DrawnArrow, DrawnState, StateShape } from './chartDrawing.ts';
import { crossings, type Elk, elkGraph, INITIAL, type LevelPlaces, type Point, type Size } from './elkLevel.ts';
import { placedLabels } from './labels.ts';
import { type Arrow, type Level, levelsOf, lift, stateTree } from './levels.ts';

type Direction = 'DOWN' | 'RIGHT';
/** Directions of the levels by the id of their parent. Default: down. */
type LayoutChoice = { readonly directions: ReadonlyMap<string, Direction>; readonly gap: number };

const LEAF = 25;
const FOLDED = 38;
const PADDING = { left: 18, top: 32, right: 30, bottom: 14 };
const LANE = 14;
const NEXT_LANE = 11;
/** The distance between an arrow and a state that it goes around. */
const BESIDE = 7;
const TALL = 230;
/** The vertical gap between states, and the wider one that is tried if labels find no place. */
const GAP = 17;
const WIDE_GAP = 26;
const BOXES_MAX = 80;
/** The size of the drawing area in a window of 1440 by 900. */
const CANVAS: Size = { width: 790, height: 648 };

const opens = (state: ChartState): boolean => state.states.length > 0;

/**
 * Returns the ids of the states that are open at first: the root and its children, in a large chart only the root.
 * Regions of an open parallel state are open too.
 */
export function initiallyOpen({ root }: Chart): string[] {
  const withRegions = (state: ChartState): ChartState[] =>
    state.type === 'parallel' ? [state, ...state.states.filter(opens).flatMap(withRegions)] : [state];
  const shown = root.states.reduce((sum, { states }) => sum + 1 + states.length, 0);
  const inner = shown > BOXES_MAX ? [] : root.states.filter(opens).flatMap(withRegions);
  return [...new Set([...withRegions(root), ...inner].map(({ id }) => id))];
}

interface Placed {
  width: number;
  height: number;
  states: DrawnState[];
  arrows: DrawnArrow[];
}

/** `open` lists the ids of the states that show their children. The parents of an open state must be open too. */
export async function layoutChart(chart: Chart, elk: Elk, open = initiallyOpen(chart)): Promise<ChartLayout> {
  if (!opens(chart.root)) return boxLayout(chart);
  const compounds = open.filter((id) => id !== chart.root.id);
  // Combinations of more than two states are not tried, because there are too many.
  const tried = compounds.length <= 2 ? compounds : [];
  const make = async (way: LayoutChoice) => {
    const made = await new Layout(chart, elk, new Set(open), way).layOut(chart.root);
    const scale = Math.min(CANVAS.width / made.width, CANVAS.height / made.height, 1.2);
    return { way, scale, faults: countCrossedStates(made), layout: { chart: chart.name, ...made } };
  };
  let best = await make({ directions: new Map([[chart.root.id, 'DOWN']]), gap: GAP });
  for (let choice = 1; choice < 2 ** (tried.length + 1); choice++) {
    const directions = new Map<string, Direction>();
    for (const [bit, id] of [chart.root.id, ...tried].entries()) {
      directions.set(id, (choice >> bit) & 1 ? 'RIGHT' : 'DOWN');
    }
    const next = await make({ directions, gap: GAP });
    const isBetterScale = next.faults === best.faults && next.scale > best.scale + 0.005;
    if (next.faults < best.faults || isBetterScale) best = next;
  }
  if (hasAllLabels(best.layout)) return best.layout;
  const wider = await make({ ...best.way, gap: WIDE_GAP });
  return hasAllLabels(wider.layout) && wider.faults <= best.faults ? wider.layout : best.layout;
}

/** A machine without states is one box. */
function boxLayout({ name, root: { id, key } }: Chart): ChartLayout {
  const [margin, width, height] = [4, round(nameWidth(key)), LEAF];
  const box: DrawnState = { id, key, shape: 'leaf', parent: id, x: margin, y: margin, width, height };
  return { chart: name, width: width + 2 * margin, height: height + 2 * margin, states: [box], arrows: [] };
}

/** Returns true if every label of a choice has a place. */
const hasAllLabels = (layout: ChartLayout): boolean =>
  placedLabels(layout).size === layout.arrows.filter(({ label, isChoice }) => label !== undefined && isChoice).length;

/** Counts the arrows that cross a state other than their ends. */
function countCrossedStates({ states, arrows }: Placed): number {
  const within = (low: number, high: number, a: number, b: number): boolean =>
    Math.max(a, b) > low + 1 && Math.min(a, b) < high - 1;
  const isThrough = ({ points }: DrawnArrow, { x, y, width, height }: DrawnState): boolean =>
    points.some(([px, py], index) => {
      const [bx, by] = points[index - 1] ?? [px, py];
      return within(x, x + width, px, bx) && within(y, y + height, py, by);
    });
  const closed = states.filter(({ shape }) => shape !== 'open');
  return arrows.flatMap((arrow) =>
    closed.filter((state) => state.id !== arrow.from && state.id !== arrow.to && isThrough(arrow, state)),
  ).length;
}

/** Lays out one combination of directions. */
class Layout {
  readonly #elk: Elk;
  readonly #open: ReadonlySet<string>;
  readonly #directions: ReadonlyMap<string, Direction>;
  readonly #gap: number;
  readonly #levels: ReadonlyMap<string, Level>;
  readonly #leaving: ReadonlySet<string>;
  readonly #root: string;

  constructor(chart: Chart, elk: Elk, open: ReadonlySet<string>, { directions, gap }: LayoutChoice) {
    this.#elk = elk;
    this.#open = open;
    this.#directions = directions;
    this.#gap = gap;
    this.#levels = levelsOf(chart);
    this.#leaving = leavingStates(chart);
    this.#root = chart.root.id;
  }

  async layOut(parent: ChartState): Promise<Placed> {
    const inner = new Map<string, Placed>();
    for (const child of parent.states) if (this.#open.has(child.id)) inner.set(child.id, await this.layOut(child));
    if (parent.type === 'parallel') return this.#regions(parent, inner);
    const direction = this.#directions.get(parent.id) ?? 'DOWN';
    const level = this.#levels.get(parent.id) ?? { parent, arrows: [] };
    const sizes = sizesOf(level, direction, inner);
    const elkSizes = new Map([...sizes].map(([id, size]) => [id, direction === 'RIGHT' ? cut(size) : size]));
    const places = await elkGraph(this.#elk, level, { direction, gap: this.#gap }, elkSizes);
    for (const [id, { height }] of sizes) {
      const place = places.states.get(id);
      if (place) place.height = height;
    }
    return this.#placed(parent, level, direction, places, inner);
  }

  /** Places the regions of a parallel state side by side. */
  #regions(parent: ChartState, inner: ReadonlyMap<string, Placed>): Placed {
    const pad = this.#paddingOf(parent);
    const sizes = parent.states.map((state) => inner.get(state.id) ?? { width: nameWidth(state.key), height: LEAF });
    const height = Math.max(...sizes.map((size) => size.height));
    const result: Placed = { width: 0, height: height + pad.top + pad.bottom, states: [], arrows: [] };
    let x = pad.left;
    for (const [index, state] of parent.states.entries()) {
      const { width } = sizes[index] ?? { width: 0 };
      this.#addState(result, parent, state, { x, y: pad.top, width, height }, inner);
      x += width + NEXT_LANE;
    }
    result.width = x - NEXT_LANE + pad.right;
    return result;
  }

  #paddingOf(parent: ChartState): typeof PADDING {
    if (parent.id === this.#root) return { left: 4, top: 4, right: 4, bottom: 4 };
    const leaves = parent.states.some(({ id }) => this.#leaving.has(id));
    return leaves ? PADDING : { ...PADDING, right: PADDING.left };
  }

  #placed(parent: ChartState, level: Level, way: Direction, places: LevelPlaces, inner: ReadonlyMap<string, Placed>) {
    const pad = this.#paddingOf(parent);
    const back = level.arrows.filter(({ isBack }) => isBack);
    const boxes = [...places.states.values()];
    const lanes = back.length === 0 ? 0 : LANE + NEXT_LANE * (laneCount(back, places, way) - 1);
    const bends = [...places.routes.values()].flat();
    const dx = pad.left + (way === 'DOWN' ? lanes : 0) - Math.min(...boxes.map(({ x }) => x), ...bends.map(([x]) => x));
    const dy = pad.top - Math.min(...boxes.map(({ y }) => y), ...bends.map(([, y]) => y));
    const result: Placed = { width: 0, height: 0, states: [], arrows: [] };
    for (const state of parent.states) {
      const place = places.states.get(state.id);
      if (!place) continue;
      this.#addState(result, parent, state, { ...place, x: place.x + dx, y: place.y + dy }, inner);
    }
    const first = level.parent.states.find(({ key }) => key === parent.initial)?.id;
    const shift = (route: readonly Point[]): Point[] => route.map(([x, y]) => [round(x + dx), round(y + dy)]);
    for (const [name, route] of places.routes) {
      if (name === INITIAL) {
        if (first) result.arrows.push({ from: undefined, to: first, points: shift(route), transitions: [] });
        continue;
      }
      const arrow = level.arrows.find(({ from, to }) => `${from} ${to}` === name);
      if (arrow)
        result.arrows.push(
          drawnArrow(arrow, shift(route), way === 'DOWN' && !inner.has(arrow.from) ? level : undefined),
        );
    }
    const own = result.states.filter((state) => state.parent === parent.id);
    const left = Math.min(...own.map(({ x }) => x), ...result.arrows.flatMap(({ points }) => points.map(([x]) => x)));
    result.arrows.push(...backLanes(back, own, way, { left, laneOf: laneOf(back, own, way) }));
    const points = result.arrows.flatMap((arrow) => arrow.points);
    const right = Math.max(...own.map(({ x, width }) => x + width), ...points.map(([x]) => x));
    const bottom = Math.max(...own.map(({ y, height }) => y + height), ...points.map(([, y]) => y));
    result.width = round(Math.max(right + pad.right, parent.id === this.#root ? 0 : nameWidth(parent.key)));
    result.height = round(bottom + pad.bottom);
    return result;
  }

  /** Adds a state, with everything inside it, at its place. */
  #addState(
    into: Placed,
    parent: ChartState,
    state: ChartState,
    place: Place,
    inner: ReadonlyMap<string, Placed>,
  ): void {
    const { x, y, width, height } = place;
    const content = inner.get(state.id);
    into.states.push({
      id: state.id,
      key: state.key,
      shape: shapeOf(state, content !== undefined),
      parent: parent.id,
      x: round(x),
      y: round(y),
      width: round(width),
      height: round(height),
      ...(this.#leaving.has(state.id) && { leaves: true as const }),
      ...(state.type === 'parallel' && { isParallel: true as const }),
    });
    if (!content) return;
    into.states.push(...content.states.map((one) => ({ ...one, x: round(one.x + x), y: round(one.y + y) })));
    into.arrows.push(
      ...content.arrows.map((one) => ({
        ...one,
        points: one.points.map(([px, py]): Point => [round(px + x), round(py + y)]),
      })),
    );
  }
}

interface Place extends Size {
  x: number;
  y: number;
}

const round = (value: number): number => Math.round(value * 2) / 2;
const cut = ({ width, height }: Size): Size => ({ width, height: Math.min(height, TALL) });
const nameWidth = (key: string): number => 6.5 * key.length + 46;
const isEnd = (state: ChartState): boolean => state.type === 'final' && /^(done|end|final)$/i.test(state.key);

function shapeOf(state: ChartState, isOpen: boolean): StateShape {
  if (isEnd(state)) return 'end';
  if (state.type === 'final') return 'final';
  if (!opens(state)) return 'leaf';
  return isOpen ? 'open' : 'folded';
}

/**
 * All states of a vertical level have the width of the widest. In a horizontal level this applies to states with a
 * common source.
 */
function sizesOf({ parent, arrows }: Level, direction: Direction, inner: ReadonlyMap<string, Size>): Map<string, Size> {
  const room = direction === 'DOWN' ? 46 : 36;
  const wantedWidth = (state: ChartState): number => 6.5 * state.key.length + (opens(state) ? 46 : room);
  const plain = parent.states.filter((state) => !inner.has(state.id) && !isEnd(state));
  const widest = Math.max(0, ...plain.map(wantedWidth));
  const kin = (state: ChartState): ChartState[] => {
    const sources = arrows.filter(({ to, isBack }) => to === state.id && !isBack).map(({ from }) => from);
    return plain.filter(({ id }) =>
      arrows.some(({ from, to, isBack }) => !isBack && to === id && sources.includes(from)),
    );
  };
  return new Map(
    parent.states.map((state) => {
      const content = inner.get(state.id);
      if (content) return [state.id, { width: content.width, height: content.height }];
      if (isEnd(state)) return [state.id, { width: 17, height: 17 }];
      const group = direction === 'DOWN' ? [] : kin(state);
      // A final state also needs room for a mark.
      const among = group.length > 1 ? Math.max(...group.map((one) => wantedWidth(one) + 24)) : wantedWidth(state);
      return [state.id, { width: direction === 'DOWN' ? widest : among, height: opens(state) ? FOLDED : LEAF }];
    }),
  );
}

/** `level` is passed if labels distinguish the arrows of one source. */
function drawnArrow(arrow: Arrow, points: readonly Point[], level: Level | undefined): DrawnArrow {
  const beside = level?.arrows.filter(({ from }) => from === arrow.from) ?? [];
  const isChoice = beside.length > 1 && arrow.label !== '';
  return {
    from: arrow.from,
    to: arrow.to,
    points,
    transitions: arrow.transitions,
    ...(arrow.label !== '' && { label: arrow.label }),
    ...(isChoice && { isChoice: true as const }),
  };
}

/** The position of a state. */
type PlacedState = Pick<DrawnState, 'id' | 'x' | 'y' | 'width' | 'height'>;

/** Returns the lane of each back arrow. If separate lanes would cross, arrows to the same state share one. */
function laneOf(
  back: readonly Arrow[],
  states: readonly PlacedState[],
  direction: Direction,
): (arrow: Arrow) => string {
  const own = ({ from, to }: Arrow): string => `${from} ${to}`;
  const left = Math.min(...states.map(({ x }) => x));
  const drawn = backLanes(back, states, direction, { left, laneOf: own });
  return crossings(drawn.map(({ points }) => points)) === 0 ? own : ({ to }) => to;
}

function laneCount(back: readonly Arrow[], { states }: LevelPlaces, direction: Direction): number {
  const placedStates = [...states].map(([id, place]) => ({ id, ...place }));
  return new Set(back.map(laneOf(back, placedStates, direction))).size;
}

interface Lane {
  span: number;
  readonly arrows: [arrow: Arrow, a: PlacedState, b: PlacedState][];
}

/** Draws the back arrows left of a column or below a row, the shortest innermost. */
function backLanes(
  back: readonly Arrow[],
  states: readonly PlacedState[],
  direction: Direction,
  { left, laneOf }: { left: number; laneOf: (arrow: Arrow) => string },
): DrawnArrow[] {
  const byId = new Map(states.map((state) => [state.id, state]));
  const lanes = new Map<string, Lane>();
  for (const arrow of back) {
    const a = byId.get(arrow.from);
    const b = byId.get(arrow.to);
    if (!a || !b) continue;
    const lane = lanes.get(laneOf(arrow)) ?? { span: 0, arrows: [] };
    lanes.set(laneOf(arrow), lane);
    lane.span = Math.max(lane.span, direction === 'DOWN' ? Math.abs(a.y - b.y) : Math.abs(a.x - b.x));
    lane.arrows.push([arrow, a, b]);
  }
  const bottom = Math.max(...states.map(({ y, height }) => y + height));
  const inner = [...lanes.values()].sort((one, other) => one.span - other.span);
  return inner.flatMap(({ arrows }, index) =>
    arrows.map(([{ from, to, transitions, label }, a, b]): DrawnArrow => {
      const off = LANE + NEXT_LANE * index;
      const lane = round(direction === 'DOWN' ? left - off : bottom + off);
      // If another back arrow ends at this state, this one starts above it, because the other lane ends there.
      const beside = back.some((other) => other.to === from) ? -BESIDE : 0;
      const points = [...wayOff(a, states, direction, lane, beside), ...wayOff(b, states, direction, lane).reverse()];
      return { from, to, isBack: true, points, transitions, ...(label !== '' && { label }) };
    }),
  );
}

/** Returns the points from a state to its lane: straight, or around the states between. */
function wayOff(
  state: PlacedState,
  states: readonly PlacedState[],
  direction: Direction,
  lane: number,
  beside = 0,
): Point[] {
  const { x, y, width, height } = state;
  const [middleX, middleY] = [round(x + width / 2 + beside), round(y + height / 2 + beside)];
  if (direction === 'DOWN') {
    const blocks = states.some((one) => one.x < x && one.y < middleY && one.y + one.height > middleY);
    const below = y + height + BESIDE;
    const start: Point[] = blocks
      ? [
          [x + 12, y + height],
          [x + 12, below],
        ]
      : [[x, middleY]];
    return [...start, [lane, blocks ? below : middleY]];
  }
  const blocks = states.some((one) => one.y > y && one.x < middleX && one.x + one.width > middleX);
  const right = x + width + BESIDE;
  const start: Point[] = blocks
    ? [
        [x + width, middleY + 6],
        [right, middleY + 6],
      ]
    : [[middleX, y + height]];
  return [...start, [blocks ? right : middleX, lane]];
}

/** Returns the states with a transition, their own or an inner one, that leaves their parent. */
function leavingStates(chart: Chart): ReadonlySet<string> {
  const tree = stateTree(chart);
  const leaving = new Set<string>();
  for (const [source, { transitions }] of tree.states) {
    for (const target of transitions.flatMap(({ targets }) => targets)) {
      const lifted = lift(tree, source, target);
      for (let id: string | undefined = source; lifted && id && id !== lifted.from; id = tree.parents.get(id)) {
        if (tree.parents.get(id) !== lifted.parent && id !== lifted.parent) leaving.add(id);
      }
    }
  }
  return leaving;
}
