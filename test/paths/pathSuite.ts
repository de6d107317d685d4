/**
 * The generated tests of one chart. Rule: the paths come from the chart as it is, each is driven through the driver
 * that real conversations run on, and a transition that no path takes fails the suite.
 */

import { afterAll, describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import type { Cases } from '../../machines/index.ts';
import { coverPaths } from '../../src/testing/coverPaths.ts';
import { follow, type Invariant } from '../../src/testing/drive.ts';
import { transitionCoverage } from '../../src/testing/transitionCoverage.ts';
import { everywhere } from './invariants.ts';

export function pathSuite(
  machine: AnyStateMachine,
  chart: Cases,
  invariantsOf: (input: never) => readonly Invariant[] = () => everywhere,
): void {
  const coverage = transitionCoverage(machine);
  const { inputs, cases, projection } = chart;
  let paths = 0;
  let steps = 0;
  describe(`${machine.id} does on every generated path what its pure transitions say`, () => {
    it.each(inputs.map((input, index) => [index + 1, input] as const))('from start %i', (_, input) => {
      const covering = coverPaths(machine, { input, cases, projection });
      expect(covering.length).toBeGreaterThan(0);
      for (const path of covering) {
        const { finalState } = follow(machine, path, {
          input,
          invariants: invariantsOf(input as never),
          projection: (context) => context,
          inspect: coverage.observe,
        });
        expect(finalState.status).not.toBe('error');
        steps += path.steps.length;
      }
      paths += covering.length;
    });

    it('every transition of the chart was taken', () => {
      expect(coverage.missing()).toEqual([]);
    });

    afterAll(() => console.info(`${machine.id}: ${paths} paths, ${steps} steps from ${inputs.length} starts`));
  });
}
