/**
 * Coverage of a chart: all states that were entered and all transitions that were taken by the runs of open
 * conversations.
 */
import { computed } from '@preact/signals';
import { type ActiveStates, activeStatesAt } from '../model/chart/activeStates.ts';
import { type Path, runPath } from '../model/chart/chartPath.ts';
import { charts } from './chartLayouts.ts';
import { conversations, coverage, factsOf } from './pageState.ts';
import { subject } from './shownActor.ts';

export const covered = computed((): ActiveStates | undefined => {
  const chart = subject.value?.chart ?? 'RUN';
  const chartEntry = charts.value.get(chart);
  if (!coverage.value || !chartEntry) return undefined;
  const entered = new Map<string, number>();
  const taken = new Set<string>();
  const add = (path: Path): void => {
    const one = activeStatesAt(chartEntry.walker, path, Number.POSITIVE_INFINITY, 0);
    for (const [id, count] of one.entered) entered.set(id, (entered.get(id) ?? 0) + count);
    for (const key of one.taken) taken.add(key);
  };
  for (const { entries, observed } of conversations.value.values()) {
    if (chart === 'RUN') for (const run of factsOf(entries).runs) add(runPath(chartEntry.walker, entries, run));
    else for (const actor of observed?.actors.values() ?? []) if (actor.chart === chart) add(actor.path);
  }
  if (chart !== 'RUN' && entered.size === 0 && subject.value) add(subject.value.path);
  return { leaves: new Map(), leaf: undefined, lastStep: [], entered, taken, spent: new Map() };
});

/** Returns how much of the drawn chart was covered. */
export function coverageWords(
  states: readonly { id: string }[],
  arrows: readonly { transitions: readonly string[] }[],
): string {
  const coveredParts = covered.value;
  if (!coveredParts) return '';
  const drawn = arrows.filter(({ transitions }) => transitions.length > 0);
  const entered = states.filter(({ id }) => coveredParts.entered.has(id)).length;
  const taken = drawn.filter(({ transitions }) => transitions.some((key) => coveredParts.taken.has(key))).length;
  return `${entered} of ${states.length} states, ${taken} of ${drawn.length} edges`;
}
