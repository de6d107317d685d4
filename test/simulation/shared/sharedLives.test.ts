/**
 * Lives of two or three processes that serve the same conversations over one database. The sources determine half of the seeds.
 * Invariant: a failure contains the seed, the invariant and the command that repeats the life.
 */
import { describe, expect, it } from 'vitest';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { volume } from '../../support/tier.ts';
import { simulateShared } from './sharedLife.ts';

const half = Math.ceil(volume.sharedLives / 2);

async function brokenBy(first: number): Promise<string[]> {
  const broken: string[] = [];
  for (let seed = first; seed < first + half; seed++) {
    const [violation] = (await simulateShared({ seed })).violations;
    if (!violation) continue;
    const { invariant, detail } = violation;
    broken.push(`seed ${seed} breaks ${invariant}: ${detail} (npm run simulate:shared -- --seed ${seed})`);
  }
  return broken;
}

describe('two or three processes over one database, which die, stop, and lose the database at any step', () => {
  it.each([
    ['fixed seeds', 1],
    ['seeds of the sources', sourceSeed()],
  ])('EPOCH, ONCE, FOLLOW, LOG, REST, I3, I6, I9, I10, I22: break no invariant, %s', async (_, first) => {
    expect(await brokenBy(first)).toEqual([]);
  });

  it('live the same life again from the same tape', async () => {
    const report = await simulateShared({ seed: 5 });
    const again = await simulateShared({ seed: 0, tape: report.tape });
    expect(JSON.stringify(again.logs)).toBe(JSON.stringify(report.logs));
    expect(report.steps).toBeGreaterThan(50);
  });
});
