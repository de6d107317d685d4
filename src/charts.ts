/**
 * The charts with their three actions connected. Rule: charts are shared by all conversations and built once a process;
 * an action finds its conversation by the actor system that it runs in.
 */
import type { AnyActorRef, AnyStateMachine } from 'xstate';
import type { EffectRequest, NewEntry } from '../machines/index.ts';

export interface Port {
  ask(asker: AnyActorRef, request: EffectRequest): void;
  drop(prefix: string): void;
  log(entries: readonly NewEntry[]): void;
}
/** By actor system: how the actions of the shared charts find their conversation. */
const ports = new WeakMap<object, Port>();

type ActionArgs = { self: AnyActorRef; system: object };
const actions = {
  ask: ({ self, system }: ActionArgs, request: EffectRequest | undefined): void => {
    if (request) ports.get(system)?.ask(self, request);
  },
  drop: ({ system }: ActionArgs, prefix: string): void => ports.get(system)?.drop(prefix),
  log: ({ system }: ActionArgs, entries: readonly NewEntry[]): void => {
    if (entries.length > 0) ports.get(system)?.log(entries);
  },
};

/** A chart and its children with the three actions of the driver. Once a process for each chart: it rebuilds them. */
export function bound<M extends AnyStateMachine>(machine: M): M {
  const children = Object.entries(machine.implementations.actors as Record<string, AnyStateMachine>);
  const actors = Object.fromEntries(children.map(([name, child]) => [name, bound(child)]));
  return machine.provide({ actions, actors } as never) as M;
}

/** Connects an actor system to its conversation. */
export const connect = (system: object, port: Port): void => void ports.set(system, port);
