/**
 * The generated tests of a chart's invariants on every edge, and of its committed digest. Invariant: every edge is
 * checked after the shortest path to it, and each clause is a separate test.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sampled } from '../support/tier.ts';
import { digestOf, startLine, stepsOf } from './chartDigest.ts';
import type { Judged } from './charts.ts';
import { type ChartInvariant, stepsInWords, type Trace, tracesOf } from './edgeTrace.ts';

/** The number of failing steps that a clause reports. */
const SHOWN = 5;

/** Returns the steps that break an invariant. */
function broken({ holds }: ChartInvariant, traces: readonly Trace[]): string[] {
  const failures: string[] = [];
  for (const trace of traces) {
    try {
      holds(trace);
    } catch (error) {
      failures.push(`${error instanceof Error ? error.message : error}: ${stepsInWords(trace)}`);
      if (failures.length === SHOWN) break;
    }
  }
  return failures;
}

/** Selects one of `startOf` starts. The sources determine which. */
export function stateSuite({ machine, cases, invariants }: Judged, startOf = 1): void {
  const taken = sampled([...cases.inputs.entries()], startOf);
  let starts: readonly (readonly Trace[])[] | undefined;
  const explored = (): readonly (readonly Trace[])[] => {
    starts ??= taken.map(([, input]) => [...tracesOf(machine, cases, input)]);
    return starts;
  };

  describe(`${machine.id} on every edge, after the shortest path to it`, () => {
    it.each(invariants.map((invariant) => [invariant.says, invariant] as const))('%s', (_, invariant) => {
      const traces = explored().flat();
      expect(traces.length).toBeGreaterThan(taken.length);
      expect(broken(invariant, traces)).toEqual([]);
    });

    const file = join(import.meta.dirname, 'digests', `${machine.id}.txt`);
    const message = `${machine.id} does other steps than recorded; if you changed it on purpose, \`npm run record\` records them`;
    it.runIf(startOf === 1)('has the steps of its committed digest (-u writes a new one)', async () => {
      await expect(digestOf(machine.id, explored()), message).toMatchFileSnapshot(file);
    });

    it.runIf(startOf > 1)('has from each selected start the steps of its committed digest', () => {
      const words = (line: string): string => line.replace(/ +/g, ' ');
      const committed = readFileSync(file, 'utf8').split('\n').map(words);
      const done = explored().map((traces, at) => words(startLine(taken[at]?.[0] ?? 0, stepsOf(traces))));
      expect(
        done.filter((line) => !committed.includes(line)),
        message,
      ).toEqual([]);
    });
  });
}
