/** Cases generated for a user's own agent: healthy agents pass them all, and their verdicts are found without a hint. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, type Plugin, toolResult } from '../../src/index.ts';
import { type AgentPaths, type AgentPathsOptions, type AgentWorld, agentPaths } from '../../src/testing/index.ts';
import { proves } from '../support/tier.ts';
import { Bank } from './sampleAgents.ts';

/** The first tier explores one call a round. */
const narrow: AgentPathsOptions['bounds'] = { calls: 1, decisions: 1, resumes: 1 };
const bounds = proves ? {} : narrow;

async function failuresOf({ cases }: AgentPaths): Promise<string[]> {
  const failures: string[] = [];
  for (const path of cases) {
    await path.run().catch((error: Error) => failures.push(`${path.name}\n  ${error.message}`));
  }
  return failures;
}
const rowsOf = ({ verdicts }: AgentPaths, tool: string): string[] =>
  verdicts
    .filter((row) => row.tool === tool)
    .map(({ args, verdict, edge }) => `${verdict}${edge ? '!' : ''} ${JSON.stringify(args)}`);

const bankOptions = (bank: Bank): AgentPathsOptions => ({
  bounds,
  outside: bank.outside,
  // biome-ignore lint/suspicious/noThenProperty: what follows from the arguments; nobody awaits an example.
  examples: { transfer: [{ args: { to: 'landlord', euros: 900 }, then: 'asks' }] },
  expect: { transfer: ({ euros }: { euros: number }) => (euros > 100 ? 'asks' : 'runs') },
});

describe('an agent with an approval', async () => {
  const bank = new Bank();
  const paths = await agentPaths(bank.agent(), bankOptions(bank));

  it('passes every case, and takes every transition that it can', async () => {
    expect(await failuresOf(paths)).toEqual([]);
    const report = paths.report();
    expect(report.missed).toEqual([]);
    expect(report.taken.length).toBeGreaterThan(90);
    expect(report.taken.filter(({ machine }) => machine === 'COMPACTION').length).toBeGreaterThan(4);
    // Each untried transition has its own reason, and there are few of them.
    expect(report.notTried.every(({ why }) => why.length > 20)).toBe(true);
    const others = report.notTried.filter(({ why }) => !why.startsWith('ruled out'));
    expect(others.length).toBeLessThan(4);
    expect(String(report)).toContain(
      `${paths.cases.length} cases, ${paths.cases.length} ran, ${paths.cases.length} passed`,
    );
  });

  it('has its threshold found by halving, from one example', () => {
    const rows = rowsOf(paths, 'transfer');
    expect(rows).toContain('runs! {"to":"landlord","euros":100}');
    expect(rows).toContain('asks! {"to":"landlord","euros":100.01}');
    expect(rows).toContain('refused {"euros":900}');
    expect(paths.verdicts.filter(({ expected, verdict }) => expected && expected !== verdict)).toEqual([]);
  });

  it('has the same cases and verdicts when they are generated again', async () => {
    const again = await agentPaths(bank.agent(), bankOptions(bank));
    expect(again.cases.map(({ name, script }) => [name, script])).toEqual(
      paths.cases.map(({ name, script }) => [name, script]),
    );
    expect(again.verdicts).toEqual(paths.verdicts);
    expect(new Set(paths.cases.map(({ name }) => name)).size).toBe(paths.cases.length);
  });

  it.runIf(proves)('covers each move after each kind of move with cover: pairs', async () => {
    const pairs = await agentPaths(bank.agent(), { ...bankOptions(bank), cover: 'pairs' });
    expect(await failuresOf(pairs)).toEqual([]);
    expect(pairs.cases.length).toBeGreaterThan(50);
  });
});

it('a plugin that blocks and one that asks have cases of their own', async () => {
  const guard: Plugin = {
    name: 'guard',
    beforeToolExecute({ call, decision }) {
      const { environment } = call.args as { environment: string };
      if (environment === 'production') return { block: 'not from here' };
      if (environment === 'staging' && !decision) return { suspend: { reason: 'window' } };
      return undefined;
    },
    runEnd: () => undefined,
  };
  const deploy = defineTool({
    name: 'deploy',
    description: 'Deploys.',
    parameters: z.object({ environment: z.enum(['test', 'staging', 'production']) }),
    execute: () => 'deployed',
  });
  const paths = await agentPaths((world) => createAgent({ tools: [deploy], plugins: [guard], ...world }), { bounds });
  expect(rowsOf(paths, 'deploy').slice(0, 3)).toEqual([
    'runs {"environment":"test"}',
    'asks {"environment":"staging"}',
    'blocked {"environment":"production"}',
  ]);
  expect(await failuresOf(paths)).toEqual([]);
});

it('a tool that is a stub is never executed, and trouble that is not wanted is in no case', async () => {
  let executed = 0;
  const act = defineTool({
    name: 'act',
    description: '',
    parameters: z.object({}),
    execute: () => {
      executed += 1;
    },
  });
  const options = { bounds, stubs: ['act'], moves: ['steer'] as const };
  const paths = await agentPaths((world) => createAgent({ tools: [act], ...world }), options);
  expect(await failuresOf(paths)).toEqual([]);
  expect(executed).toBe(0);
  const moves = new Set(paths.cases.flatMap(({ script }) => script.map((move) => move.do)));
  expect([...moves].sort()).toEqual(['reply', 'send', 'steer', 'takeBack', 'tool']);
});

it('the report has the tightened bounds, and how to widen them', async () => {
  const bank = new Bank();
  const options = { ...bankOptions(bank), bounds: { steps: 30 }, moves: ['cancel'] as const };
  const paths = await agentPaths(bank.agent(), options);
  expect(await failuresOf(paths)).toEqual([]);
  const report = paths.report();
  expect(report.closer).toEqual({ calls: 1, decisions: 1, troubles: 0 });
  expect(String(report)).toContain('explored within bounds.calls 1, bounds.decisions 1, bounds.troubles 0');
  expect(report.notTried.map(({ why }) => why)).toContain('ruled out by bounds drawn closer');
});

it('a failure names the phase that answers otherwise than before, and the error that ends a run', async () => {
  const forgetful = (): Plugin => {
    let count = 0;
    return {
      name: 'forgetful',
      naturalEnd: () => {
        count += 1;
        return count === 1 ? { continue: 'check it again' } : undefined;
      },
      preCompact: () => ({ compact: 'names' }) as never,
    };
  };
  const failures = await failuresOf(await agentPaths((world) => createAgent({ plugins: [forgetful()], ...world })));
  expect(failures.join('\n')).toMatch(/naturalEnd of turn \d answered (continue|done), and (done|continue) when/);
  expect(failures.join('\n')).toContain(
    'the plugin "forgetful" answered preCompact with a compact that cannot be used',
  );
});

it('a tool that gives its values one after another is held to its schema too', async () => {
  const walk = defineTool({
    name: 'walk',
    description: 'Walks.',
    parameters: z.object({
      to: z.union([z.object({ kind: z.literal('place'), name: z.string() }), z.object({ kind: z.literal('on') })]),
    }),
    async *execute({ to }, { sleep }) {
      yield 'on the way';
      await sleep(5);
      yield (to as { name: string }).name.toUpperCase();
    },
  });
  const agent = (world: AgentWorld) =>
    createAgent({ tools: [walk], policies: { toolRetry: { attempts: 2 } }, ...world });
  const failures = await failuresOf(await agentPaths(agent, { bounds, moves: [] }));
  expect(failures).toHaveLength(1);
  expect(failures[0]).toMatch(/"kind":"on".*is admitted by its schema\n.*it threw: TypeError/s);
});

it('an agent without tools has cases too', async () => {
  const paths = await agentPaths((world) => createAgent(world), { bounds });
  expect(await failuresOf(paths)).toEqual([]);
  expect(paths.cases.length).toBeGreaterThan(8);
});

it('each case ends as it says: stopped by a limit or the time, ended by a plugin, cancelled while it waits, or still active', async () => {
  const { transfer } = new Bank();
  const enough: Plugin = {
    name: 'enough',
    beforeInference: ({ turn }) => (turn > 0 ? { terminate: 'enough' } : undefined),
  };
  const limits = { turns: 1, runMs: 60_000 };
  const agents = [
    { policies: { limits } },
    { plugins: [enough], policies: { onEmptyReply: 'retry' as const } },
    { tools: [transfer] },
  ];
  const ends = new Set<string>();
  for (const options of agents) {
    const { cases } = await agentPaths((world) => createAgent({ ...options, ...world }), {
      // With wider bounds, no case ends while a call waits.
      bounds: narrow,
      examples: options.tools ? { transfer: [{ args: { to: 'landlord', euros: 900 } }] } : {},
    });
    for (const path of cases) {
      const { result } = await path.run();
      if (path.ends !== 'crashed') expect(result.termination, path.name).toBe(path.ends);
      ends.add(`${path.ends} ${result.cause ?? ''}`);
    }
  }
  expect([...ends]).toEqual(
    expect.arrayContaining([
      'Stopped max_turns',
      'Cancelled timeout',
      'PluginRequested enough',
      'Cancelled cancelled',
      'Suspended ',
    ]),
  );
});

it('a time limit is used up by the move that says so alone, also for a request that is continued', async () => {
  const slow = defineTool({
    name: 'slow',
    description: 'Sleeps, then waits for an answer.',
    parameters: z.object({}),
    execute: async (_, { sleep, decision }) => {
      await sleep(4_000);
      return decision ? 'done' : toolResult.pending({ reason: 'form' });
    },
  });
  const { transfer } = new Bank();
  for (const tools of [[slow], [transfer]]) {
    const paths = await agentPaths(
      (world) => createAgent({ tools, policies: { limits: { runMs: 5_000 } }, ...world }),
      {
        examples: tools.includes(transfer) ? { transfer: [{ args: { to: 'landlord', euros: 900 } }] } : {},
      },
    );
    expect(await failuresOf(paths)).toEqual([]);
    expect(paths.cases.map(({ name }) => name)).toContainEqual(expect.stringContaining('the time is up'));
  }
});
