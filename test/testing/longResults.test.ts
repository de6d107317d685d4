/** Generated cases of an agent whose tool returns long results, up to most of the context window. */
import { expect, it } from 'vitest';
import { agentPaths } from '../../src/testing/index.ts';
import { defect, searching } from './defectiveAgent.ts';

it.each([1_000, 90_000, 130_000, 200_000, 260_000, 300_000])(
  'an agent whose tool returns %s characters has cases, and fails only where a result is cut',
  async (characters) => {
    const { agent, options } = defect('long', 'schema', searching({ execute: () => 'x'.repeat(characters) })).make();
    const { cases } = await agentPaths(agent, options);
    expect(cases.length).toBeGreaterThan(10);
    const failures: string[] = [];
    for (const path of cases) await path.run().catch((error: Error) => failures.push(error.message));
    const others = failures.filter((each) => characters < 262_144 || !each.includes('its result was cut'));
    expect(others).toEqual([]);
  },
);
