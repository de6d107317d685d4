/**
 * Simulated lives whose seeds depend on the sources. A change of the sources tries new lives, and nothing else does.
 */
import { describe, expect, it } from 'vitest';
import { sourceSeed } from '../support/sourceSeed.ts';
import { batches, brokenBy, INVARIANTS } from './lives.ts';

describe('a life with faults, crashes, cancels and decisions at any step', () => {
  it.each(batches(sourceSeed()))(
    `${INVARIANTS}: breaks no invariant, $count seeds from $first on`,
    async ({ first, count }) => {
      expect(await brokenBy(first, count)).toEqual([]);
    },
  );
});
