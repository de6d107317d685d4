/**
 * XState as the interpreter: the reference that the compiled plan is compared with. Rule: charts are shared by all
 * conversations and connected once a process; an act finds its conversation by the actor system that it runs in.
 */
import { type AnyActorRef, type AnyStateMachine, createActor } from 'xstate';
import type { EffectRequest, NewEntry } from '../../../machines/internal.ts';
import type { Interpreter, RootChart, World } from './interpreter.ts';

/** By actor system: how the acts of the shared charts find their conversation. */
const worlds = new WeakMap<object, World>();

type ActionArgs = { self: AnyActorRef; system: object };
const actions = {
  ask: ({ self, system }: ActionArgs, request: EffectRequest | undefined): void => {
    if (request) worlds.get(system)?.ask(self, request);
  },
  drop: ({ system }: ActionArgs, prefix: string): void => worlds.get(system)?.drop(prefix),
  log: ({ system }: ActionArgs, entries: readonly NewEntry[]): void => {
    if (entries.length > 0) worlds.get(system)?.log(entries);
  },
};

const connected = new WeakMap<AnyStateMachine, AnyStateMachine>();
/** A chart and its children with acts that reach the world. */
function connectedChart(machine: AnyStateMachine): AnyStateMachine {
  const known = connected.get(machine);
  if (known) return known;
  const children = Object.entries(machine.implementations.actors as Record<string, AnyStateMachine>);
  const actors = Object.fromEntries(children.map(([name, child]) => [name, connectedChart(child)]));
  const chart = machine.provide({ actions, actors } as never) as AnyStateMachine;
  connected.set(machine, chart);
  return chart;
}

export const xstate: Interpreter = ({ machine, input, world, onError, inspect }) => {
  const root = createActor(connectedChart(machine), { input, ...(inspect && { inspect }) }) as AnyActorRef;
  worlds.set(root.system, world);
  root.subscribe({ error: onError });
  return root as RootChart;
};
