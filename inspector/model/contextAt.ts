/**
 * The context of a conversation at an entry, and the difference of two contexts. Invariant: the library's own fold of
 * the log computes it, as after a restart, so a past context is exact.
 */
import { applyEntry, countersOf, emptyLogState, type LogState } from '../../machines/log/logState.ts';
import type { Json, LogEntry } from '../../machines/vocabulary.ts';
import { beginning } from '../../src/printable.ts';

/** Returns the contexts after these entries. The indexes must ascend. */
export function contextsAt(entries: readonly LogEntry[], indexes: readonly number[]): Json[] {
  const logState = emptyLogState();
  let next = 0;
  return indexes.map((index) => {
    for (; next <= Math.min(index, entries.length - 1); next++) {
      const entry = entries[next];
      if (entry) applyEntry(logState, entry);
    }
    return contextOf(logState);
  });
}

function contextOf(logState: LogState): Json {
  const { runId, cycle, stop, asked, turns, cycleMs, queue, state, calls, open, unsettled, held, reply, warned } =
    logState;
  const context = {
    ...{ runId, cycle, stop, asked, turns, cycleMs, queue, warned, held, reply },
    counters: countersOf(logState),
    state: Object.fromEntries(state),
    open: [...open],
    unsettled: [...unsettled],
    calls: Object.fromEntries(calls),
  };
  return JSON.parse(JSON.stringify(context)) as Json;
}

export interface Difference {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** More differences are only counted. */
const MOST = 400;
const LONG = 400;

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;
const isTree = (value: unknown): value is object => typeof value === 'object' && value !== null && !isEmpty(value);

/** Yields the leaves of a tree with their paths. */
function* leaves(value: unknown, path: string): Generator<[path: string, text: string]> {
  if (!isTree(value)) {
    // An empty context has no leaf, because its path would have no name.
    if (path === '' && typeof value === 'object' && value !== null) return;
    yield [path, JSON.stringify(value) ?? ''];
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    yield* leaves(inner, path === '' ? key : Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
  }
}

const shown = (text: string): string => (text.length > LONG ? `${beginning(text, LONG)}…` : text);

/** Returns the differences in the order of the later context, removed values last. `same` counts equal values. */
export function differences(before: Json, after: Json): { changed: Difference[]; same: number } {
  const remaining = new Map(leaves(before, ''));
  const changed: Difference[] = [];
  let same = 0;
  for (const [path, text] of leaves(after, '')) {
    const old = remaining.get(path);
    remaining.delete(path);
    if (old === text) same += 1;
    else changed.push({ path, ...(old !== undefined && { before: shown(old) }), after: shown(text) });
  }
  for (const [path, old] of remaining) changed.push({ path, before: shown(old) });
  return { changed: changed.slice(0, MOST), same };
}
