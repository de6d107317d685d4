/**
 * The mutants of a chart: the same chart with one guard gone, or with one arrow leading to a sibling of where it led.
 * Rule: each is rebuilt from the chart's own configuration and implementations, with nothing else changed.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from 'xstate';
import { keyOf, listsOf, nodesOf } from '../../src/testing/transitionCoverage.ts';
import { listAt, type Part, placeOfList, placeOfState, rebuilt } from '../support/rebuilt.ts';

type Node = AnyStateMachine['root'];

export interface Mutant {
  readonly name: string;
  readonly what: 'guard' | 'target' | 'initial';
  /** Id of the state that holds the changed arrow. */
  readonly source: string;
  /** Key of the changed definition; empty for an initial arrow. */
  readonly key: string;
  build(): AnyStateMachine;
}

const siblings = (node: Node): Node[] =>
  Object.values((node.parent?.states ?? {}) as Record<string, Node>).filter((other) => other !== node);

function* ofDefinition(
  machine: AnyStateMachine,
  node: Node,
  event: string,
  index: number,
  own: AnyTransitionDefinition,
) {
  const place = placeOfList(node, event);
  const list = listAt(machine, place);
  const changed = (edit: (part: Part) => Part) => (): AnyStateMachine =>
    rebuilt(machine, place, () => list.map((part, at) => (at === index ? edit(part) : part)));
  const arrow = `${node.id} on ${event || 'entry'} [${typeof own.guard === 'string' ? own.guard : 'else'}]`;
  const shared = { source: node.id, key: keyOf(own) };
  if (own.guard !== undefined) {
    const build = changed(({ guard: _, ...rest }) => rest);
    yield { ...shared, what: 'guard', name: `${arrow} without its guard`, build } satisfies Mutant;
  }
  const [target] = (own.target ?? []) as readonly Node[];
  for (const other of target ? siblings(target) : []) {
    const build = changed((part) => ({ ...part, target: `#${other.id}` }));
    yield {
      ...shared,
      what: 'target',
      name: `${arrow} leads to ${other.id}, not ${target?.id}`,
      build,
    } satisfies Mutant;
  }
}

function* ofInitial(machine: AnyStateMachine, node: Node): Generator<Mutant> {
  const [first] = (Object.keys(node.states).length > 0 ? node.initial.target : []) as readonly Node[];
  for (const other of first ? siblings(first) : []) {
    const build = (): AnyStateMachine =>
      rebuilt(machine, placeOfState(node), (part) => ({ ...(part as Part), initial: other.key }));
    const name = `${node.id} begins in ${other.id}, not ${first?.id}`;
    yield { name, what: 'initial', source: node.id, key: '', build };
  }
}

export function* mutantsOf(machine: AnyStateMachine): Generator<Mutant> {
  for (const node of nodesOf(machine.root)) {
    yield* ofInitial(machine, node);
    for (const [event, list] of listsOf(node)) {
      for (const [index, own] of list.entries()) yield* ofDefinition(machine, node, event, index, own);
    }
  }
}
