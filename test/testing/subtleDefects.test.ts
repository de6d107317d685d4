/**
 * Mistakes that are visible only after an edit, a crash, a cancel or the end. Each is found, and the correct agent
 * passes.
 */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Agent, createAgent, defineTool, type Plugin, type Tool } from '../../src/index.ts';
import { type AgentPaths, type AgentPathsOptions, type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { sampled, volume } from '../support/tier.ts';
import { Ledger, wait } from './defectiveAgent.ts';

interface Pair {
  name: string;
  /** The agent, with the mistake or without it. */
  agent(world: AgentWorld, ledger: Ledger, mistake: boolean): Agent;
  options?: AgentPathsOptions;
  found: RegExp;
}

const act = (changes: object): Tool =>
  defineTool({
    name: 'act',
    description: 'Acts.',
    parameters: z.object({}),
    execute: () => 'done',
    ...changes,
  } as never);
const plugin = (hooks: Omit<Plugin, 'name'>): Plugin => ({ name: 'audit', ...hooks });
const only = (hooks: Omit<Plugin, 'name'>, mistake: boolean): readonly Plugin[] => (mistake ? [plugin(hooks)] : []);

const deploy = (ledger: Ledger): Tool =>
  defineTool({
    name: 'deploy',
    description: 'Deploys.',
    parameters: z.object({ environment: z.enum(['staging', 'test', 'production']) }),
    needsApproval: ({ environment }) => environment === 'staging',
    execute: ({ environment }) => ledger.add(environment),
  });

const PAIRS: readonly Pair[] = [
  {
    name: 'a check that a decision switches off, and an edit gets around',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [deploy(ledger)],
        plugins: [
          plugin({
            beforeToolExecute({ call, decision }) {
              if (mistake && decision) return undefined;
              const { environment } = call.args as { environment: string };
              return environment === 'production' ? { block: 'not from here' } : undefined;
            },
          }),
        ],
        ...world,
      }),
    found: /^edit: deploy ran with what a person put in place of its arguments, and .* blocked$/m,
  },
  {
    name: 'an idempotent tool that acts before it waits, and is cut off',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [
          act({
            idempotent: true,
            execute: async (_: unknown, context: { sleep(ms: number): Promise<void> }) => {
              const isDone = ledger.entries.length > 0;
              if (mistake || !isDone) ledger.add('act');
              await context.sleep(10);
            },
          }),
        ],
        ...world,
      }),
    found: /^idempotent: act ran twice under one key/m,
  },
  {
    name: 'an idempotent tool that acts between two waits, and whose process dies before its result is stored',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [
          act({
            idempotent: true,
            execute: async (_: unknown, context: { sleep(ms: number): Promise<void> }) => {
              await context.sleep(10);
              if (mistake || ledger.entries.length === 0) ledger.add('act');
              await context.sleep(10);
            },
          }),
        ],
        ...world,
      }),
    found: /^idempotent: act ran twice under one key/m,
  },
  {
    name: 'a write after a cancel in a tool that needs approval',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [
          act({
            needsApproval: true,
            execute: async (_: unknown, { signal }: { signal: AbortSignal }) => {
              await wait(100);
              if (mistake || !signal.aborted) ledger.add('late');
            },
          }),
        ],
        ...world,
      }),
    found: /^abort: act went on and changed the world/m,
  },
  ...(['an async generator', 'a promise of a generator', 'an iterable'] as const).map(
    (form): Pair => ({
      name: `a readOnly tool that gives its values by ${form} and writes`,
      agent: (world, ledger, mistake) => {
        async function* values(): AsyncGenerator<string> {
          yield 'looking';
          await wait(1);
          if (mistake) ledger.add('read');
          yield 'seen';
        }
        const forms = {
          'an async generator': values,
          'a promise of a generator': async () => values(),
          'an iterable': () => ({ [Symbol.asyncIterator]: values }),
        };
        return createAgent({ tools: [act({ readOnly: true, execute: forms[form] })], ...world });
      },
      found: /^readOnly: act is declared readOnly and changed the world/m,
    }),
  ),
  {
    name: 'a write after a cancel in a generator',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [
          act({
            async *execute(_: unknown, { signal }: { signal: AbortSignal }) {
              yield 'on the way';
              await wait(100);
              if (mistake || !signal.aborted) ledger.add('late');
            },
          }),
        ],
        ...world,
      }),
    found: /^abort: act went on and changed the world/m,
  },
  {
    name: 'a listener that stays on the signal',
    agent: (world, _, mistake) =>
      createAgent({
        tools: [
          act({
            execute: async (_args: unknown, { signal }: { signal: AbortSignal }) => {
              // Node's own listeners do not belong to the tool.
              new Request('http://127.0.0.1/', { signal });
              const heard = (): void => undefined;
              signal.addEventListener('abort', heard);
              await wait(1);
              if (!mistake) signal.removeEventListener('abort', heard);
            },
          }),
        ],
        ...world,
      }),
    found: /^listener: act left 1 of its listeners on its signal/m,
  },
  {
    name: 'a listener that stays because nothing aborts the signal that removes it',
    agent: (world, _, mistake) =>
      createAgent({
        tools: [
          act({
            execute: async (_args: unknown, { signal }: { signal: AbortSignal }) => {
              const over = new AbortController();
              signal.addEventListener('abort', () => undefined, { signal: over.signal });
              await wait(1);
              if (!mistake) over.abort();
            },
          }),
        ],
        ...world,
      }),
    found: /^listener: act left 1 of its listeners on its signal/m,
  },
  {
    name: "a timer that stays on the agent's clock",
    agent: (world, _, mistake) =>
      createAgent({
        tools: [
          act({
            execute: () => {
              const stop = (world.ports as { setTimer(ms: number, fire: () => void): () => void }).setTimer(
                1000,
                () => {},
              );
              if (!mistake) stop();
            },
          }),
        ],
        ...world,
      }),
    found: /timer: 1 timers are left on the agent's clock after its close\(\)/,
  },
  ...(['setInterval', 'setTimeout'] as const).map(
    (name): Pair => ({
      name: `a ${name} that nobody clears`,
      agent: (world, _, mistake) =>
        createAgent({
          tools: [
            act({
              execute: async () => {
                await wait(1);
                const timer =
                  name === 'setInterval' ? setInterval(() => undefined, 5) : setTimeout(() => undefined, 30_000);
                // These end by themselves, and keep no process alive.
                setTimeout(() => undefined, 20);
                setTimeout(() => undefined, 30_000).unref();
                await wait(1);
                if (!mistake) clearTimeout(timer);
              },
            }),
          ],
          ...world,
        }),
      found: /^timer: act left a timer that still runs after the close\(\) of the agent/m,
    }),
  ),
  {
    name: 'an afterToolExecute that always throws',
    agent: (world, _, mistake) =>
      createAgent({
        tools: [act({})],
        plugins: only(
          {
            afterToolExecute() {
              throw new Error('no place for results');
            },
          },
          mistake,
        ),
        ...world,
      }),
    found: /^the plugin "audit" in afterToolExecute failed: Error: no place for results/m,
  },
  {
    name: 'a required plugin that throws after a reply',
    agent: (world, _, mistake) =>
      createAgent({
        tools: [act({})],
        plugins: mistake
          ? [
              {
                name: 'audit',
                required: true,
                afterInference({ turn }) {
                  if (turn > 0) throw new Error('out of paper');
                },
              },
            ]
          : [],
        ...world,
      }),
    found: /^the required plugin "audit" failed in afterInference: Error: out of paper\n/m,
  },
  {
    name: 'a plugin that makes arguments invalid',
    agent: (world, _, mistake) =>
      createAgent({
        tools: [
          defineTool({ name: 'pay', description: '', parameters: z.object({ euros: z.number() }), execute: () => 1 }),
        ],
        plugins: only({ beforeToolExecute: () => ({ args: { euros: 'five' } }) }, mistake),
        ...world,
      }),
    found:
      /^the plugin "audit" in beforeToolExecute failed: it rewrote the arguments of pay into others that are refused/m,
  },
  {
    name: 'an approval that changes its mind',
    agent: (world, ledger, mistake) =>
      createAgent({
        tools: [
          act({
            needsApproval: () => {
              if (!mistake) return true;
              ledger.add('asked');
              return ledger.entries.length % 2 === 1;
            },
          }),
        ],
        ...world,
      }),
    options: { outside: { reset: () => undefined, state: () => null } },
    found: /^the check of act answered that .*, and that .* when the agent was looked at/m,
  },
];

async function failuresOf({ cases }: AgentPaths): Promise<string[]> {
  const failures: string[] = [];
  for (const path of cases) await path.run().catch((error: Error) => failures.push(error.message));
  return failures;
}

async function failuresIn({ agent, options }: Pair, mistake: boolean): Promise<string[]> {
  const ledger = new Ledger();
  const bounds = { calls: 1, decisions: 1, resumes: 1 };
  const made = (world: AgentWorld): Agent => agent(world, ledger, mistake);
  return failuresOf(await agentPaths(made, { outside: ledger.outside, bounds, ...options }));
}

describe('a mistake that shows late', () => {
  const pairs = sampled(PAIRS, volume.subtleOf).map((pair) => [pair.name, pair] as const);
  it.each(pairs)('%s is found, and named', async (_, pair) => {
    expect((await failuresIn(pair, true)).join('\n')).toMatch(pair.found);
  });

  it.each(pairs)('without %s nothing is found', async (_, pair) => {
    expect(await failuresIn(pair, false)).toEqual([]);
  });
});

it('the first line of a failure is its cause, also in a story whose answers miss their schema', async () => {
  const plugins = only({ runEnd: () => Promise.reject(new Error('out of paper')) }, true);
  const agent = (world: AgentWorld) => createAgent({ plugins, output: z.object({ n: z.number() }), ...world });
  const failures = await failuresOf(await agentPaths(agent));
  expect(failures.length).toBeGreaterThan(3);
  const cause = 'the plugin "audit" in runEnd failed: Error: out of paper';
  expect(failures.filter((failure) => failure.split('\n')[0] !== cause)).toEqual([]);
});

it('a policy that changes shows in the report', async () => {
  const reportWith = async (policies: object): Promise<string> => {
    const agent = (world: AgentWorld) => createAgent({ policies, ...world });
    return String((await agentPaths(agent, { moves: [] })).report());
  };
  const [before, after] = [await reportWith({}), await reportWith({ limits: { turns: 7 } })];
  expect(before).toMatch(/^ {2}policies +whileActive/m);
  expect(after).toMatch(/^ {2}limits +.*turns 7,/m);
  expect(before).not.toBe(after);
});

it('a time among the arguments is one that a tool keeps', async () => {
  const seen: number[] = [];
  const run = defineTool({
    name: 'run',
    description: 'Runs.',
    parameters: z.object({
      command: z.string(),
      timeoutMs: z.number().min(1).max(600_000).optional(),
      delay_seconds: z.number().min(0).optional(),
    }),
    execute: ({ timeoutMs, delay_seconds }) => {
      if (timeoutMs !== undefined) seen.push(timeoutMs);
      if (delay_seconds !== undefined) seen.push(delay_seconds);
    },
  });
  await agentPaths((world) => createAgent({ tools: [run], ...world }), { moves: [] });
  expect([...new Set(seen)].sort()).toEqual([0.01, 60_000]);
});
