/**
 * A caller's agent with code that takes real time: tools, approvals, hooks and rules. The code hangs, or repeats an
 * effect although its tool declares to be idempotent.
 */
import { setTimeout as later } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  type LogEntry,
  type Plugin,
  subAgents,
  type Tool,
  type ToolContext,
} from '../../src/index.ts';
import { hooks, permissions } from '../../src/node.ts';
import { type AgentWorld, neverReached, simulate } from '../../src/testing/index.ts';
import { volume } from '../support/tier.ts';

const agentWith =
  (execute: (context: ToolContext) => unknown, declared: { idempotent?: true } = {}) =>
  (world: AgentWorld) =>
    createAgent({
      tools: [
        defineTool({
          ...{ name: 'fetch_rates', description: 'Fetches rates.', parameters: z.object({}) },
          ...declared,
          execute: (_, context) => execute(context),
        }),
      ],
      ...world,
    });

/** Returns the first violation of the first seeds. */
async function firstViolation(options: Omit<Parameters<typeof simulate>[0], 'seed'>, seeds: number) {
  for (let seed = 1; seed <= seeds; seed++) {
    const [violation] = (await simulate({ seed, ...options })).violations;
    if (violation) return violation;
  }
  return undefined;
}

describe('a tool of the caller', () => {
  it('that hangs without its clock ends the simulation, and is named', async () => {
    const agent = agentWith(() => new Promise(() => undefined));
    expect(await firstViolation({ agent }, 20)).toEqual({
      invariant: 'HANG',
      detail: expect.stringContaining('the tool fetch_rates (c'),
    });
  });

  it('that goes on hanging after its signal is aborted is named too', async () => {
    const agent = agentWith(async ({ sleep }) => {
      await sleep(1_000).catch(() => undefined);
      return new Promise(() => undefined);
    });
    expect(await firstViolation({ agent }, 20)).toMatchObject({ invariant: 'HANG' });
  });

  async function* rates(): AsyncGenerator<string> {
    yield 'looking';
    await later(2);
    yield 'rates';
  }
  it.each<[string, () => unknown]>([
    ['a promise', () => later(2, 'rates')],
    ['a generator', rates],
    ['a promise of a generator', async () => rates()],
  ])('that waits a moment in real time in %s has its result, the same with each seed', async (_, execute) => {
    const agent = agentWith(execute);
    let results = 0;
    for (const seed of [1, 2, 3, 4]) {
      const [first, second] = [await simulate({ seed, agent }), await simulate({ seed, agent })];
      expect(first.violations).toEqual([]);
      expect(second.log).toEqual(first.log);
      results += first.log.filter((entry) => entry.type === 'tool-result' && entry.outcome === 'succeeded').length;
      expect(first.log.filter((entry) => entry.type === 'tool-result' && entry.code === 'timeout')).toEqual([]);
    }
    expect(results).toBeGreaterThan(0);
  });

  it('that hangs in a generator is named', async () => {
    const agent = agentWith(async function* () {
      yield 'looking';
      await new Promise(() => undefined);
    });
    expect(await firstViolation({ agent }, 20)).toMatchObject({ invariant: 'HANG' });
  });

  describe('that is declared idempotent and waits', () => {
    /** The payments by idempotency key, which outlive each crash. */
    const payments = (paysFirst: boolean, looksFirst: boolean) => {
      const paid: string[] = [];
      const pay = (key: string): void => void (!(looksFirst && paid.includes(key)) && paid.push(key));
      const agent = agentWith(
        async ({ sleep, idempotencyKey }) => {
          if (paysFirst) pay(idempotencyKey);
          await sleep(500);
          if (!paysFirst) pay(idempotencyKey);
          return 'paid';
        },
        { idempotent: true },
      );
      function paysOnce(_: readonly LogEntry[]): string | undefined {
        const twice = paid.find((key, index) => paid.indexOf(key) < index);
        return twice && `${twice} was paid twice`;
      }
      const fresh = (world: AgentWorld) => agent(world);
      return { paid, options: { agent: fresh, invariants: [paysOnce] } };
    };

    it('is found where it has its effect before it waits, and a crash cuts it off', async () => {
      let found: string | undefined;
      for (let seed = 1; seed <= 60 && !found; seed++) {
        const [violation] = (await simulate({ seed, ...payments(true, false).options })).violations;
        found = violation?.invariant;
      }
      expect(found).toBe('paysOnce');
    });

    it('is right where it looks at its key first', async () => {
      let count = 0;
      for (let seed = 1; seed <= 15; seed++) {
        const { paid, options } = payments(true, true);
        expect((await simulate({ seed, ...options })).violations).toEqual([]);
        count += paid.length;
      }
      expect(count).toBeGreaterThan(5);
    });
  });
});

describe('a check of the caller', () => {
  const shell = (needsApproval?: () => Promise<boolean>): Tool =>
    defineTool({
      ...{ name: 'Bash', description: 'Runs a command.', parameters: z.object({ command: z.string() }) },
      ...(needsApproval && { needsApproval }),
      execute: ({ command }) => `ran ${command}`,
    });
  const agentOf =
    (plugins: readonly Plugin[], tool = shell()) =>
    (world: AgentWorld) =>
      createAgent({ tools: [tool], plugins, ...world });
  const args = { Bash: [{ command: 'npm test' }] };
  const slow = async (): Promise<undefined> => {
    await later(5);
    return undefined;
  };

  it.each<[string, ReturnType<typeof agentOf>]>([
    ['a rule that looks at files', agentOf([permissions({ allow: ['Bash(npm test)'] })])],
    [
      'an approval that asks elsewhere',
      agentOf(
        [],
        shell(async () => (await slow()) !== undefined),
      ),
    ],
    [
      'a plugin that waits',
      agentOf([{ name: 'slow', beforeToolExecute: slow, stepStart: slow, afterToolExecute: slow }]),
    ],
    ['a hook that waits', agentOf([hooks({ PreToolUse: [{ run: slow }], PostToolUse: [{ run: slow }] })])],
  ])('that is %s may take a moment of real time, the same with each seed', async (_, agent) => {
    let results = 0;
    for (let seed = 1; seed <= volume.slowLives; seed++) {
      const [first, second] = [await simulate({ seed, agent, args }), await simulate({ seed, agent, args })];
      expect(first.violations).toEqual([]);
      expect(second.log).toEqual(first.log);
      const failed = first.log.filter((entry) => entry.type === 'tool-result' && entry.code === 'plugin_error');
      expect(failed).toEqual([]);
      const ended = first.log.filter(
        (entry) => entry.type === 'diagnostic' && /^(plugin|hook|approval)_error$/.test(entry.code),
      );
      expect(ended).toEqual([]);
      results += first.log.filter((entry) => entry.type === 'tool-result' && entry.outcome === 'succeeded').length;
    }
    expect(results).toBeGreaterThan(0);
  });

  it('that hangs is ended by its own time limit', async () => {
    const plugin: Plugin = { name: 'hangs', beforeToolExecute: () => new Promise<undefined>(() => undefined) };
    const errors: string[] = [];
    for (const seed of [1, 2, 3, 4]) {
      const { violations, log } = await simulate({ seed, agent: agentOf([plugin]) });
      expect(violations).toEqual([]);
      for (const entry of log) if (entry.type === 'tool-result' && entry.code) errors.push(entry.code);
    }
    expect(errors).toContain('plugin_error');
  });
});

it('tools and decisions of sub-agents count as reached', async () => {
  const sign = defineTool({
    ...{ name: 'sign', description: 'Signs.', parameters: z.object({}), needsApproval: true },
    execute: () => 'signed',
  });
  const agent = (world: AgentWorld) => createAgent({ tools: [subAgents({ tools: [sign] })], ...world });
  const reports = [];
  for (let seed = 1; seed <= 40; seed++) reports.push(await simulate({ seed, agent }));
  expect(reports.flatMap(({ violations }) => violations)).toEqual([]);
  expect(neverReached(reports)).toEqual([]);
});
