/**
 * Charts with their layouts. Invariant: the page contains the layouts of runchart's own charts. ELK lays out other
 * charts and other folds, once in a worker. A run never needs a new layout.
 */
import { signal } from '@preact/signals';
import ElkApi from 'elkjs/lib/elk-api.js';
import workerAddress from 'elkjs/lib/elk-worker.min.js?url';
import type { Chart } from '../../src/inspect/chart.ts';
import type { ChartLayout } from '../../src/inspect/drawing/chartDrawing.ts';
import type { Elk } from '../../src/inspect/drawing/elkLevel.ts';
import { initiallyOpen, layoutChart } from '../../src/inspect/drawing/layout.ts';
import { laidOutCharts } from '../../src/inspect/drawing/layouts.ts';
import { type Walker, walker } from '../model/chart/inferredPath.ts';

export interface LoadedChart {
  readonly chart: Chart;
  readonly walker: Walker;
}

/** The key is the chart's name for runchart's own charts, and the key of the wire for others. */
export const charts = signal<ReadonlyMap<string, LoadedChart>>(new Map());
const layouts = signal<ReadonlyMap<string, ChartLayout>>(new Map());
/** For each chart, the open compound states, if a person changed them. */
const opened = signal<ReadonlyMap<string, readonly string[]>>(new Map());

const own = new Map<string, string>();
for (const { chart, layout } of laidOutCharts()) {
  charts.value = new Map(charts.value).set(chart.name, { chart, walker: walker(chart) });
  layouts.value = new Map(layouts.value).set(`${chart.name}|${initiallyOpen(chart).join()}`, layout);
  own.set(JSON.stringify(chart), chart.name);
}
/** The keys of runchart's own charts. */
export const OWN_CHARTS: ReadonlySet<string> = new Set(own.values());

/**
 * Adds a received chart and returns its key here. A chart that equals one of runchart's own gets the key of that one.
 */
export function learnChart(key: string, chart: Chart): string {
  const same = own.get(JSON.stringify(chart));
  if (same !== undefined) return same;
  if (!charts.value.has(key)) charts.value = new Map(charts.value).set(key, { chart, walker: walker(chart) });
  return key;
}

const openOf = (key: string): readonly string[] => {
  const loaded = charts.value.get(key);
  return opened.value.get(key) ?? (loaded ? initiallyOpen(loaded.chart) : []);
};

let elk: Elk | undefined;
const requestedLayouts = new Set<string>();
/** The last layout of each chart. It is shown until the next one is ready. */
const latest = new Map<string, ChartLayout>();

/** Returns the layout of a chart, or undefined until the first one is ready. */
export function layoutOf(key: string): ChartLayout | undefined {
  const loaded = charts.value.get(key);
  if (!loaded) return undefined;
  const open = openOf(key);
  const name = `${key}|${open.join()}`;
  const layout = layouts.value.get(name);
  if (layout) {
    latest.set(key, layout);
    return layout;
  }
  if (!requestedLayouts.has(name)) {
    requestedLayouts.add(name);
    elk ??= new ElkApi({ workerUrl: workerAddress }) as unknown as Elk;
    void layoutChart(loaded.chart, elk, [...open]).then((layout) => {
      layouts.value = new Map(layouts.value).set(name, layout);
    });
  }
  return latest.get(key);
}

/** Opens or folds a compound. Folding a compound folds the ones inside it. */
export function toggleState(key: string, state: string): void {
  const open = openOf(key);
  const next = open.includes(state)
    ? open.filter((id) => id !== state && !id.startsWith(`${state}.`))
    : [...open, state];
  opened.value = new Map(opened.value).set(key, next);
}
