/** Timers of a conversation that an engine holds: waits before a retry, and time limits of runs. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { engineAgentOf } from '../../src/agent.ts';
import {
  type AgentOptions,
  createAgent,
  defineTool,
  type LogEntry,
  type Model,
  type ModelPart,
} from '../../src/index.ts';
import { ModelError } from '../../src/models/model.ts';
import type { ChainItem, EngineAttempt, EngineTimer } from '../../src/restate/chain/engineAttempt.ts';
import { holdConversation } from '../../src/restate/chain/holdConversation.ts';
import type { Act } from '../../src/stores/logStore.ts';
import { SimulatedEngine } from '../simulation/engine/simulatedEngine.ts';
import { call, finish, t } from '../support/scriptedReplies.ts';
import { chance } from '../support/seededChance.ts';

type Reply = (signal: AbortSignal) => readonly ModelPart[] | Promise<readonly ModelPart[]>;

const worked: Reply = () => [call('c1', 'work'), finish('tool-calls')];
const ended: Reply = () => [t('the end'), finish('stop')];
const busy: Reply = () => {
  throw new ModelError({ code: 'server', retryable: true });
};
const silent: Reply = (signal) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

interface Held {
  log: readonly LogEntry[];
  timers: EngineTimer[];
  items: ChainItem['kind'][];
  invocations: number;
}

/** Holds a conversation with one message until it is at rest. Each call of the model takes the next reply. */
async function hold(
  replies: readonly Reply[],
  policies: NonNullable<AgentOptions['policies']>,
  { repliesMost = 50, toolMs = 0, isResumed = false, isCancelled = false } = {},
): Promise<Held> {
  let calls = 0;
  const model: Model = {
    id: 'scripted',
    async *stream(_, { signal }) {
      calls += 1;
      yield* await (replies[calls - 1] ?? ended)(signal);
    },
  };
  const work = defineTool({
    name: 'work',
    description: 'Works.',
    parameters: z.object({}),
    execute: async () => {
      await new Promise((resolve) => setTimeout(resolve, toolMs));
      return 'done';
    },
  });
  const agent = engineAgentOf(createAgent({ model, tools: [work], policies }));
  if (!agent) throw new Error('the agent is not of this process');
  const timers: EngineTimer[] = [];
  const items: ChainItem['kind'][] = [];
  const watched = (inner: EngineAttempt): EngineAttempt =>
    new Proxy(inner, {
      get(target, name) {
        const own = Reflect.get(target, name, target);
        if (name === 'startTimer')
          return (timer: EngineTimer) => {
            timers.push(timer);
            target.startTimer(timer);
          };
        if (name === 'step')
          return async (...step: Parameters<EngineAttempt['step']>) => {
            const value = await target.step(...step);
            if (step[0] === 'next') items.push((value as ChainItem).kind);
            if (isCancelled && items.at(-1) === 'waiting') engine.put({ type: 'cancel', actId: 'd' } as Act);
            return value;
          };
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
  const engine = new SimulatedEngine({
    chance: chance(1),
    conversationId: 'timed',
    deaths: 0,
    hold: (invocation) => holdConversation({ agent, invocation: watched(invocation), repliesMost, beatMs: 10 }),
    broken: (invariant, detail) => {
      throw new Error(`${invariant}: ${detail}`);
    },
  });
  engine.put({ type: 'open', cwd: '/', actId: 'a' } as Act);
  engine.put({ type: 'send', content: 'hello', options: { messageId: 'first' }, actId: 'b' } as unknown as Act);
  await engine.atRest();
  if (isResumed) engine.put({ type: 'resume', resumptionId: 'again', actId: 'c' } as unknown as Act);
  await engine.atRest();
  await agent.close();
  return { log: engine.log, timers, items, invocations: engine.invocations };
}

const entryOf = <T extends LogEntry['type']>(log: readonly LogEntry[], type: T) =>
  log.find((entry): entry is Extract<LogEntry, { type: T }> => entry.type === type);

describe('timers of a conversation that an engine holds', () => {
  it('a wait before a retry is a timer of the engine, from the failure on', async () => {
    const { log, timers } = await hold([busy, ended], { modelRetry: { baseMs: 3000, jitter: 0 } });
    const retry = entryOf(log, 'model-retry');
    expect(timers).toEqual([{ id: expect.stringContaining('/wait/'), until: (retry?.at ?? 0) + 3000 }]);
    expect(entryOf(log, 'run-stop')?.reason).toBe('completed');
  });

  it('while nothing but a timer is under way, the engine needs no attempt, and a cancel wakes one', async () => {
    const modelRetry = { baseMs: 10_000_000, capMs: 10_000_000, jitter: 0 };
    const { log, items } = await hold([busy], { modelRetry }, { isCancelled: true });
    expect(items.filter((kind) => kind === 'waiting' || kind === 'beat')).toEqual(['waiting']);
    expect(entryOf(log, 'run-stop')?.cause).toBe('cancelled');
  });

  it('while a tool works, an attempt does not only wait, although its run has a time limit', async () => {
    const { log, timers, items } = await hold([worked, ended], { limits: { runMs: 10_000_000 } }, { toolMs: 60 });
    expect(timers).toEqual([
      { id: expect.stringContaining('/deadline'), until: (entryOf(log, 'run-started')?.at ?? 0) + 10_000_000 },
    ]);
    expect(items).toContain('beat');
    expect(items).not.toContain('waiting');
  });

  it('the invocation that continues a run has its time limit, from the start of the run on', async () => {
    const { log, timers, invocations } = await hold([worked, silent], { limits: { runMs: 5000 } }, { repliesMost: 1 });
    expect(invocations).toBe(2);
    const until = (entryOf(log, 'run-started')?.at ?? 0) + 5000;
    expect(timers.map((timer) => timer.until)).toEqual([until, until]);
    expect(entryOf(log, 'run-stop')?.cause).toBe('timeout');
  });

  it('the invocation that continues a run does not start a wait again that is over', async () => {
    const { log, timers, invocations } = await hold(
      [busy, worked, ended],
      { modelRetry: { baseMs: 10, jitter: 0 } },
      { repliesMost: 1 },
    );
    expect([invocations, timers.length]).toEqual([3, 1]);
    expect(entryOf(log, 'run-stop')?.reason).toBe('completed');
  });

  it('a run that is resumed has the time that is left of its limit', async () => {
    const refused: Reply = async () => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      throw new ModelError({ code: 'bad-request' });
    };
    const { log, timers } = await hold([refused, ended], { limits: { runMs: 10_000_000 } }, { isResumed: true });
    const [started, stop] = [entryOf(log, 'run-started')?.at ?? 0, entryOf(log, 'run-stop')?.at ?? 0];
    expect(stop - started).toBeGreaterThan(20);
    const untils = [started + 10_000_000, (entryOf(log, 'run-resumed')?.at ?? 0) + 10_000_000 - (stop - started)];
    expect(timers.map((timer) => timer.until)).toEqual(untils);
  });

  it('a cycle without time left ends before it calls the model', async () => {
    const { log, timers } = await hold([ended], { limits: { runMs: 0 } });
    expect(timers).toEqual([]);
    expect(entryOf(log, 'model-reply')).toBeUndefined();
    expect(entryOf(log, 'run-stop')?.cause).toBe('timeout');
  });
});
