/**
 * Generates walks over an agent's graph that together contain every item of a cover. An item is a transition, a sort of
 * move, or a move after a sort. Invariant: a walk continues to the nearest edge with an uncovered item, then to an end.
 * The same graph gives the same walks.
 */
import { duringOf } from '../../../scripts/moves.ts';
import type { PathEdge, PathGraph } from './exploration.ts';
import type { Step } from './nextMoves.ts';

export type Cover = 'transitions' | 'pairs';

/** A longer walk is ended, so that a failure stays readable. */
const STEPS_MAX = 24;

/** Returns the items that an edge covers after a move of this sort. */
function itemsOf(edge: PathEdge, before: string, cover: Cover): string[] {
  const items = [...edge.taken, `move ${edge.sort}`];
  return cover === 'pairs' ? [...items, `pair ${before} > ${edge.sort}`] : items;
}

const isMeanwhile = (edge: PathEdge | undefined): boolean => duringOf(edge?.step.move) !== undefined;

interface Place {
  readonly at: string;
  /** The sort of the previous move. */
  readonly before: string;
  readonly edge?: PathEdge;
  readonly from?: Place;
}

class Walker {
  readonly #graph: PathGraph;
  readonly #cover: Cover;
  readonly #covered = new Set<string>();

  constructor(graph: PathGraph, cover: Cover) {
    this.#graph = graph;
    this.#cover = cover;
  }

  walks(): (readonly Step[])[] {
    const walks: (readonly Step[])[] = [];
    for (;;) {
      const walk = this.#walk();
      if (walk.length === 0) return walks;
      walks.push(walk.map(({ step }) => step));
    }
  }

  #walk(): PathEdge[] {
    const walk: PathEdge[] = [];
    let place: Place = { at: this.#graph.start, before: '' };
    const go = (edges: readonly PathEdge[]): void => {
      for (const [index, edge] of edges.entries()) {
        // A move that interrupts the work after an edge changes the edge's target.
        const isWhole = edges[index + 1] === undefined || !isMeanwhile(edges[index + 1]);
        for (const item of itemsOf(edge, place.before, this.#cover))
          if (isWhole || !edge.taken.includes(item)) this.#covered.add(item);
        walk.push(edge);
        place = { at: edge.to, before: edge.sort };
      }
    };
    while (walk.length < STEPS_MAX) {
      const way = this.#nearest(place, walk.length > 0, (edge, before) =>
        itemsOf(edge, before, this.#cover).some((item) => !this.#covered.has(item)),
      );
      if (!way) break;
      go(way);
    }
    if (walk.length === 0) return walk;
    const isFinal = (at: string): boolean => this.#graph.vertices.get(at)?.final === true;
    if (!isFinal(place.at)) go(this.#nearest(place, true, ({ to }) => isFinal(to)) ?? []);
    return walk;
  }

  /**
   * Returns the shortest path whose last edge is wanted. `follows`: another walk comes before, and its last edge must
   * not be interrupted.
   */
  #nearest(
    start: Place,
    follows: boolean,
    wanted: (edge: PathEdge, before: string) => boolean,
  ): PathEdge[] | undefined {
    const places: Place[] = [start];
    const reached = new Set<string>([this.#nameOf(start)]);
    // Breadth first: the list grows during the iteration.
    for (const place of places) {
      for (const edge of this.#graph.vertices.get(place.at)?.edges ?? []) {
        if (follows && place === start && isMeanwhile(edge)) continue;
        const next: Place = { at: edge.to, before: edge.sort, edge, from: place };
        if (wanted(edge, place.before)) return wayTo(next);
        const name = this.#nameOf(next);
        if (reached.has(name)) continue;
        reached.add(name);
        places.push(next);
      }
    }
    return undefined;
  }

  #nameOf({ at, before }: Place): string {
    return this.#cover === 'pairs' ? `${at} ${before}` : at;
  }
}

function wayTo(last: Place): PathEdge[] {
  const way: PathEdge[] = [];
  for (let place: Place | undefined = last; place?.edge; place = place.from) way.unshift(place.edge);
  return way;
}

/** A walk ends at its last new item, or continues to an end of the graph. */
export const walksOver = (graph: PathGraph, cover: Cover): (readonly Step[])[] => new Walker(graph, cover).walks();

/** Returns every transition that the graph can take. */
export const reachableIn = (graph: PathGraph): Set<string> =>
  new Set([...graph.vertices.values()].flatMap(({ edges }) => edges.flatMap(({ taken }) => taken)));
