/**
 * What runs the charts of a conversation, whichever interpreter it is. Rule: both give the same entries, requests, drops
 * and actors behind every event; `inspect` is told the same of both, in the form of XState's own inspection: where it is
 * given, `inspected` of inspection.ts runs the plans.
 */
import type { EffectRequest, NewEntry } from '../../../machines/internal.ts';
import type { Chart } from '../../../machines/verbs.ts';

/** A living chart, as far as the driver and those who read its state know it. */
export interface ChartRef {
  readonly id: string;
  send(event: { type: string }): void;
  // biome-ignore lint/suspicious/noExplicitAny: each chart has a context of its own; readers name it.
  getSnapshot(): any;
}
export interface RootChart extends ChartRef {
  start(): void;
  stop(): void;
}

/** What the charts do to the world. */
export interface World {
  ask(asker: ChartRef, request: EffectRequest): void;
  drop(prefix: string): void;
  log(entries: readonly NewEntry[]): void;
}

export interface InterpreterOptions {
  /** A chart, or an XState machine. */
  machine: Chart;
  input: unknown;
  world: World;
  /** The root chart broke: a defect. */
  onError(error: unknown): void;
  inspect?: ((event: unknown) => void) | undefined;
}
export type Interpreter = (options: InterpreterOptions) => RootChart;
