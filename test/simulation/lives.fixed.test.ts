/** Simulated lives with fixed seeds, which detect regressions. Another file has the seeds of the sources. */
import { describe, expect, it } from 'vitest';
import { proves } from '../support/tier.ts';
import { Coverage } from './lifeCoverage.ts';
import { batches, brokenBy, INVARIANTS } from './lives.ts';

describe('a life with faults, crashes, cancels and decisions at any step', () => {
  const coverage = new Coverage();
  it.each(batches(1))(`${INVARIANTS}: breaks no invariant, $count seeds from $first on`, async ({ first, count }) => {
    expect(await brokenBy(first, count, coverage)).toEqual([]);
  });

  it('reaches every kind of tool, outcome, decision, stop, entry, crash and fault, over all these seeds', () => {
    expect(coverage.missing(proves)).toEqual([]);
  });
});
