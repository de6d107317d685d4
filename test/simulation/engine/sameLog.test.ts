/**
 * The same scenarios in an embedded conversation and in one that a durable engine holds, whose attempts end at any point. Their logs
 * are equal but for times, and for ids that a host makes.
 */
import { describe, expect, it } from 'vitest';
import type { Conversation } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { emptySchema, pglitePool } from '../../support/pglitePool.ts';
import { volume } from '../../support/tier.ts';
import { comparable, embedded, followed, held, ID, OPEN } from './scenarioHosts.ts';
import { SCENARIOS } from './scenarios.ts';
import { SUB_AGENT_SCENARIOS } from './subAgentScenarios.ts';

describe('a scenario has the same log embedded and on a durable engine', () => {
  it.each([...SCENARIOS, ...SUB_AGENT_SCENARIOS].map((scenario) => [scenario.name, scenario] as const))(
    '%s',
    async (_, scenario) => {
      const logs = await embedded(scenario);
      const types = logs.flat().map(({ type }) => type);
      for (const type of scenario.expected) expect(types).toContain(type);
      for (let seed = 0; seed < 6; seed += 1)
        expect([seed, ...comparable(await held(scenario, seed))]).toEqual([seed, ...comparable(logs)]);
    },
  );
});

describe('a scenario has the same log in PostgreSQL, read and asked by another process', () => {
  it.each([...SCENARIOS, ...SUB_AGENT_SCENARIOS].map((scenario) => [scenario.name, scenario] as const))(
    '%s',
    async (_, scenario) => {
      const [own, other] = [1, 2].map(() => postgresStore(pglitePool(), { schema: 'same_log' }));
      if (!own || !other) throw new Error('two stores are needed');
      await own.list();
      await emptySchema('same_log');
      const logs = await followed(scenario, other, async (agentOf) => {
        const agent = agentOf(own);
        let conversation: Conversation = await agent.open(ID, OPEN);
        return {
          restart: async () => {
            await conversation.close();
            conversation = await agent.open(ID, OPEN);
          },
          atRest: () => agent.close(),
          close: () => other.close(),
        };
      });
      await own.close();
      expect(comparable(logs)).toEqual(comparable(await embedded(scenario)));
    },
  );
});

describe('an attempt that ends at any point of a run with sub-agents', () => {
  it.each(
    SUB_AGENT_SCENARIOS.filter(({ deaths }) => deaths !== 0).map((scenario) => [scenario.name, scenario] as const),
  )('leads to the same logs: %s', async (_, scenario) => {
    const logs = comparable(await embedded(scenario));
    let points = 0;
    await held(scenario, 0, { ended: (count) => (points = count) });
    expect(points).toBeGreaterThan(20);
    // The work of one turn may finish in another order, so the number of points differs.
    for (let point = 1; point <= points; point += Math.ceil(points / volume.engineLives))
      expect([point, ...comparable(await held(scenario, 0, { dies: (at) => at === point }))]).toEqual([point, ...logs]);
  });
});
