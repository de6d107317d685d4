/** Simulated lives whose seeds stay: what held yesterday holds today. Those of the commit stand beside these. */
import { describe, expect, it } from 'vitest';
import { batches, brokenBy, INVARIANTS } from './lives.ts';

describe('a life with faults, crashes, cancels and decisions at any step', () => {
  it.each(batches(1))(`${INVARIANTS}: breaks no invariant, $count seeds from $first on`, async ({ first, count }) => {
    expect(await brokenBy(first, count)).toEqual([]);
  });
});
