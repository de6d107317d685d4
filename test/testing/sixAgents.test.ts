/**
 * Six kinds of agents without a mistake: every case of every cover passes, and nothing that they can take is missed.
 * `FIGURES=1 PROVE=1 npx vitest run test/testing/sixAgents.test.ts` prints the figures of each.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Agent, createAgent, defineTool, type Plugin, subAgents } from '../../src/index.ts';
import { hooks, permissions } from '../../src/node.ts';
import { type AgentPathsOptions, type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { Bank } from './sampleAgents.ts';

interface Sample {
  name: string;
  agent(world: AgentWorld): Agent;
  options: AgentPathsOptions;
}
const bank = new Bank();
const plain = (name: string, changes: object = {}) =>
  defineTool({
    name,
    description: name,
    parameters: z.object({ text: z.string().max(100), depth: z.number().int().min(1).max(9).optional() }),
    execute: ({ text }) => text.length,
    ...changes,
  });
const shell = defineTool({
  name: 'Bash',
  description: 'Runs a command.',
  parameters: z.object({ command: z.string() }),
  execute: ({ command }) => `ran ${command}`,
});
const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  parameters: z.object({ environment: z.enum(['test', 'staging', 'production']) }),
  execute: ({ environment }) => environment,
});
const gate: Plugin = {
  name: 'gate',
  beforeToolExecute({ call, decision }) {
    const { environment } = call.args as { environment: string };
    if (environment === 'production') return { block: 'not from here' };
    return environment === 'staging' && !decision ? { suspend: { reason: 'window' } } : undefined;
  },
  runEnd: () => undefined,
};
const worker = { tools: [bank.transfer, bank.balance] };

const SAMPLES: readonly Sample[] = [
  {
    name: 'read-only',
    agent: (world) => createAgent({ tools: [bank.balance, plain('search', { readOnly: true })], ...world }),
    options: {},
  },
  {
    name: 'approvals',
    agent: bank.agent(),
    options: { outside: bank.outside, examples: { transfer: [{ args: { to: 'landlord', euros: 900 } }] } },
  },
  { name: 'plugin gate', agent: (world) => createAgent({ tools: [deploy], plugins: [gate], ...world }), options: {} },
  {
    name: 'sub-agents, with a call that waits inside',
    agent: (world) => createAgent({ tools: [subAgents(worker)], ...world }),
    options: {
      examples: {
        spawn_agents: [
          { args: { tasks: [{ id: 'a', task: 'sum up' }] } },
          { args: { tasks: [{ id: 'a', task: 'use transfer' }] } },
          {
            args: {
              tasks: [
                { id: 'a', task: 'use balance' },
                { id: 'b', task: 'sum up' },
              ],
            },
          },
        ],
        transfer: [{ args: { to: 'landlord', euros: 900 } }],
      },
    },
  },
  {
    name: 'hooks and permission rules',
    agent: (world) =>
      createAgent({
        tools: [shell],
        plugins: [
          permissions({ allow: ['Bash(npm test)'], deny: ['Bash(rm *)'] }),
          hooks({
            PreToolUse: [
              {
                run: ({ args }) =>
                  JSON.stringify(args).includes('secret') ? { decision: 'block', reason: 'no' } : undefined,
              },
            ],
          }),
        ],
        ...world,
      }),
    options: {
      examples: {
        Bash: ['npm test', 'rm -rf build', 'make it', 'cat secret'].map((command) => ({ args: { command } })),
      },
    },
  },
  {
    name: '50 tools',
    agent: (world) =>
      createAgent({
        tools: Array.from({ length: 50 }, (_, index) =>
          plain(`tool${index}`, index % 3 === 0 ? { needsApproval: true } : {}),
        ),
        ...world,
      }),
    options: {},
  },
];

const COVERS = proves ? (['transitions', 'pairs'] as const) : (['transitions'] as const);
const bounds = proves ? {} : { calls: 1, decisions: 1, resumes: 1 };
const tried = proves
  ? sampled(SAMPLES, volume.rightAgentOf)
  : SAMPLES.filter(({ name }) => name.startsWith('sub-agents'));

describe('an agent without a mistake', () => {
  it.each(tried.flatMap((sample) => COVERS.map((cover) => [sample.name, cover, sample] as const)))(
    '%s: %s',
    async (name, cover, { agent, options }) => {
      const begun = performance.now();
      const paths = await agentPaths(agent, { ...options, bounds, cover });
      const generated = performance.now();
      const failures: string[] = [];
      for (const path of paths.cases)
        await path.run().catch((error: Error) => failures.push(`${path.name}\n  ${error.message}`));
      const ran = performance.now();
      const { taken, missed, outOfReach, notTried } = paths.report();
      if (process.env.FIGURES) {
        const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
        console.info(
          `${name}, ${cover}: ${paths.cases.length} cases, generated in ${seconds(generated - begun)}, ran in ${seconds(ran - generated)}; ` +
            `${taken.length} taken, ${missed.length} missed, ${outOfReach.length} out of reach, ${notTried.length} not tried; ${paths.verdicts.length} verdicts, ${failures.length} failures`,
        );
      }
      expect(failures).toEqual([]);
      expect(missed).toEqual([]);
    },
  );
});
