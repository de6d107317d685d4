/** A correct agent is simulated without a violation. */
import { describe, expect, it } from 'vitest';
import type { SimulationReport } from '../../src/testing/index.ts';
import { sourceSeed } from '../support/sourceSeed.ts';
import { sampled, volume } from '../support/tier.ts';
import { simulate } from './checkedLife.ts';
import { rightAgents } from './rightAgents.ts';

/** Seeds for which a check once reported a false violation of these agents. */
const KNOWN = [95, 157, 1038, 1722];

describe('a right agent of somebody else', () => {
  it.each(sampled(Object.keys(rightAgents), volume.rightAgentOf))('with %s breaks nothing', async (name) => {
    const agent = rightAgents[name] ?? expect.unreachable();
    const seeds = Array.from({ length: volume.rightLives }, (_, index) => sourceSeed() + index);
    const lives: SimulationReport[] = [];
    for (const seed of [...KNOWN, ...seeds]) lives.push(await simulate({ seed, agent }));
    const broken = lives.flatMap(({ seed, violations: [first] }) => (first ? [{ seed, ...first }] : []));
    expect(broken).toEqual([]);
    expect(lives.some(({ reached }) => Object.keys(reached.stops).length > 0)).toBe(true);
  });
});
