/**
 * The mutants of a chart: the same chart without one guard, with one arrow or initial state at a sibling, without one
 * action, or with two adjacent actions exchanged. Invariant: each is rebuilt from the chart's own configuration and
 * implementations, with nothing else changed.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { listsOf, nodesOf } from '../../src/diagrams/chartNodes.ts';
import { listAt, type Part, type Place, placeOfList, placeOfState, rebuilt } from '../support/rebuildChart.ts';

type Node = AnyStateMachine['root'];

export interface Mutant {
  readonly name: string;
  readonly what: 'guard' | 'target' | 'initial' | 'action';
  /** Id of the state with the change. */
  readonly source: string;
  build(): AnyStateMachine;
}

const siblings = (node: Node): Node[] =>
  Object.values((node.parent?.states ?? {}) as Record<string, Node>).filter((other) => other !== node);
const listOf = (value: unknown): readonly unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

/** `decide`, `log resultEntries`, or the kind of the action. */
function nameOfAction(action: unknown): string {
  if (typeof action === 'string') return action;
  const { type, params, name } = action as { type?: string; params?: { name?: string }; name?: string };
  const of = typeof params === 'function' && params.name !== 'params' ? ` ${params.name}` : '';
  return `${type ?? name ?? 'action'}${of}`;
}

/** The lists that one mistake can make of a list of actions. */
function* mistakesIn(actions: readonly unknown[]): Generator<[what: string, actions: readonly unknown[]]> {
  for (const [index, action] of actions.entries()) {
    yield [`without ${nameOfAction(action)} (${index + 1})`, actions.filter((_, at) => at !== index)];
    const next = actions[index + 1];
    if (next === undefined) continue;
    const swapped = [...actions.slice(0, index), next, action, ...actions.slice(index + 2)];
    yield [`with ${nameOfAction(next)} before ${nameOfAction(action)} (${index + 1})`, swapped];
  }
}

function* ofDefinition(
  machine: AnyStateMachine,
  node: Node,
  event: string,
  index: number,
  own: AnyTransitionDefinition,
): Generator<Mutant> {
  const place = placeOfList(node, event);
  const list = listAt(machine, place);
  const changed = (edit: (part: Part) => Part) => (): AnyStateMachine =>
    rebuilt(machine, place, () => list.map((part, at) => (at === index ? edit(part) : part)));
  const arrow = `${node.id} on ${event || 'entry'} [${typeof own.guard === 'string' ? own.guard : 'else'}]`;
  const source = node.id;
  if (own.guard !== undefined) {
    const build = changed(({ guard: _, ...rest }) => rest);
    yield { source, what: 'guard', name: `${arrow} without its guard`, build };
  }
  const [target] = (own.target ?? []) as readonly Node[];
  for (const other of target ? siblings(target) : []) {
    const build = changed((part) => ({ ...part, target: `#${other.id}` }));
    yield { source, what: 'target', name: `${arrow} leads to ${other.id}, not ${target?.id}`, build };
  }
  for (const [what, actions] of mistakesIn(listOf(list[index]?.actions))) {
    yield { source, what: 'action', name: `${arrow} ${what}`, build: changed((part) => ({ ...part, actions })) };
  }
}

function* ofState(machine: AnyStateMachine, node: Node): Generator<Mutant> {
  const place = placeOfState(node);
  const source = node.id;
  const [first] = (Object.keys(node.states).length > 0 ? node.initial.target : []) as readonly Node[];
  for (const other of first ? siblings(first) : []) {
    const build = (): AnyStateMachine => rebuilt(machine, place, (part) => ({ ...(part as Part), initial: other.key }));
    yield { name: `${node.id} begins in ${other.id}, not ${first?.id}`, what: 'initial', source, build };
  }
  for (const side of ['entry', 'exit'] as const) {
    for (const [what, actions] of mistakesIn(listOf(partAt(machine, place)[side]))) {
      const build = (): AnyStateMachine => rebuilt(machine, place, (part) => ({ ...(part as Part), [side]: actions }));
      yield { name: `${node.id} ${side} ${what}`, what: 'action', source, build };
    }
  }
}

const partAt = (machine: AnyStateMachine, place: Place): Part =>
  place.reduce<unknown>((part, key) => (part as Part)[key], machine.config) as Part;

export function* chartMutants(machine: AnyStateMachine): Generator<Mutant> {
  for (const node of nodesOf(machine.root)) {
    yield* ofState(machine, node);
    for (const [event, list] of listsOf(node)) {
      for (const [index, own] of list.entries()) yield* ofDefinition(machine, node, event, index, own);
    }
  }
}
