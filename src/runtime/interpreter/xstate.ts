/**
 * XState as the interpreter: the reference for the compiled plan. Invariant: all conversations share the charts, which are
 * connected once for each process. An act finds its conversation by its actor system.
 */
import { type AnyActorRef, type AnyStateMachine, createActor, createMachine, StateMachine } from 'xstate';
import { type EffectRequest, type NewEntry, verbs } from '../../../machines/internal.ts';
import type { Chart } from '../../../machines/verbs.ts';
import type { Interpreter, RootChart, World } from './interpreter.ts';

/** By actor system: the conversation of the acts of the shared charts. */
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

const machines = new WeakMap<Chart, AnyStateMachine>();
/** The XState machine with the same configuration as the chart. */
export function machineOf(chart: Chart): AnyStateMachine {
  const existing = machines.get(chart);
  if (existing) return existing;
  if (chart instanceof StateMachine) return chart;
  const { guards, actors } = chart.implementations;
  const children = Object.entries(actors).map(([src, child]) => [src, machineOf(child as Chart)]);
  const implementations = { actions: verbs(), guards, actors: Object.fromEntries(children) };
  const machine = createMachine(chart.config as never, implementations as never) as unknown as AnyStateMachine;
  machines.set(chart, machine);
  return machine;
}

const connected = new WeakMap<AnyStateMachine, AnyStateMachine>();
/** The connected machines. */
const charts = new WeakSet<object>();
/** A chart and its children with acts that reach the world. */
function connectedChart(machine: AnyStateMachine): AnyStateMachine {
  const existing = connected.get(machine);
  if (existing) return existing;
  const children = Object.entries(machine.implementations.actors as Record<string, AnyStateMachine>);
  const actors = Object.fromEntries(children.map(([name, child]) => [name, connectedChart(child)]));
  const chart = machine.provide({ actions, actors } as never) as AnyStateMachine;
  connected.set(machine, chart);
  charts.add(chart);
  return chart;
}

/** Whether a chart runs for a conversation, not for an app of its own. */
export const isOfConversation = (machine: object): boolean => charts.has(machine);

export const xstate: Interpreter = ({ machine, input, world, onError, inspect }) => {
  const root = createActor(connectedChart(machineOf(machine)), { input, ...(inspect && { inspect }) }) as AnyActorRef;
  worlds.set(root.system, world);
  root.subscribe({ error: onError });
  return root as RootChart;
};
