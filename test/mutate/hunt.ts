/**
 * Drives the paths of a chart against its mutants. Rule: a mutant is killed by a state, an outcome or an invariant that
 * is not what the path of the committed chart says; the chart rebuilt with nothing changed is killed by none.
 */
import type { AnyMachineSnapshot, AnyStateMachine, InspectionEvent } from 'xstate';
import type { Cases } from '../../machines/index.ts';
import { coverPaths } from '../../src/testing/coverPaths.ts';
import { type DriveOptions, follow, type Invariant } from '../../src/testing/drive.ts';
import type { TestPath } from '../../src/testing/paths.ts';
import { keyOf } from '../../src/testing/transitionCoverage.ts';
import { rebuilt } from '../support/rebuilt.ts';
import { type Mutant, mutantsOf } from './mutants.ts';

interface Trail {
  path: TestPath;
  options: DriveOptions;
  /** Keys of the definitions it takes, and ids of the states it passes. */
  taken: ReadonlySet<string>;
  passed: ReadonlySet<string>;
}

export interface Hunt {
  chart: string;
  /** Why the chart itself, rebuilt with nothing changed, leaves a path; undefined where it does not. */
  control: string | undefined;
  paths: number;
  mutants: number;
  killed: Record<Mutant['what'], number>;
  /** Killed by a state passed on the way and by nothing a step came to rest in. */
  onTheWay: number;
  survivors: string[];
}

/** What a path meets when it is driven against the committed chart. */
function trailOf(machine: AnyStateMachine, path: TestPath, options: DriveOptions): Trail {
  const taken = new Set<string>();
  const passed = new Set<string>();
  const inspect = (event: InspectionEvent): void => {
    if (event.type !== '@xstate.microstep') return;
    for (const definition of event._transitions) {
      taken.add(keyOf(definition));
      passed.add((definition.source as { id: string }).id);
    }
    for (const { id } of (event.snapshot as AnyMachineSnapshot)._nodes) passed.add(id);
  };
  follow(machine, path, { ...options, inspect });
  return { path, options, taken, passed };
}

function trailsOf(machine: AnyStateMachine, { inputs, cases, projection }: Cases, invariantsOf: InvariantsOf): Trail[] {
  return inputs.flatMap((input) =>
    coverPaths(machine, { input, cases, projection }).map((path) =>
      trailOf(machine, path, { input, projection: (context) => context, invariants: invariantsOf(input as never) }),
    ),
  );
}

/** Why the chart leaves one of the paths; undefined where it does not. */
function leaves(chart: AnyStateMachine, trails: readonly Trail[]): string | undefined {
  for (const { path, options } of trails) {
    try {
      follow(chart, path, options);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
  return undefined;
}

/** The paths on which the mutant can differ: those that take the arrow, or stand where its guard is asked. */
function meeting(trails: readonly Trail[], { what, key, source }: Mutant): readonly Trail[] {
  if (what === 'target') return trails.filter(({ taken }) => taken.has(key));
  if (what === 'guard') return trails.filter(({ passed }) => passed.has(source));
  return trails;
}

export type InvariantsOf = (input: never) => readonly Invariant[];

export function hunt(machine: AnyStateMachine, cases: Cases, invariantsOf: InvariantsOf): Hunt {
  const trails = trailsOf(machine, cases, invariantsOf);
  // Short paths first: they tell most in least time.
  trails.sort((a, b) => a.path.steps.length - b.path.steps.length);
  const result: Hunt = {
    chart: machine.id,
    control: leaves(rebuilt(machine), trails),
    paths: trails.length,
    mutants: 0,
    killed: { guard: 0, target: 0, initial: 0 },
    onTheWay: 0,
    survivors: [],
  };
  for (const mutant of mutantsOf(machine)) {
    result.mutants += 1;
    const cause = leaves(mutant.build(), meeting(trails, mutant));
    if (cause === undefined) result.survivors.push(mutant.name);
    else result.killed[mutant.what] += 1;
    if (cause?.includes(': the way is ')) result.onTheWay += 1;
  }
  return result;
}
