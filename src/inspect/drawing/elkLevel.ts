/**
 * The request to ELK for one level of a chart, and its answer. Invariant: ELK receives no hierarchy and no back arrows.
 * In a vertical level the ports are in the middle of the sides, so the main path is straight. States keep the order of
 * the definition, unless another order has fewer crossings.
 */
import type { Arrow, Level } from './levels.ts';

export type Point = readonly [x: number, y: number];

/** The part of elkjs that is used. */
export interface Elk {
  layout(graph: object): Promise<unknown>;
}

export interface Size {
  width: number;
  height: number;
}

export interface LevelPlaces {
  readonly states: Map<string, Size & { x: number; y: number }>;
  /** The points of each arrow, by `from to`, or by `INITIAL` for the initial dot. */
  readonly routes: Map<string, Point[]>;
}

/** The name of the dot before the initial state. */
export const INITIAL = '(initial)';
const DOT = 8;

const SHARED = {
  'elk.algorithm': 'layered',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.spacing.edgeNode': '14',
  'elk.spacing.edgeEdge': '9',
  'elk.layered.spacing.edgeNodeBetweenLayers': '9',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '8',
  'elk.padding': '[left=0,top=0,right=0,bottom=0]',
};
const DOWN = {
  ...SHARED,
  'elk.direction': 'DOWN',
  'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
  'elk.spacing.nodeNode': '28',
};
const RIGHT = {
  ...SHARED,
  'elk.direction': 'RIGHT',
  'elk.layered.considerModelOrder.strategy': 'PREFER_NODES',
  'elk.layered.crossingMinimization.forceNodeModelOrder': 'true',
  'elk.layered.mergeEdges': 'true',
  'elk.spacing.nodeNode': '14',
  'elk.layered.spacing.nodeNodeBetweenLayers': '26',
};

interface Answer {
  children?: readonly (Size & { id: string; x: number; y: number })[];
  edges?: readonly { id: string; sections?: readonly Section[] }[];
}
interface Section {
  startPoint: { x: number; y: number };
  endPoint: { x: number; y: number };
  bendPoints?: readonly { x: number; y: number }[];
}

function nodeOf(id: string, { width, height }: Size, direction: 'DOWN' | 'RIGHT'): object {
  if (direction === 'RIGHT') return { id, width, height };
  const port = (side: 'NORTH' | 'SOUTH') => ({
    id: `${id} ${side}`,
    x: width / 2,
    y: side === 'NORTH' ? 0 : height,
    width: 0,
    height: 0,
    layoutOptions: { 'elk.port.side': side },
  });
  const layoutOptions = { 'elk.portConstraints': 'FIXED_POS' };
  return { id, width, height, ports: [port('NORTH'), port('SOUTH')], layoutOptions };
}

/** `gap` is the vertical distance between states. */
export async function elkGraph(
  elk: Elk,
  { parent, arrows }: Level,
  { direction, gap }: { direction: 'DOWN' | 'RIGHT'; gap: number },
  sizes: ReadonlyMap<string, Size>,
): Promise<LevelPlaces> {
  const first = parent.states.find(({ key }) => key === parent.initial)?.id;
  const ends = (from: string, to: string) =>
    direction === 'DOWN'
      ? { sources: [`${from} SOUTH`], targets: [`${to} NORTH`] }
      : { sources: [from], targets: [to] };
  const edge = (id: string, from: string, to: string, straight: number) => ({
    id,
    ...ends(from, to),
    layoutOptions: { 'elk.layered.priority.straightness': `${straight}`, 'elk.layered.priority.direction': '10' },
  });
  const forward = arrows.filter(({ isBack }) => !isBack);
  // The main path comes first, so that alternatives are placed to its right.
  const ordered = [...forward.filter(({ isSpine }) => isSpine), ...forward.filter(({ isSpine }) => !isSpine)];
  const options = direction === 'RIGHT' ? RIGHT : { ...DOWN, 'elk.layered.spacing.nodeNodeBetweenLayers': `${gap}` };
  const graph = {
    id: '(level)',
    layoutOptions: options,
    children: [
      ...(first === undefined ? [] : [nodeOf(INITIAL, { width: DOT, height: DOT }, direction)]),
      ...[...sizes].map(([id, size]) => nodeOf(id, size, direction)),
    ],
    edges: [
      ...(first === undefined ? [] : [edge(INITIAL, INITIAL, first, 100)]),
      ...ordered.map(({ from, to, isSpine }) => edge(`${from} ${to}`, from, to, isSpine ? 100 : 1)),
    ],
  };
  const places = readAnswer((await elk.layout(graph)) as Answer);
  if (direction !== 'DOWN') return places;
  const inOrder = withSpineLeft(places, forward);
  const crossed = crossings(inOrder.routes.values());
  if (crossed === 0) return inOrder;
  const layoutOptions = { ...options, 'elk.layered.considerModelOrder.strategy': 'NONE' };
  const free = withSpineLeft(readAnswer((await elk.layout({ ...graph, layoutOptions })) as Answer), forward);
  return crossings(free.routes.values()) < crossed ? free : inOrder;
}

/** Counts the crossings of routes. */
export function crossings(routes: Iterable<readonly Point[]>): number {
  const legs = [...routes].map((route) => route.slice(1).map((to, index): [Point, Point] => [route[index] ?? to, to]));
  const isWithin = (at: number, a: number, b: number): boolean =>
    at > Math.min(a, b) + 0.5 && at < Math.max(a, b) - 0.5;
  const cross = ([a, b]: [Point, Point], [c, d]: [Point, Point]): boolean =>
    a[0] === b[0] && c[1] === d[1] && isWithin(a[0], c[0], d[0]) && isWithin(c[1], a[1], b[1]);
  return legs.flatMap((one, index) =>
    legs.flatMap((other, place) =>
      place === index ? [] : one.flatMap((down) => other.filter((across) => cross(down, across))),
    ),
  ).length;
}

/** Mirrors the level if needed, so that alternatives are drawn to the right of the main path. */
function withSpineLeft(places: LevelPlaces, forward: readonly Arrow[]): LevelPlaces {
  const spine = new Set(forward.filter(({ isSpine }) => isSpine).flatMap(({ from, to }) => [from, to]));
  const centre = (id: string): number => {
    const place = places.states.get(id);
    return place ? place.x + place.width / 2 : 0;
  };
  const [first = ''] = spine;
  const sides = [...places.states.keys()].filter((id) => !spine.has(id)).map((id) => centre(id) - centre(first));
  if (sides.reduce((sum, side) => sum + Math.sign(side), 0) >= 0) return places;
  for (const place of places.states.values()) place.x = -place.x - place.width;
  for (const [name, route] of places.routes) {
    places.routes.set(
      name,
      route.map(([x, y]): Point => [-x, y]),
    );
  }
  return places;
}

function readAnswer({ children = [], edges = [] }: Answer): LevelPlaces {
  const states = new Map<string, Size & { x: number; y: number }>();
  const routes = new Map<string, Point[]>();
  for (const { id, x, y, width, height } of children) if (id !== INITIAL) states.set(id, { x, y, width, height });
  for (const { id, sections = [] } of edges) {
    const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
      startPoint,
      ...bendPoints,
      endPoint,
    ]);
    routes.set(
      id,
      points.map(({ x, y }): Point => [x, y]),
    );
  }
  return { states, routes };
}
