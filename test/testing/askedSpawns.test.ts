/** Spawn calls that are asked about, and whose sub-agents ask in their turn: first the call itself waits, then a call within it. */
import { expect, it } from 'vitest';
import { createAgent, subAgents } from '../../src/index.ts';
import { permissions } from '../../src/node.ts';
import { type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { proves } from '../support/tier.ts';
import { Bank } from './sampleAgents.ts';

const bounds = proves ? {} : { calls: 1, decisions: 2, resumes: 2 };

it('a spawn call that waits for its own approval and then for one within it fails no case', async () => {
  const bank = new Bank();
  const agent = (world: AgentWorld) =>
    createAgent({
      tools: [subAgents({ tools: bank.tools })],
      plugins: [permissions({ allow: bank.tools.map(({ name }) => name), ask: ['spawn_agents'] })],
      ...world,
    });
  const examples = {
    spawn_agents: [{ args: { tasks: [{ id: 'a', task: 'use transfer' }] } }],
    transfer: [{ args: { to: 'landlord', euros: 900 } }],
  };
  const paths = await agentPaths(agent, { bounds, examples, outside: bank.outside });
  const failures: string[] = [];
  for (const path of paths.cases)
    await path.run().catch((error: Error) => failures.push(`${path.name}\n  ${error.message}`));
  expect(failures).toEqual([]);
  expect(paths.report().missed).toEqual([]);
  expect(paths.cases.some(({ name }) => /(spawn_agents is approved.*){2}: completed$/.test(name))).toBe(true);
});
