/**
 * Walks that together take every edge of a graph. Invariant: each continues to the nearest edge that is not taken
 * yet, then to an end.
 */
export interface Edge {
  readonly event: { readonly type: string };
  readonly to: string;
}
export interface Vertex {
  readonly edges: readonly Edge[];
  /** It has no next step. */
  readonly final: boolean;
}
export type Graph = ReadonlyMap<string, Vertex>;
export type Walk = readonly Edge[];

/** A walk of this length ends, so that a failure stays readable. */
const STEPS_MAX = 50;

/** Returns the shortest path from `from` whose last edge is wanted, or undefined. */
function nearest(graph: Graph, from: string, wanted: (edge: Edge) => boolean): Edge[] | undefined {
  const reached = new Map<string, { edge: Edge; before: string } | undefined>([[from, undefined]]);
  const way = (last: Edge, at: string): Edge[] => {
    const edges = [last];
    for (let step = reached.get(at); step; step = reached.get(step.before)) edges.unshift(step.edge);
    return edges;
  };
  for (const at of reached.keys()) {
    for (const edge of graph.get(at)?.edges ?? []) {
      if (wanted(edge)) return way(edge, at);
      if (!reached.has(edge.to)) reached.set(edge.to, { edge, before: at });
    }
  }
  return undefined;
}

/** Every edge that can be reached from `start` is in a walk. Each walk ends in a final vertex if possible. */
export function edgeCover(graph: Graph, start: string): Walk[] {
  const untaken = new Set<Edge>([...graph.values()].flatMap(({ edges }) => edges));
  const walks: Walk[] = [];
  do {
    const walk: Edge[] = [];
    let at = start;
    const go = (edges: readonly Edge[]): void => {
      for (const edge of edges) {
        untaken.delete(edge);
        walk.push(edge);
        at = edge.to;
      }
    };
    while (walk.length < STEPS_MAX) {
      const way = nearest(graph, at, (edge) => untaken.has(edge));
      if (!way) break;
      go(way);
    }
    if (walk.length === 0 && walks.length > 0) break;
    if (!graph.get(at)?.final) go(nearest(graph, at, (edge) => graph.get(edge.to)?.final === true) ?? []);
    walks.push(walk);
  } while (untaken.size > 0);
  return walks;
}
