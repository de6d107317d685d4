/** Ended runs release all resources of a process. `npm run bench:memory` measures the heap. */
import { describe, expect, it } from 'vitest';
import { ManyRuns } from '../support/manyRuns.ts';

const nothing = { listeners: 0, timers: 0, actors: 0 };
const remainingResources = ({ listeners, timers, actors }: ManyRuns) => ({ listeners, timers, actors });

describe('B17: finished runs and closed conversations', () => {
  it('finished runs leave no listener on the caller’s signal, no timer and no actor', async () => {
    const runs = new ManyRuns();
    for (let run = 0; run < 40; run++) await runs.finish();
    expect(remainingResources(runs)).toEqual(nothing);
  });

  it('nor do conversations that were closed while they waited for a person', async () => {
    const runs = new ManyRuns();
    for (let run = 0; run < 40; run++) await runs.suspend();
    expect(remainingResources(runs)).toEqual(nothing);
  });

  it('each active run has one listener on the caller’s signal, however many calls it makes', async () => {
    const runs = new ManyRuns();
    const most: number[] = [];
    await Promise.all(Array.from({ length: 10 }, () => runs.finish(() => most.push(runs.listeners))));
    expect(Math.max(...most)).toBe(10);
    expect(most.length).toBe(10);
    expect(remainingResources(runs)).toEqual(nothing);
  });
});
