/**
 * The generated tests of what a chart's states must and must not do, and of its committed digest. Rule: every edge is
 * looked at, behind the shortest way to it; each clause is a test of its own.
 */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Judged } from './charts.ts';
import { digestOf } from './digest.ts';
import { type ChartInvariant, type Trace, told, tracesOf } from './trace.ts';

/** How many steps of a clause that does not hold are shown. */
const SHOWN = 5;

/** The steps on which an invariant does not hold. */
function broken({ holds }: ChartInvariant, traces: readonly Trace[]): string[] {
  const found: string[] = [];
  for (const trace of traces) {
    try {
      holds(trace);
    } catch (error) {
      found.push(`${error instanceof Error ? error.message : error}: ${told(trace)}`);
      if (found.length === SHOWN) break;
    }
  }
  return found;
}

export function stateSuite({ machine, cases, invariants }: Judged): void {
  let starts: readonly (readonly Trace[])[] | undefined;
  const explored = (): readonly (readonly Trace[])[] => {
    starts ??= cases.inputs.map((input) => [...tracesOf(machine, cases, input)]);
    return starts;
  };

  describe(`${machine.id} on every edge, behind the shortest way to it`, () => {
    it.each(invariants.map((invariant) => [invariant.says, invariant] as const))('%s', (_, invariant) => {
      const traces = explored().flat();
      expect(traces.length).toBeGreaterThan(cases.inputs.length);
      expect(broken(invariant, traces)).toEqual([]);
    });

    it('does what its committed digest says (-u writes what it does now)', async () => {
      const file = join(import.meta.dirname, 'digests', `${machine.id}.txt`);
      await expect(digestOf(machine.id, explored())).toMatchFileSnapshot(file);
    });
  });
}
