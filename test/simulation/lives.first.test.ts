/** A thousand simulated lives, seeds from 1 on; the other thousand stand in a file of their own, to run beside these. */
import { describe, expect, it } from 'vitest';
import { batches, brokenBy, INVARIANTS, LIVES_A_TEST } from './lives.ts';

describe('a life with faults, crashes, cancels and decisions at any step', () => {
  it.each(batches(1, 1000))(
    `${INVARIANTS}: breaks no invariant, seeds from %i on`,
    { timeout: 120_000 },
    async (seed) => {
      expect(await brokenBy(seed, LIVES_A_TEST)).toEqual([]);
    },
  );
});
