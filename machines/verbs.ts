/**
 * The seven verbs of a chart: `ask`, `drop` and `log` act on the world; `update`, `spawn`, `stop` and `tell` act on actors.
 * The parameter of each is a plain value or a pure function of context and event. Invariant: an act sees the context after the
 * acts before it, so an act that needs the old context comes before `update`. An undefined or empty parameter is a no-op.
 */
import type { EventObject } from 'xstate';

/** A child to start: the name of its chart among the actors of the chart that spawns it. */
export interface SpawnRequest<Src extends string = string, Input = unknown> {
  src: Src;
  /** Unique among the living children of one actor. */
  id: string;
  input: Input;
}

/**
 * An event for a child, by its id, or for the parent. A chart without a parent sends to itself, but never the event that it
 * is handling.
 */
export interface Message<To extends string = string, Sent extends EventObject = EventObject> {
  to: To;
  event: Sent;
}

export const VERBS = ['ask', 'drop', 'log', 'update', 'spawn', 'stop', 'tell'] as const;
export type Verb = (typeof VERBS)[number];

/** The last event of a chart. It has the output of the final state, which XState passes on without a type. */
export type FinalEvent<Output> = EventObject & { output: Output };

/** The form of a verb in a chart: `log(openingEntries)` is `{ type: 'log', params: openingEntries }`. */
const act =
  <V extends Verb>(type: V) =>
  <const Params>(params: Params) =>
    ({ type, params }) as const;

export const ask = act('ask');
export const drop = act('drop');
export const log = act('log');
export const update = act('update');
export const spawn = act('spawn');
export const stop = act('stop');
export const tell = act('tell');

/** The parts of a chart that an interpreter reads. XState's machine has them as well. */
export interface Chart {
  readonly id: string;
  readonly config: object;
  readonly implementations: {
    readonly guards: { readonly [name: string]: unknown };
    readonly actors: { readonly [src: string]: unknown };
  };
}

/** The chart with further actors, for rarely needed children. */
export const withActors = (chart: Chart, actors: Chart['implementations']['actors']): Chart => ({
  ...chart,
  implementations: { ...chart.implementations, actors: { ...chart.implementations.actors, ...actors } },
});

/** The argument of `createMachine` of a setup. */
export type ConfigOf<Setup extends () => { createMachine(config: never): unknown }> = Parameters<
  ReturnType<Setup>['createMachine']
>[0];
export type Guards<Context, Event> = {
  readonly [name: string]: (args: { context: Context; event: Event }) => boolean;
};
