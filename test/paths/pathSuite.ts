/**
 * The generated tests of one chart. Invariant: the paths come from the unchanged chart, and the driver of real
 * conversations runs each. A transition without a path fails the suite.
 */

import { afterAll, describe, expect, it } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import type { Cases } from '../../machines/index.ts';
import { coverPaths } from '../../src/testing/chartPaths/coverPaths.ts';
import { driveSync, type Invariant } from '../../src/testing/chartPaths/drive.ts';
import type { TestPath } from '../../src/testing/chartPaths/testPath.ts';
import { transitionCoverage } from '../../src/testing/transitionCoverage.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { everywhere } from './invariants.ts';

/** Complete contexts are compared. */
const projection = (context: never): unknown => context;

export function pathSuite(
  machine: AnyStateMachine,
  chart: Cases,
  invariantsOf: (input: never) => readonly Invariant[] = () => everywhere,
): void {
  const coverage = transitionCoverage(machine);
  const all = chart.inputs.map((input, index) => [index + 1, input] as const);
  const starts = sampled(all, volume.startOf);
  const covering = new Map<unknown, readonly TestPath[]>();
  const pathsFrom = (input: unknown): readonly TestPath[] => {
    const { cases, projection: parts } = chart;
    const paths = covering.get(input) ?? coverPaths(machine, { input, cases, projection: parts });
    covering.set(input, paths);
    return paths;
  };

  describe(`${machine.id} takes the steps of its pure transitions on every generated path, and never stalls (B24)`, () => {
    it.each(starts)('from start %i', (_, input) => {
      const paths = pathsFrom(input);
      expect(paths.length).toBeGreaterThan(0);
      const invariants = invariantsOf(input as never);
      for (const path of sampled(paths, Math.ceil(paths.length / volume.pathsMost))) {
        const { finalState } = driveSync(machine, path, { input, invariants, projection, inspect: coverage.observe });
        expect(finalState.status).not.toBe('error');
      }
    });

    if (proves)
      it('every transition of the chart was taken', () => {
        const message = `machines/cases/ has no start, or no answer to an effect, that leads to these transitions of ${machine.id}`;
        expect(coverage.missing(), message).toEqual([]);
      });

    afterAll(() => {
      const all = [...covering.values()].flat();
      const steps = all.reduce((sum, path) => sum + path.steps.length, 0);
      console.info(`${machine.id}: ${all.length} paths, ${steps} steps from ${starts.length} starts`);
    });
  });
}
