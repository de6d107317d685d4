/**
 * Random lives on failing stores: INV-1, INV-2, INV-3 and INV-5 on the durable log. `STORE_LIVES=first:count` runs
 * other seeds, or one seed if `count` is absent.
 */
import { beforeAll, expect, it } from 'vitest';
import { everyPart } from '../../src/onDemand.ts';
import { story } from '../support/agentBench.ts';
import { faultsOfSeed } from '../support/storeLife.ts';
import { volume } from '../support/tier.ts';

const [first = 1, count = 1] = (process.env.STORE_LIVES ?? `1:${volume.storeLives}`).split(':').map(Number);

// Time is virtual, so no file may be loaded meanwhile.
beforeAll(everyPart);

it('INV-1, INV-2, INV-3, INV-5: on every store, calls have one result, cycles have one stop, and no confirmed act is lost', async () => {
  const failed: string[] = [];
  for (let seed = first; seed < first + count; seed++) {
    const { faults, log } = await faultsOfSeed(seed);
    if (faults.length === 0) continue;
    const line = `STORE_LIVES=${seed} npx vitest run test/scenarios/storeLives.test.ts`;
    failed.push([line, ...new Set(faults), ...(count === 1 ? story(log) : [])].join('\n  '));
  }
  expect(failed, `${failed.length} of ${count} seeds`).toEqual([]);
});
