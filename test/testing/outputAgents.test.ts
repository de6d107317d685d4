/** Tests agents with a schema for final answers: replies that fit, replies that violate it, and repairs. */
import { expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, type Plugin } from '../../src/index.ts';
import { type AgentPaths, type AgentPathsOptions, type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { proves } from '../support/tier.ts';
import { Bank } from './sampleAgents.ts';

/** The first tier explores one call a round. */
const bounds: AgentPathsOptions['bounds'] = proves ? {} : { calls: 1, decisions: 1, resumes: 1 };
const report = z.object({
  summary: z.string().min(1),
  euros: z.number().int().min(0),
  kind: z.enum(['rent', 'food']),
  tags: z.array(z.string()).optional(),
});

async function failuresOf({ cases }: AgentPaths): Promise<string[]> {
  const failures: string[] = [];
  for (const path of cases) await path.run().catch((error: Error) => failures.push(`${path.name}\n  ${error.message}`));
  return failures;
}

it('an agent with output passes every case, and its answers miss the schema and are mended', async () => {
  const bank = new Bank();
  const agent = (world: AgentWorld) => createAgent({ tools: bank.tools, output: report, ...world });
  const options = { bounds, outside: bank.outside, examples: { transfer: [{ args: { to: 'a', euros: 900 } }] } };
  const paths = await agentPaths(agent, options);
  expect(await failuresOf(paths)).toEqual([]);
  expect(paths.report().missed).toEqual([]);
  const names = paths.cases.map(({ name }) => name).join('\n');
  expect(names).toMatch(/the model answers without fitting the schema, the model answers: completed/);
  expect(names).toMatch(/(the model answers without fitting the schema(, )?){3}: error/);
});

it.each<[string, z.ZodType]>([
  ['a list', z.array(z.object({ id: z.number() }))],
  ['a choice', z.union([z.object({ ok: z.literal(true) }), z.object({ ok: z.literal(false), why: z.string() })])],
  ['a text', z.string()],
  ['a number that is never reached', z.object({ n: z.number().refine((n) => n > 10 ** 12) })],
])('an agent whose output is %s passes every case', async (_, output) => {
  const agent = (world: AgentWorld) => createAgent({ output, ...world });
  const paths = await agentPaths(agent, { bounds, moves: ['oddReply', 'cancel', 'crash', 'steer'] });
  expect(await failuresOf(paths)).toEqual([]);
  expect(paths.cases.length).toBeGreaterThan(4);
});

it('a plugin that continues a run goes before the check of its answer', async () => {
  const plugin: Plugin = {
    name: 'checks',
    naturalEnd: ({ turn }) => (turn < 2 ? { continue: 'check it again' } : undefined),
  };
  const policies = { limits: { outputRepairs: 1 } };
  const agent = (world: AgentWorld) => createAgent({ output: report, plugins: [plugin], policies, ...world });
  const paths = await agentPaths(agent, { bounds });
  expect(await failuresOf(paths)).toEqual([]);
  const names = paths.cases.map(({ name }) => name);
  expect(names).toContain('the model answers without fitting the schema, the model answers: completed');
});

it.each([1, 3, 8])(
  'a plugin that continues a run %i times leaves the answers of a text schema predictable',
  async (times) => {
    const plugin: Plugin = {
      name: 'checks',
      naturalEnd: ({ turn }) => (turn <= times ? { continue: 'check it again' } : undefined),
    };
    const agent = (world: AgentWorld) => createAgent({ output: z.string().min(3), plugins: [plugin], ...world });
    expect(await failuresOf(await agentPaths(agent, { bounds }))).toEqual([]);
  },
);

it.each([0, 1, 2, 8])(
  'a plugin that continues whatever comes is kept to %i times in a run',
  async (maxStopContinues) => {
    const plugin: Plugin = { name: 'checks', naturalEnd: () => ({ continue: 'check it again' }) };
    const policies = { maxStopContinues };
    const agent = (world: AgentWorld) => createAgent({ plugins: [plugin], policies, ...world });
    const paths = await agentPaths(agent);
    expect(await failuresOf(paths)).toEqual([]);
    expect(paths.report().missed).toEqual([]);
  },
);
