/**
 * The mutants of a chart: the same chart with one guard gone, or with one arrow leading to a sibling of where it led.
 * Rule: each is rebuilt from the chart's own configuration and implementations, with nothing else changed.
 */
import { type AnyStateMachine, type AnyTransitionDefinition, createMachine } from 'xstate';
import { keyOf, listsOf, nodesOf } from '../../src/testing/transitionCoverage.ts';

type Node = AnyStateMachine['root'];
type Config = { [key: string]: unknown };

export interface Mutant {
  readonly name: string;
  readonly what: 'guard' | 'target' | 'initial';
  /** Id of the state that holds the changed arrow. */
  readonly source: string;
  /** Key of the changed definition; empty for an initial arrow. */
  readonly key: string;
  build(): AnyStateMachine;
}

/** An endless chain of arrows is an error, not a hang. */
const MICROSTEPS_MAX = 200;

/** The configuration with the part at `path` replaced; what is not on the path is shared. */
function edited(config: unknown, path: readonly (string | number)[], edit: (part: Config) => Config): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return edit(config as Config);
  const copy = Array.isArray(config) ? [...config] : { ...(config as Config) };
  const parts = copy as Record<string | number, unknown>;
  parts[key] = edited(parts[key], rest, edit);
  return copy;
}

function rebuilt(machine: AnyStateMachine, path: readonly (string | number)[], edit: (part: Config) => Config) {
  const config = edited(machine.config, path, edit) as Config;
  const options = { maxIterations: MICROSTEPS_MAX };
  return createMachine({ ...config, options } as never, machine.implementations as never) as AnyStateMachine;
}

const pathOf = (node: Node): string[] => node.path.flatMap((key) => ['states', key]);

/** Where a definition stands in the configuration: a single one may stand without a list. */
function placeOf(machine: AnyStateMachine, node: Node, event: string, index: number): (string | number)[] {
  const place = [...pathOf(node), ...(event === '' ? ['always'] : ['on', event])];
  const found = place.reduce<unknown>((part, key) => (part as Config)[key], machine.config);
  return Array.isArray(found) ? [...place, index] : place;
}

const asObject = (part: unknown): Config => (typeof part === 'string' ? { target: part } : (part as Config));
const siblings = (node: Node): Node[] =>
  Object.values((node.parent?.states ?? {}) as Record<string, Node>).filter((other) => other !== node);

function* ofDefinition(
  machine: AnyStateMachine,
  node: Node,
  event: string,
  index: number,
  own: AnyTransitionDefinition,
) {
  const place = placeOf(machine, node, event, index);
  const arrow = `${node.id} on ${event || 'entry'} [${typeof own.guard === 'string' ? own.guard : 'else'}]`;
  const shared = { source: node.id, key: keyOf(own) };
  if (own.guard !== undefined) {
    const build = (): AnyStateMachine =>
      rebuilt(machine, place, (part) => {
        const { guard: _, ...rest } = asObject(part);
        return rest;
      });
    yield { ...shared, what: 'guard', name: `${arrow} without its guard`, build } satisfies Mutant;
  }
  const [target] = (own.target ?? []) as readonly Node[];
  for (const other of target ? siblings(target) : []) {
    const build = (): AnyStateMachine =>
      rebuilt(machine, place, (part) => ({ ...asObject(part), target: `#${other.id}` }));
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
    const build = (): AnyStateMachine => rebuilt(machine, pathOf(node), (part) => ({ ...part, initial: other.key }));
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
