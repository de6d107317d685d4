/** Simulated lives whose seeds come from the commit: each commit tries something new, and tries it again when asked. */
import { describe, expect, it } from 'vitest';
import { commitSeed } from '../support/tier.ts';
import { batches, brokenBy, INVARIANTS } from './lives.ts';

describe('a life with faults, crashes, cancels and decisions at any step', () => {
  it.each(batches(commitSeed()))(
    `${INVARIANTS}: breaks no invariant, $count seeds from $first on`,
    async ({ first, count }) => {
      expect(await brokenBy(first, count)).toEqual([]);
    },
  );
});
