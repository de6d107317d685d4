/**
 * Paths that together take every edge of a chart. Invariant: each path is first replayed with the pure transition. So
 * a projection that merges different states is detected here, and not by a test that cannot pass.
 */
import type { AnyStateMachine } from 'xstate';
import type { EventCases } from '../../../machines/internal.ts';
import { ConfigurationError } from '../../errors.ts';
import { isObject } from '../../validation.ts';
import { adjacencyOf } from './adjacency.ts';
import { Explorer, type Situation } from './chartExplorer.ts';
import { withStubs } from './childStub.ts';
import { edgeCover, type Graph, type Vertex, type Walk } from './edgeCover.ts';
import type { PathStep, TestPath } from './testPath.ts';

/** The options of `coverPaths`. */
export interface CoverOptions {
  /** The input of the chart. */
  input: unknown;
  /** The events to try, by event descriptor, wildcards included. */
  cases: EventCases;
  /** The part of the context that guards depend on, as JSON. */
  projection(context: never): unknown;
  /** The most steps to explore. Default: 100,000. */
  limit?: number;
}
const LIMIT = 100_000;
/** The number of a path's last events that its name contains. */
const NAMED = 5;
type Event = { type: string };

/** Returns paths that cover every edge. Each ends in a final state if one can be reached. Throws ConfigurationError. */
export function coverPaths(machine: AnyStateMachine, options: CoverOptions): TestPath[] {
  const { input, cases, projection, limit = LIMIT } = options ?? {};
  if (!isObject(cases) || typeof projection !== 'function')
    throw new ConfigurationError('coverPaths needs cases, an object with lists of events, and projection, a function');
  const explorer = new Explorer({ machine: withStubs(machine), cases, projection });
  const first = explorer.start(input);
  const graph = explore(machine.id, explorer, first, limit);
  return edgeCover(graph, explorer.key(first)).map((walk, index) => replay(machine.id, explorer, first, walk, index));
}

/** Returns the graph of possible events by the library's own traversal. */
function explore(chart: string, explorer: Explorer, first: Situation, limit: number): Graph {
  const logic = {
    getInitialSnapshot: () => first,
    transition: (situation: Situation, event: { type: string }) => explorer.next(situation, event),
  };
  const options = {
    events: (situation: Situation) => explorer.events(situation),
    serializeState: (situation: Situation) => explorer.key(situation),
    limit,
  };
  const adjacency = adjacencyOf<Situation, Event>('coverPaths', logic, options);
  if (!adjacency) {
    throw new ConfigurationError(
      `coverPaths explored ${limit} steps of ${chart} without an end. Let the projection leave out what only grows, ` +
        'let the input bound what can come, or pass a higher limit.',
    );
  }
  const graph = new Map<string, Vertex>();
  for (const [key, { state, transitions }] of Object.entries(adjacency)) {
    const edges = Object.values(transitions).map(({ event, state: next }) => ({ event, to: explorer.key(next) }));
    graph.set(key, { edges, final: state.status === 'done' });
  }
  return graph;
}

/** Returns the walk as the chart really takes it. */
function replay(chart: string, explorer: Explorer, first: Situation, walk: Walk, index: number): TestPath {
  let situation = first;
  const steps: PathStep[] = [];
  for (const { event, to } of walk) {
    situation = explorer.next(situation, event);
    if (explorer.key(situation) !== to) {
      throw new ConfigurationError(
        `the projection of ${chart} merges states that its guards or assigns tell apart: step ${steps.length + 1} ` +
          `(${event.type}) of path ${index + 1} leads to ${explorer.key(situation)}, the graph says ${to}. ` +
          'Let the projection keep what they differ in.',
      );
    }
    const { state, through, effects } = situation;
    steps.push({ event, state, through, effects });
  }
  return { name: nameOf(index, steps, situation), start: first, steps };
}

function nameOf(index: number, steps: readonly PathStep[], last: Situation): string {
  const lastEvents = steps.slice(-NAMED).map(({ event }) => event.type);
  const before = steps.length > NAMED ? [`${steps.length - NAMED} steps`] : [];
  return `${index + 1}: ${[...before, ...lastEvents, JSON.stringify(last.state.value)].join(' → ')}`;
}
