/**
 * The interface of an interpreter of charts. Invariant: both interpreters give the same entries, requests, drops and actors
 * after every event, and the same reports to `inspect`, in the form of XState's own inspection. With `inspect`, `inspected` of
 * inspection.ts runs the plans.
 */
import type { EffectRequest, NewEntry } from '../../../machines/internal.ts';
import type { Chart } from '../../../machines/verbs.ts';

/** A living chart as the driver and readers of its state use it. */
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

/** The effects of charts on the world. */
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
  /** Called when the root chart broke, which is a defect. */
  onError(error: unknown): void;
  inspect?: ((event: unknown) => void) | undefined;
}
export type Interpreter = (options: InterpreterOptions) => RootChart;
