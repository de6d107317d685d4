/**
 * Tests the results of `simulate` for users: the same life for the same choices, and a violation for each mistake of
 * their agent.
 */
import { describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { type AgentWorld, scriptedModel, simulate } from '../../src/testing/index.ts';

const violationsOf = async (agent: (world: AgentWorld) => ReturnType<typeof createAgent>) => {
  const found = new Set<string>();
  for (let seed = 1; seed <= 10; seed++)
    for (const { invariant } of (await simulate({ seed, agent })).violations) found.add(invariant);
  return [...found];
};

describe('simulate', () => {
  it('without an agent lives the life of one with a tool that needs approval', async () => {
    const lives = [];
    for (let seed = 1; seed <= 25; seed++) lives.push(await simulate({ seed }));
    expect(lives.flatMap(({ violations }) => violations)).toEqual([]);
    const reached = lives.map(({ reached }) => reached);
    expect(reached.some(({ tools }) => (tools.note ?? 0) > 0)).toBe(true);
    for (const decision of ['asked', 'approve', 'deny', 'edit'])
      expect(reached.some(({ decisions }) => (decisions[decision] ?? 0) > 0)).toBe(true);
    expect(reached.some(({ outcomes }) => (outcomes['failed denied'] ?? 0) > 0)).toBe(true);
    expect(new Set(reached.flatMap(({ crashes }) => Object.keys(crashes))).size).toBeGreaterThan(3);
    expect(new Set(reached.flatMap(({ stops }) => Object.keys(stops))).size).toBeGreaterThan(3);
    expect(new Set(reached.flatMap(({ entries }) => Object.keys(entries))).size).toBeGreaterThan(15);
  });

  it('gives the same life for the same seed, and for its tape whatever the seed', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const life = await simulate({ seed });
      expect(JSON.stringify((await simulate({ seed })).log)).toBe(JSON.stringify(life.log));
      expect(JSON.stringify((await simulate({ seed: 0, tape: life.tape })).log)).toBe(JSON.stringify(life.log));
    }
  });

  it('reports an unhandled rejection of the agent as uncaught', async () => {
    const agent = (world: AgentWorld) => {
      const model = scriptedModel(
        Array(50).fill(() => {
          void Promise.reject(new Error('nobody handles this'));
          return 'hello';
        }),
      );
      return createAgent({ ...world, model });
    };
    expect(await violationsOf(agent)).toEqual(['uncaught']);
  });
});
