/** What all runs of all open conversations have entered and taken of a chart, laid over it. */
import { computed } from '@preact/signals';
import { runPath, type Standing, standingAt } from '../model/chartPath.ts';
import { charts } from './layouts.ts';
import { conversations, coverage, factsOf } from './store.ts';
import { subject } from './subject.ts';

export const covered = computed((): Standing | undefined => {
  const chart = subject.value?.chart ?? 'RUN';
  const known = charts.value.get(chart);
  if (!coverage.value || !known) return undefined;
  const entered = new Map<string, number>();
  const taken = new Set<string>();
  const add = (path: Parameters<typeof standingAt>[1]): void => {
    const one = standingAt(known.walker, path, Number.POSITIVE_INFINITY, 0);
    for (const [id, count] of one.entered) entered.set(id, (entered.get(id) ?? 0) + count);
    for (const key of one.taken) taken.add(key);
  };
  for (const { entries, observed } of conversations.value.values()) {
    if (chart === 'RUN') for (const run of factsOf(entries).runs) add(runPath(known.walker, entries, run));
    else for (const actor of observed?.actors.values() ?? []) if (actor.chart === chart) add(actor.path);
  }
  if (chart !== 'RUN' && entered.size === 0 && subject.value) add(subject.value.path);
  return { leaf: undefined, lit: [], entered, taken, since: 0, spent: new Map() };
});

/** How much of what is drawn was seen. */
export function coverageWords(
  states: readonly { id: string }[],
  arrows: readonly { transitions: readonly string[] }[],
): string {
  const seen = covered.value;
  if (!seen) return '';
  const drawn = arrows.filter(({ transitions }) => transitions.length > 0);
  const entered = states.filter(({ id }) => seen.entered.has(id)).length;
  const taken = drawn.filter(({ transitions }) => transitions.some((key) => seen.taken.has(key))).length;
  return `${entered} of ${states.length} states, ${taken} of ${drawn.length} edges`;
}
