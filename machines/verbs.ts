/**
 * The seven verbs of a chart: `ask`, `drop` and `log` act on the world, `update`, `spawn`, `stop` and `tell` on actors.
 * The parameter of each is plain values or a pure function of context and event. Rule: an act sees the context that the acts
 * before it left, so what concerns the old context stands before `update`; a parameter that gives nothing does nothing.
 */
import type { EventObject } from 'xstate';

/** A child that is to be started: the name of its chart among the actors of the chart that spawns it. */
export interface SpawnRequest<Src extends string = string, Input = unknown> {
  src: Src;
  /** Unique among the living children of one actor. */
  id: string;
  input: Input;
}

/** An event for a child, by its id, or for the parent. A chart that runs alone is its own parent; it does not repeat to itself what it was just told. */
export interface Message<To extends string = string, Sent extends EventObject = EventObject> {
  to: To;
  event: Sent;
}

export const VERBS = ['ask', 'drop', 'log', 'update', 'spawn', 'stop', 'tell'] as const;
export type Verb = (typeof VERBS)[number];

/** What the final state of a chart gave: XState hands it to `output` of the chart in the last event, without a type. */
export const finalOutput = <T>(event: EventObject): T => (event as EventObject & { output: T }).output;

/** How a verb is written in a chart: `log(openingEntries)` is `{ type: 'log', params: openingEntries }`. */
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

/** What an interpreter reads of a chart; XState's machine has it as well. */
export interface Chart {
  readonly id: string;
  readonly config: object;
  readonly implementations: {
    readonly guards: { readonly [name: string]: unknown };
    readonly actors: { readonly [src: string]: unknown };
  };
}

/** The chart with further actors, for children that few need. */
export const withActors = (chart: Chart, actors: Chart['implementations']['actors']): Chart => ({
  ...chart,
  implementations: { ...chart.implementations, actors: { ...chart.implementations.actors, ...actors } },
});

/** What `createMachine` of a setup takes. */
export type ConfigOf<Setup extends () => { createMachine(config: never): unknown }> = Parameters<
  ReturnType<Setup>['createMachine']
>[0];
export type Guards<Context, Event> = {
  readonly [name: string]: (args: { context: Context; event: Event }) => boolean;
};
