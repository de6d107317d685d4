/** A caller's own agent in a simulation: the arguments of its tools, its decisions, and its author's invariants. */
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type LogEntry } from '../../src/index.ts';
import { type AgentWorld, neverReached, type SimulationReport } from '../../src/testing/index.ts';
import { volume } from '../support/tier.ts';
import { simulate } from './checkedLife.ts';

type Args = { people: number; day: string; terrace?: boolean | undefined };
const parameters = z.object({
  people: z.number().int().min(2).max(8),
  day: z.string().min(3).max(5),
  terrace: z.boolean().optional(),
});

function booking(seen: Args[]) {
  const book = defineTool({
    name: 'book',
    description: 'Books a table.',
    parameters,
    needsApproval: true,
    execute: (args) => {
      seen.push(args);
      return `a table for ${args.people}`;
    },
  });
  return (world: AgentWorld) => createAgent({ tools: [book], ...world });
}

describe('the agent of somebody else', () => {
  const seen: Args[] = [];
  const lives: SimulationReport[] = [];
  beforeAll(async () => {
    for (let seed = 1; seed <= 40; seed++) lives.push(await simulate({ seed, agent: booking(seen) }));
  });

  it('has its approvals decided, in each way a person may, and its tools run on what was edited', () => {
    const decisions = new Set<string>();
    const outcomes = new Set<string>();
    for (const { violations, reached } of lives) {
      expect(violations).toEqual([]);
      for (const kind of Object.keys(reached.decisions)) decisions.add(kind);
      for (const kind of Object.keys(reached.outcomes)) outcomes.add(kind);
    }
    expect([...decisions]).toEqual(expect.arrayContaining(['asked', 'approve', 'deny', 'edit']));
    expect([...outcomes]).toEqual(expect.arrayContaining(['succeeded', 'failed denied']));
    expect(seen.length).toBeGreaterThan(10);
  });

  it('has its tools called at the edges of their schemas, and with the arguments that its author gives', async () => {
    expect(seen.some(({ people }) => people === 2)).toBe(true);
    expect(seen.some(({ people }) => people === 8)).toBe(true);
    expect(new Set(seen.map(({ day }) => day.length))).toEqual(new Set([3, 5]));
    const called: Args[] = [];
    const args = { book: [{ people: 3, day: 'Mon' }] };
    for (let seed = 1; seed <= 5; seed++) await simulate({ seed, agent: booking(called), args });
    expect(called).toContainEqual({ people: 3, day: 'Mon' });
  });

  it('has a list of the tools that never ran, and of the decisions that nobody took', () => {
    expect(neverReached(lives)).toEqual([]);
    const none = lives.map((life) => ({ ...life, reached: { ...life.reached, tools: {}, decisions: {} } }));
    expect(neverReached(none)).toEqual([
      `the tool book never ran in 40 lives`,
      `no call waited for a decision in 40 lives`,
    ]);
    const undecided = lives.map((life) => ({ ...life, reached: { ...life.reached, decisions: { asked: 3 } } }));
    expect(neverReached(undecided)).toEqual([
      `no call that waited was approved in 40 lives`,
      `no call that waited was denied in 40 lives`,
    ]);
  });

  it('gets final answers that fit its schema, and sometimes others', async () => {
    const output = z.object({ city: z.string().min(1), degrees: z.number() });
    const agent = (world: AgentWorld) => createAgent({ output, ...world });
    const logs: LogEntry[] = [];
    for (let seed = 1; seed <= 20; seed++) {
      const { violations, log } = await simulate({ seed, agent });
      expect(violations).toEqual([]);
      logs.push(...log);
    }
    const outputs = logs.flatMap((entry) =>
      entry.type === 'extension' && entry.name === 'output' ? [entry.value] : [],
    );
    expect(outputs.length).toBeGreaterThan(20);
    for (const answer of outputs) output.parse(answer);
    expect(logs.some((entry) => entry.type === 'continuation' && entry.why === 'output')).toBe(true);
  });

  it('is held to the invariants of its author, by their names', async () => {
    function oneTableAtMost(log: readonly LogEntry[]): string | undefined {
      const count = log.filter(({ type }) => type === 'tool-started').length;
      return count > 1 ? `${count} tables are booked` : undefined;
    }
    const violated = new Set<string>();
    for (let seed = 1; seed <= volume.brokenLives; seed++) {
      const { violations } = await simulate({ seed, agent: booking([]), invariants: [oneTableAtMost] });
      for (const { invariant } of violations) violated.add(invariant);
    }
    expect([...violated]).toEqual(['oneTableAtMost']);
  });

  it('lives the same life when one of its tools returns an image, the first of the process too', async () => {
    const { IMAGE } = await import('../../src/testing/simulation/host.ts');
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      parameters: z.object({}),
      execute: () => [IMAGE],
    });
    const agent = (world: AgentWorld) => createAgent({ tools: [look], ...world });
    for (const seed of [60020, 60021, 60022]) {
      const [first, second] = [await simulate({ seed, agent }), await simulate({ seed, agent })];
      expect(first.violations).toEqual([]);
      expect(JSON.stringify(second.log)).toBe(JSON.stringify(first.log));
    }
  });
});
