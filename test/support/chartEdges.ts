/**
 * The arrows of a chart between the states that a document names. Invariant: a state inside a documented state counts
 * as that state.
 */
import type { AnyStateMachine } from 'xstate';
import { listsOf, nodesOf } from '../../src/diagrams/chartNodes.ts';
import type { Edge } from './documentEdges.ts';

type Node = AnyStateMachine['root'];

/** `Done` is the end of a diagram. Inner states belong to the documented state around them. */
function nameOf(node: Node, documented: ReadonlySet<string>): string {
  if (node.key === 'Done' && node.type === 'final') return '[*]';
  for (let at: Node | undefined = node; at; at = at.parent) if (documented.has(at.key)) return at.key;
  return node.key;
}

/** The first documented state after the chart's initial arrow. */
function firstOf(root: Node, documented: ReadonlySet<string>): string {
  let at = root;
  while (!documented.has(at.key)) {
    const [next] = at.initial.target as readonly Node[];
    if (!next) throw new Error(`${at.id} has no initial state`);
    at = next;
  }
  return at.key;
}

export interface ChartEdge {
  edge: Edge;
  /** The arrow holds for all states inside the source; the source itself is not a documented state. */
  superstate: boolean;
}

export function chartEdges(machine: AnyStateMachine, documented: ReadonlySet<string>): ChartEdge[] {
  const edges: ChartEdge[] = [{ edge: ['[*]', firstOf(machine.root, documented)], superstate: false }];
  for (const node of nodesOf(machine.root)) {
    const from = nameOf(node, documented);
    for (const [, list] of listsOf(node)) {
      for (const taken of list) {
        for (const target of (taken.target as readonly Node[] | undefined) ?? []) {
          const to = nameOf(target, documented);
          if (from !== to)
            edges.push({ edge: [from, to], superstate: !documented.has(from) && Object.keys(node.states).length > 0 });
        }
      }
    }
  }
  return edges;
}
