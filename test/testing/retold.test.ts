/** Random conversations are turned into scripts, and running the scripts leaves the same log. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Agent, createAgent, defineTool, type LogEntry, toolResult } from '../../src/index.ts';
import { ScriptRun } from '../../src/testing/agentPaths/scriptRun.ts';
import { courseOf } from '../../src/testing/agentPaths/search/chartPlace.ts';
import { type AgentWorld, type Move, runScript, scriptOf } from '../../src/testing/index.ts';
import { chance } from '../support/seededChance.ts';
import { volume } from '../support/tier.ts';
import { Bank } from './sampleAgents.ts';

const form = defineTool({
  name: 'form',
  description: 'Waits for somebody to fill it in.',
  parameters: z.object({}),
  execute: (_, { decision }) => (decision ? 'filled in' : toolResult.pending({ reason: 'form' })),
});
const flaky = defineTool({
  name: 'flaky',
  description: 'Fails if fails is true.',
  parameters: z.object({ fails: z.boolean() }),
  execute: ({ fails }) => {
    if (fails) throw new Error('it fails');
    return 'done';
  },
});
const make = (world: AgentWorld): Agent => createAgent({ tools: [...new Bank().tools, form, flaky], ...world });

const CALLS = [
  { name: 'transfer', args: { to: 'landlord', euros: 900 } },
  { name: 'transfer', args: { to: 'Ada', euros: 5 } },
  { name: 'transfer', args: { euros: 5 } },
  { name: 'balance', args: {} },
  { name: 'plan', args: { name: 'rent' } },
  { name: 'form', args: {} },
  { name: 'flaky', args: { fails: true } },
  { name: 'flaky', args: { fails: false } },
  { name: 'nobody', args: {} },
] as const;

/** Returns the possible moves, with the usual ones more often. */
function moves(run: ScriptRun, draw: () => number): Move[] {
  const { status, model, running, waiting } = run.standing;
  const pick = <T>(all: readonly T[]): T => all[Math.floor(draw() * all.length)] as T;
  const calls = Array.from({ length: 1 + Math.floor(draw() * 3) }, () => pick(CALLS));
  const usual: Move[] = [
    ...(status === 'idle' || status === 'error' ? [{ do: 'send', text: 'go' } as const] : []),
    ...(model ? [{ do: 'reply', calls } as const, { do: 'reply', text: 'done' } as const] : []),
    ...running.map((call) => ({ do: 'tool', call }) as const),
    ...waiting.map((call) => ({ do: 'decide', call, action: pick(['approve', 'deny', 'edit'] as const) }) as const),
    ...(status === 'waiting' && waiting.length === 0 ? [{ do: 'resume' } as const] : []),
  ];
  const odd: Move[] = [
    { do: 'crash' },
    ...(status === 'active' || status === 'waiting'
      ? ([{ do: 'cancel' }, { do: 'followUp', text: 'then' }] as const)
      : []),
    ...(status === 'active' ? [{ do: 'steer', text: 'also' } as const] : []),
    ...(model
      ? ([
          { do: 'modelFails', retryable: draw() < 0.7 },
          { do: 'reply', text: '' },
        ] as const)
      : []),
    ...(model ? [{ do: 'reply', text: 'so', finish: pick(['length', 'pause'] as const) } as const] : []),
    ...running.map((call) => ({ do: 'tool', call, made: pick(['fail', 'timeOut'] as const) }) as const),
    ...run.conversation.unsettled.slice(0, 1).map(({ callId }) => {
      const how = pick(['ran', 'didNotRun', 'retry'] as const);
      return { do: 'settle', call: Number(callId.slice(4)), how, ...(how === 'ran' && { result: 'done' }) } as const;
    }),
    ...(status === 'idle' ? [{ do: 'resume' } as const] : []),
  ];
  return [pick(draw() < 0.75 && usual.length > 0 ? usual : odd)];
}

async function lived(seed: number): Promise<readonly LogEntry[]> {
  const { next: draw } = chance(seed);
  const run = new ScriptRun(make, [], {});
  await run.begin();
  await run.goOn({ do: 'send', text: 'go' });
  for (let count = 0; count < 8 + (seed % 16); count++) for (const move of moves(run, draw)) await run.goOn(move);
  const log = run.log;
  await run.end();
  return log;
}

describe('random conversations', () => {
  it('are repeated by the scripts of their logs', async () => {
    const different: string[] = [];
    const moveKinds = new Set<string>();
    for (let seed = 1; seed <= volume.retold; seed++) {
      const log = await lived(seed);
      const script = scriptOf(log);
      for (const move of script)
        moveKinds.add(`${move.do} ${'made' in move ? move.made : ''}${'how' in move ? move.how : ''}`);
      const [is, was] = [
        await runScript(make, script).then(
          (outcome) => courseOf(outcome.log),
          (error: Error) => [error.message],
        ),
        courseOf(log),
      ];
      const at = was.findIndex((line, index) => line !== is[index]);
      if (at >= 0 || is.length !== was.length)
        different.push(`${seed}: ${was[at]} became ${is[at] ?? is.at(-1)} after ${was[at - 1]}`);
    }
    expect(moveKinds.size).toBeGreaterThan(11);
    expect(different.length / volume.retold).toBeLessThanOrEqual(0.01);
  });
});
