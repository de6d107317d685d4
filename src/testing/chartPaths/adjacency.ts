/**
 * The graph of a chart, by the traversal of `@xstate/graph`. Invariant: nothing public names a type of that package, so
 * that the types of `runchart/testing` are complete without it.
 */
import { createRequire } from 'node:module';
import type { AdjacencyValue, getAdjacencyMap } from '@xstate/graph';
import { ConfigurationError } from '../../errors.ts';
import type { Situation } from './chartExplorer.ts';

type Event = { type: string };

/** Loads an optional peer of the package, only when paths are generated. */
function traversal(caller: string): typeof getAdjacencyMap {
  try {
    return (createRequire(import.meta.url)('@xstate/graph') as typeof import('@xstate/graph')).getAdjacencyMap;
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new ConfigurationError(`${caller} needs @xstate/graph: npm install --save-dev @xstate/graph`, { cause });
  }
}

/** Returns the graph of any logic by the library's own traversal, or undefined if it has more edges than `limit`. */
export function adjacencyOf<S, E>(
  caller: string,
  logic: { getInitialSnapshot(): S; transition(state: S, event: E): S },
  options: { events(state: S): readonly E[]; serializeState(state: S): string; limit: number },
): Readonly<Record<string, AdjacencyValue<S & Situation, E & Event>>> | undefined {
  const traverse = traversal(caller);
  try {
    return traverse(logic as never, options as never) as never;
  } catch (error) {
    if (error instanceof Error && error.message.includes('limit exceeded')) return undefined;
    throw error;
  }
}
