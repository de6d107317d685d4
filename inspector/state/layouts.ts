/**
 * Charts with their layouts. Rule: runchart's own come with the page, laid out; any other, and each with another fold, is laid
 * out once by ELK in a worker; a run never asks for one.
 */
import { signal } from '@preact/signals';
import ElkApi from 'elkjs/lib/elk-api.js';
import workerAddress from 'elkjs/lib/elk-worker.min.js?url';
import type { Chart } from '../../src/inspect/chart.ts';
import type { ChartLayout } from '../../src/inspect/drawing/drawn.ts';
import type { Elk } from '../../src/inspect/drawing/elkLevel.ts';
import { initiallyOpen, layoutChart } from '../../src/inspect/drawing/layout.ts';
import { laidOutCharts } from '../../src/inspect/drawing/layouts.ts';
import { type Walker, walker } from '../model/walk.ts';

export interface KnownChart {
  readonly chart: Chart;
  readonly walker: Walker;
}

/** By key: the name for runchart's own, what the wire calls it for others. */
export const charts = signal<ReadonlyMap<string, KnownChart>>(new Map());
const layouts = signal<ReadonlyMap<string, ChartLayout>>(new Map());
/** Open compounds by chart, where a person changed them. */
const opened = signal<ReadonlyMap<string, readonly string[]>>(new Map());

const own = new Map<string, string>();
for (const { chart, layout } of laidOutCharts()) {
  charts.value = new Map(charts.value).set(chart.name, { chart, walker: walker(chart) });
  layouts.value = new Map(layouts.value).set(`${chart.name}|${initiallyOpen(chart).join()}`, layout);
  own.set(JSON.stringify(chart), chart.name);
}

/** A chart that was told: its key here, that of our own where it is the same. */
export function learnChart(key: string, chart: Chart): string {
  const same = own.get(JSON.stringify(chart));
  if (same !== undefined) return same;
  if (!charts.value.has(key)) charts.value = new Map(charts.value).set(key, { chart, walker: walker(chart) });
  return key;
}

const openOf = (key: string): readonly string[] => {
  const known = charts.value.get(key);
  return opened.value.get(key) ?? (known ? initiallyOpen(known.chart) : []);
};

let elk: Elk | undefined;
const asked = new Set<string>();
/** The last layout of each chart: it stays until the next one is made. */
const latest = new Map<string, ChartLayout>();

/** What is drawn of a chart; nothing while it is laid out for the first time. */
export function layoutOf(key: string): ChartLayout | undefined {
  const known = charts.value.get(key);
  if (!known) return undefined;
  const open = openOf(key);
  const name = `${key}|${open.join()}`;
  const made = layouts.value.get(name);
  if (made) {
    latest.set(key, made);
    return made;
  }
  if (!asked.has(name)) {
    asked.add(name);
    elk ??= new ElkApi({ workerUrl: workerAddress }) as unknown as Elk;
    void layoutChart(known.chart, elk, [...open]).then((layout) => {
      layouts.value = new Map(layouts.value).set(name, layout);
    });
  }
  return latest.get(key);
}

/** Opens or folds a compound. What is folded folds what it holds. */
export function toggleState(key: string, state: string): void {
  const open = openOf(key);
  const next = open.includes(state)
    ? open.filter((id) => id !== state && !id.startsWith(`${state}.`))
    : [...open, state];
  opened.value = new Map(opened.value).set(key, next);
}
