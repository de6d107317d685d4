/**
 * What a conversation knows at an entry, and how two such moments differ. Rule: it is the library's own fold of the log, the
 * one that a restart goes by, so a moment that is long past is told as it was.
 */
import { applyEntry, countersOf, emptyLogState, type LogState } from '../../machines/log/logState.ts';
import type { Json, LogEntry } from '../../machines/vocabulary.ts';

/** Known behind each of the entries, which go up. */
export function contextsAt(entries: readonly LogEntry[], indexes: readonly number[]): Json[] {
  const logState = emptyLogState();
  let next = 0;
  return indexes.map((index) => {
    for (; next <= Math.min(index, entries.length - 1); next++) {
      const entry = entries[next];
      if (entry) applyEntry(logState, entry);
    }
    return toldOf(logState);
  });
}

function toldOf(logState: LogState): Json {
  const { runId, cycle, stop, asked, turns, cycleMs, queue, state, calls, open, unsettled, held, reply, warned } =
    logState;
  const told = {
    ...{ runId, cycle, stop, asked, turns, cycleMs, queue, warned, held, reply },
    counters: countersOf(logState),
    state: Object.fromEntries(state),
    open: [...open],
    unsettled: [...unsettled],
    calls: Object.fromEntries(calls),
  };
  return JSON.parse(JSON.stringify(told)) as Json;
}

export interface Difference {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** More than these are a number. */
const MOST = 400;
const LONG = 400;

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;
const isTree = (value: unknown): value is object => typeof value === 'object' && value !== null && !isEmpty(value);

/** The values at the ends of a tree, by what leads to them. */
function* leaves(value: unknown, path: string): Generator<[path: string, text: string]> {
  if (!isTree(value)) {
    const text = JSON.stringify(value) ?? '';
    yield [path, text.length > LONG ? `${text.slice(0, LONG)}…` : text];
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    yield* leaves(inner, path === '' ? key : Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
  }
}

/** In the order of the later one, with what is gone behind it; `same`: how many values did not change. */
export function differences(before: Json, after: Json): { changed: Difference[]; same: number } {
  const old = new Map(leaves(before, ''));
  const changed: Difference[] = [];
  let same = 0;
  for (const [path, text] of leaves(after, '')) {
    const was = old.get(path);
    old.delete(path);
    if (was === text) same += 1;
    else changed.push({ path, ...(was !== undefined && { before: was }), after: text });
  }
  for (const [path, was] of old) changed.push({ path, before: was });
  return { changed: changed.slice(0, MOST), same };
}
