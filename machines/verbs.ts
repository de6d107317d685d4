/**
 * The seven verbs of a chart: `ask`, `drop` and `log` act on the world, `update`, `spawn`, `stop` and `tell` on actors.
 * The parameter of each is plain values or a pure function of context and event. Rule: an act sees the context that the acts
 * before it left, so what concerns the old context stands before `update`; a parameter that gives nothing does nothing.
 */
import { assign, type EventObject, enqueueActions, type MachineContext, stopChild } from 'xstate';
import type { EffectRequest } from './ports.ts';
import type { NewEntry } from './vocabulary.ts';

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

/** The acts of a chart as XState implements them: `setup({ actions: verbs<Context, Event, Child, Sent>() })`. */
export function verbs<
  Context extends MachineContext,
  Event extends EventObject,
  Child extends SpawnRequest = never,
  Sent extends Message = never,
>() {
  return {
    // A driver provides its own.
    ask: (_: unknown, _request: EffectRequest | undefined): void => {},
    drop: (_: unknown, _prefix: string): void => {},
    log: (_: unknown, _entries: readonly NewEntry[]): void => {},
    update: assign<Context, Event, Partial<Context>, Event, never>((_, patch) => patch),
    spawn: enqueueActions<Context, Event, readonly Child[], Event, never, never, never, never, never>(
      ({ enqueue }, children) => {
        for (const { src, id, input } of children) enqueue.spawnChild(src as never, { id, input } as never);
      },
    ),
    stop: stopChild<Context, Event, string, Event>((_, id) => id),
    tell: enqueueActions<Context, Event, Sent | undefined, Event, never, never, never, never, never>(
      ({ enqueue, self, event }, message) => {
        if (!message || (message.to === 'parent' && !self._parent && message.event.type === event.type)) return;
        enqueue.sendTo(message.to === 'parent' ? (self._parent ?? self) : message.to, message.event);
      },
    ),
  };
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
