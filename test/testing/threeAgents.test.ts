/**
 * Three realistic agents, each with most abilities: a schema for final answers, sub-agents, permission rules, hooks,
 * approvals, plugins and policies. Rule: they have no mistake, so no case fails and nothing is missed.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Agent, createAgent, defineTool, type Plugin, subAgents, toolResult } from '../../src/index.ts';
import { hooks, permissions } from '../../src/node.ts';
import { type AgentPathsOptions, type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { proves, sampled, volume } from '../support/tier.ts';

interface Sample {
  name: string;
  agent(world: AgentWorld): Agent;
  options: AgentPathsOptions;
}

/** Books journeys: asks above a price, keeps a list of bookings, and hands searches to sub-agents. */
function travelAgent(): Sample {
  let bookings: { id: string; euros: number }[] = [];
  const book = defineTool({
    name: 'book',
    description: 'Books a journey.',
    idempotent: true,
    parameters: z.object({ id: z.string().regex(/^[a-z0-9-]+$/), euros: z.number().min(1).max(5000) }),
    needsApproval: ({ euros }) => euros >= 250,
    execute: async ({ id, euros }, { sleep, signal }) => {
      await sleep(20);
      signal.throwIfAborted();
      if (!bookings.some((each) => each.id === id)) bookings.push({ id, euros });
      await sleep(20);
      return { booked: id };
    },
  });
  const offers = defineTool({
    name: 'offers',
    description: 'Lists offers.',
    readOnly: true,
    parameters: z.object({ to: z.string().min(1).max(80), timeoutMs: z.number().int().min(1).optional() }),
    execute: async function* ({ to }) {
      yield 'looking';
      return [`a train to ${to}`];
    },
  });
  const output = z.object({ booked: z.array(z.string()), total: z.number().min(0), note: z.string().nullable() });
  return {
    name: 'a travel agent with sub-agents and output',
    agent: (world) =>
      createAgent({
        tools: [book, offers, subAgents({ tools: [offers, book] })],
        output,
        policies: { onRestart: 'resume', limits: { outputRepairs: 1 }, whileSuspended: 'denyAndRun' },
        ...world,
      }),
    options: {
      outside: {
        reset: () => {
          bookings = [];
        },
        state: () => bookings.map((each) => ({ ...each })),
      },
      examples: {
        book: [{ args: { id: 'to-rome', euros: 900 } }],
        spawn_agents: [
          { args: { tasks: [{ id: 'a', task: 'look at offers' }] } },
          { args: { tasks: [{ id: 'a', task: 'book it' }] } },
        ],
      },
      expect: { book: ({ euros }: { euros: number }) => (euros >= 250 ? 'asks' : 'runs') },
    },
  };
}

/** An agent that works in a memory directory under permission rules, with hooks that check its writes. */
function codingAgent(): Sample {
  const files = new Map<string, string>();
  const write = defineTool({
    name: 'Write',
    description: 'Writes a file.',
    idempotent: true,
    parameters: z.object({ file_path: z.string().min(1), content: z.string() }),
    execute: async ({ file_path, content }, { sleep, signal }) => {
      await sleep(5);
      signal.throwIfAborted();
      files.set(file_path, content);
      return `wrote ${file_path}`;
    },
  });
  const bash = defineTool({
    name: 'Bash',
    description: 'Runs a command.',
    parameters: z.object({ command: z.string(), timeoutMs: z.number().int().min(1).max(600_000).optional() }),
    execute: ({ command }) => `ran ${command.length} characters`,
  });
  const audit: Plugin = {
    name: 'audit',
    afterToolExecute: ({ outcome }) => (outcome === 'failed' ? { context: 'read the error first' } : undefined),
    naturalEnd: ({ turn }) => (turn === 1 ? { continue: 'run the tests too' } : undefined),
    runEnd: () => undefined,
  };
  return {
    name: 'a coding agent with rules and hooks',
    agent: (world) =>
      createAgent({
        tools: [write, bash],
        plugins: [
          permissions({ allow: ['Bash(npm test)', 'Bash(git status)'], ask: ['Write'], deny: ['Bash(rm *)'] }),
          hooks({
            PreToolUse: [
              {
                matcher: 'Write',
                run: ({ args }) =>
                  JSON.stringify(args).includes('BEGIN KEY') ? { decision: 'block', reason: 'a key' } : undefined,
              },
            ],
            PostToolUse: [{ run: () => undefined }],
            Stop: [{ run: () => undefined }],
          }),
          audit,
        ],
        policies: { toolRetry: { attempts: 2 }, whileActive: 'steer', toolExecution: 'parallelIfReadOnly' },
        ...world,
      }),
    options: {
      outside: { reset: () => files.clear(), state: () => Object.fromEntries(files) },
      examples: {
        Write: [
          { args: { file_path: 'a.ts', content: 'let a;' } },
          { args: { file_path: 'a.ts', content: 'BEGIN KEY' } },
        ],
        Bash: ['npm test', 'rm -rf build', 'make it'].map((command) => ({ args: { command } })),
      },
    },
  };
}

/** Answers customers: a form that waits for a person, a plugin that gates by amount and rewrites, and a final verdict. */
function supportAgent(): Sample {
  const refunds: { order: number; cents: number }[] = [];
  const refund = defineTool({
    name: 'refund',
    description: 'Pays back.',
    parameters: z.object({ order: z.number().int().min(1), cents: z.number().int().min(0).max(100_000) }),
    execute: async ({ order, cents }, { sleep, signal }) => {
      await sleep(10);
      signal.throwIfAborted();
      refunds.push({ order, cents });
      return { refunded: cents };
    },
  });
  const ask = defineTool({
    name: 'ask_customer',
    description: 'Asks the customer.',
    parameters: z.object({ question: z.string().max(200) }),
    execute: (_, { decision }) =>
      decision
        ? { answer: decision.action === 'answer' ? decision.payload : null }
        : toolResult.pending({ reason: 'form' }),
  });
  const gate: Plugin = {
    name: 'gate',
    required: true,
    beforeToolExecute({ call, decision }) {
      if (call.name !== 'refund') return undefined;
      const { order, cents } = call.args as { order: number; cents: number };
      if (cents > 50_000) return { block: 'more than anybody may pay back' };
      if (cents > 10_000 && !decision) return { suspend: { reason: 'manager' } };
      return cents % 5 === 0 ? undefined : { args: { order, cents: cents - (cents % 5) } };
    },
    stepStart: () => undefined,
  };
  return {
    name: 'a support agent with a form, a gate and output',
    agent: (world) =>
      createAgent({
        tools: [refund, ask],
        plugins: [gate],
        output: z.discriminatedUnion('verdict', [
          z.object({ verdict: z.literal('refunded'), cents: z.number().int().positive() }),
          z.object({ verdict: z.literal('declined'), why: z.string().min(3).max(40) }),
        ]),
        policies: { onToolFailure: 'failRun', onEmptyReply: 'accept' },
        ...world,
      }),
    options: {
      outside: {
        reset: () => void refunds.splice(0),
        state: () => refunds.map((each) => ({ ...each })),
      },
      examples: { refund: [{ args: { order: 7, cents: 20_000 } }] },
      expect: {
        refund: ({ cents }: { cents: number }) => (cents > 50_000 ? 'blocked' : cents > 10_000 ? 'asks' : 'runs'),
      },
    },
  };
}

const bounds: AgentPathsOptions['bounds'] = proves ? {} : { calls: 1, decisions: 1, resumes: 1 };

describe('an agent with most of what there is, and no mistake', () => {
  const agents = sampled([travelAgent(), codingAgent(), supportAgent()], volume.rightAgentOf);
  it.each(agents.map((sample) => [sample.name, sample] as const))(
    '%s has no failing case',
    async (name, { agent, options }) => {
      const begun = process.cpuUsage();
      const paths = await agentPaths(agent, { ...options, bounds });
      const { user, system } = process.cpuUsage(begun);
      const failures: string[] = [];
      for (const path of paths.cases)
        await path.run().catch((error: Error) => failures.push(`${path.name}\n  ${error.message}`));
      if (process.env.FIGURES) {
        const seconds = ((user + system) / 1e6).toFixed(1);
        console.info(
          `${name}: ${paths.cases.length} cases, generated in ${seconds} s of CPU, ${failures.length} failed`,
        );
      }
      expect(failures).toEqual([]);
      expect(paths.report().missed).toEqual([]);
    },
  );
});
