/**
 * Simulated lives for tests. Invariant: a failure contains the seed, the invariant and the command that repeats the
 * life.
 */
import { volume } from '../support/tier.ts';
import { simulateEquipped } from './equipment/index.ts';
import type { Coverage } from './lifeCoverage.ts';

/** The invariants of every life. */
export const INVARIANTS =
  'INV-1 to INV-4, INV-9, I1 to I4, I6, I7, I9, I10, I12 to I20, I22 to I24, I26 to I29, I31, I32, I34, I38, I40';

/** Returns the violations in the lives of these seeds. */
export async function brokenBy(first: number, count: number, coverage?: Coverage): Promise<string[]> {
  const broken: string[] = [];
  for (let seed = first; seed < first + count; seed++) {
    const report = await simulateEquipped({ seed });
    coverage?.add(report);
    const [violation] = report.violations;
    if (!violation) continue;
    const { invariant, detail } = violation;
    broken.push(`seed ${seed} breaks ${invariant}: ${detail} (npm run simulate -- --seed ${seed})`);
  }
  return broken;
}

/** The number of lives in one test. A failure then identifies its seeds early. */
const LIVES_A_TEST = 100;
/** Returns half of the lives of this tier, with seeds from `first` on. */
export function batches(first: number): { first: number; count: number }[] {
  const half = volume.lives / 2;
  return Array.from({ length: Math.ceil(half / LIVES_A_TEST) }, (_, index) => {
    const done = index * LIVES_A_TEST;
    return { first: first + done, count: Math.min(LIVES_A_TEST, half - done) };
  });
}
