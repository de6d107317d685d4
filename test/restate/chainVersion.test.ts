/**
 * A chain that this version of the charts recorded is in `chain.json`. A change after which it leads to another log needs another
 * CHAIN_VERSION, so that workers do not repeat a chain with a different result: `RECORD=1 npx vitest run test/restate/chain`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type EngineAgent, engineAgentOf } from '../../src/agent.ts';
import { createAgent, defineTool, type LogEntry, type ModelPart } from '../../src/index.ts';
import type { CarriedRun, EngineAttempt } from '../../src/restate/chain/engineAttempt.ts';
import { CHAIN_VERSION, holdConversation } from '../../src/restate/chain/holdConversation.ts';
import type { Act } from '../../src/stores/logStore.ts';
import { SimulatedEngine } from '../simulation/engine/simulatedEngine.ts';
import { call, finish, t } from '../support/scriptedReplies.ts';
import { chance } from '../support/seededChance.ts';

const FILE = fileURLToPath(new URL('chain.json', import.meta.url));
const REPLIES: readonly (readonly ModelPart[])[] = [
  [t('some words'), call('c1', 'work', { fails: false }), call('c2', 'work', { fails: true })],
  [call('c3', 'unknown'), call('c4', 'work', { fails: false })],
  [call('c5', 'work', { fails: false })],
  [call('c6', 'work', { fails: false })],
  [t('the end')],
];
const ROUNDS = 3;

interface Recorded {
  carried: CarriedRun;
  log: LogEntry[];
}

function agentOf(log: () => readonly LogEntry[]): EngineAgent {
  const work = defineTool({
    name: 'work',
    description: 'Works.',
    parameters: z.object({ fails: z.boolean() }),
    execute: ({ fails }) => {
      if (fails) throw new Error('it failed');
      return 'done';
    },
  });
  const agent = engineAgentOf(
    createAgent({
      model: {
        id: 'scripted',
        async *stream() {
          const parts = REPLIES[log().filter(({ type }) => type === 'model-reply').length] ?? [t('beyond')];
          yield* parts;
          yield finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop');
        },
      },
      tools: [work],
    }),
  );
  if (!agent) throw new Error('the agent is not of this process');
  return agent;
}

/** The record of an invocation for the next one. */
async function recorded(): Promise<Recorded> {
  const agent = agentOf(() => engine.log);
  let found: Recorded | undefined;
  const engine: SimulatedEngine = new SimulatedEngine({
    chance: chance(1),
    conversationId: 'chain',
    deaths: 0,
    hold: async (invocation) => {
      const { carried } = engine;
      found ??= carried && { carried, log: structuredClone(engine.log) };
      await holdConversation({ agent, invocation, repliesMost: ROUNDS });
    },
    broken: (invariant, detail) => {
      throw new Error(`${invariant}: ${detail}`);
    },
  });
  const put = (actId: string, act: object): void => engine.put({ ...act, actId } as unknown as Act);
  put('a', { type: 'open', cwd: '/', owner: 'somebody' });
  put('b', { type: 'send', content: 'hello', options: { messageId: 'first' } });
  put('c', { type: 'send', content: 'and more', options: { messageId: 'second', kind: 'steer' } });
  put('d', { type: 'rename', title: 'a chain' });
  await engine.atRest();
  await agent.close();
  if (!found) throw new Error('nothing was continued');
  return found;
}

class Repeated extends Error {}

/** Rejects with Repeated when the chain was repeated, and led to the same log. */
async function repeat({ carried, log }: Recorded): Promise<void> {
  const agent = agentOf(() => log);
  const controller = new AbortController();
  let reads = 0;
  const invocation: EngineAttempt = {
    conversationId: 'chain',
    attempt: 'another',
    signal: controller.signal,
    charactersMost: Number.POSITIVE_INFINITY,
    blobs: undefined,
    step: async () => {
      throw new Repeated();
    },
    startTimer: () => {},
    listen: async () => {
      throw new Error('nothing waits');
    },
    takeActs: async () => [],
    readCarried: async () => carried,
    readLog: async () => {
      reads += 1;
      if (reads > 1) throw new Error('it is taken over');
      return { entries: structuredClone(log), version: carried.version };
    },
    append: (entries) => {
      throw new Error(`it leads to more: ${JSON.stringify(entries)}`);
    },
    answer: () => {
      throw new Error('an act is answered again');
    },
    tell: () => {
      throw new Error('a sub-agent is asked again');
    },
    carryOn: () => {},
    dropCarried: () => {},
  };
  try {
    await holdConversation({ agent, invocation });
  } finally {
    controller.abort();
    await agent.close();
  }
}

describe('the version of the charts on an engine', () => {
  it('a chain that was recorded with this version leads to the log that was stored', async () => {
    if (process.env.RECORD === '1') writeFileSync(FILE, `${JSON.stringify(await recorded(), null, 1)}\n`);
    expect(existsSync(FILE)).toBe(true);
    const chain = JSON.parse(readFileSync(FILE, 'utf8')) as Recorded;
    expect(chain.carried.version).toBe(CHAIN_VERSION);
    expect(chain.log.filter(({ type }) => type === 'model-reply')).toHaveLength(ROUNDS);
    await expect(repeat(chain)).rejects.toThrow(Repeated);
  });

  it('a chain that leads to another log is not repeated: the log is opened as after the end of a process', async () => {
    const chain = await recorded();
    const changed = chain.log.map((entry) =>
      entry.type === 'tool-result' ? { ...entry, outcome: 'failed' as const } : entry,
    );
    await expect(repeat({ ...chain, log: changed })).rejects.toThrow('it is taken over');
  });
});
