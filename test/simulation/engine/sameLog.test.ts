/**
 * The same scenarios in an embedded conversation and in one that a durable engine holds, whose attempts end at any point. Their logs
 * are equal but for times, and for ids that a host makes.
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { engineAgentOf } from '../../../src/agent.ts';
import { carryOutHere } from '../../../src/conversation/served/remoteActs.ts';
import {
  type AgentOptions,
  type Conversation,
  createAgent,
  defineTool,
  type LogEntry,
  type ModelPart,
  memoryStore,
} from '../../../src/index.ts';
import type { Model } from '../../../src/models/model.ts';
import { holdConversation } from '../../../src/restate/chain/holdConversation.ts';
import type { Act } from '../../../src/stores/logStore.ts';
import { nextTurn } from '../../../src/timeLimit.ts';
import { call, finish, t } from '../../support/scriptedReplies.ts';
import { chance } from '../../support/seededChance.ts';
import { SimulatedEngine } from './simulatedEngine.ts';

const ID = 'same';
const OPEN = { cwd: '/', owner: 'somebody' };

interface Host {
  log(): readonly LogEntry[];
  ask(act: object): Promise<unknown>;
  /** Another process continues. */
  restart(): Promise<void>;
}

interface Scenario {
  name: string;
  replies: readonly (string | readonly ModelPart[])[];
  options?: Omit<AgentOptions, 'model'>;
  window?: object;
  /** The model replies only to requests that have it. */
  context?: string;
  /** The entries that the scenario is about. */
  expected: readonly LogEntry['type'][];
  play(host: Host): Promise<unknown>;
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!isSo()) {
    if (Date.now() > end) throw new Error(`it did not come that ${what}`);
    await nextTurn();
  }
}
const has = (host: Host, type: LogEntry['type'], times = 1): Promise<void> =>
  until(`${type} is in the log`, () => host.log().filter((entry) => entry.type === type).length >= times);
const say = (host: Host, content: string, options: object = {}): Promise<unknown> =>
  host.ask({ type: 'send', content, options: { messageId: content.slice(0, 20), ...options } });

const tool = (
  name: string,
  options: object = {},
  execute: (signal: AbortSignal) => unknown = () => `${name} is done`,
) =>
  defineTool({
    name,
    description: name,
    parameters: z.object({}),
    idempotent: true,
    ...options,
    execute: (_, { signal }) => execute(signal),
  });
/** Ends when it is aborted. */
const waits = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason));
  });
const asks = (host: Host, action: 'approve' | 'deny') => {
  const suspended = host.log().find((entry) => entry.type === 'tool-suspended');
  if (suspended?.type !== 'tool-suspended') throw new Error('no call waits');
  const { callId, suspension } = suspended;
  return host.ask({ type: 'decide', decision: { callId, suspension, action, by: 'somebody' } });
};
const long = (word: string, tokens: number): string => `${word} ${'x'.repeat(tokens * 4)}`;

const gate = { isOpen: false };
const open = async (signal: AbortSignal): Promise<string> => {
  while (!gate.isOpen) {
    signal.throwIfAborted();
    await nextTurn();
  }
  return 'open';
};

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'S001-01: a plain run',
    replies: ['done'],
    expected: ['run-started', 'user-message', 'agent-output', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'S001-06: a failing tool is an error result, and the model is called again',
    replies: [[call('c1', 'boom')], 'x'],
    options: {
      tools: [
        tool('boom', {}, () => {
          throw new Error('boom');
        }),
      ],
    },
    expected: ['tool-started', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'three rounds of tools, two at once',
    replies: [[call('c1', 'one'), call('c2', 'one')], [call('c3', 'one')], [call('c4', 'one')], 'x'],
    options: { tools: [tool('one')], policies: { toolExecution: 'sequential' } },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  ...(['approve', 'deny'] as const).map(
    (action): Scenario => ({
      name: `a call waits for a decision over a restart: ${action}`,
      replies: [[call('c1', 'ask')], 'x'],
      options: { tools: [tool('ask', { needsApproval: true })] },
      expected: ['tool-suspended', 'run-suspended', 'decision', 'run-resumed', 'run-stop'],
      play: async (host) => {
        await say(host, 'hi');
        await has(host, 'run-suspended');
        await host.restart();
        await asks(host, action);
        await host.restart();
        await host.ask({ type: 'resume', resumptionId: 'again' });
        await has(host, 'run-stop');
      },
    }),
  ),
  {
    name: 'a cancel ends a tool and the run',
    replies: [[call('c1', 'wait')], 'x'],
    options: { tools: [tool('wait', {}, waits)] },
    expected: ['tool-started', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'tool-started');
      await host.ask({ type: 'cancel' });
      await has(host, 'run-stop');
    },
  },
  ...(['steer', 'followUp'] as const).map(
    (kind): Scenario => ({
      name: `a message arrives while a tool runs: ${kind}`,
      replies: [[call('c1', 'gate')], 'x', 'y'],
      options: { tools: [tool('gate', {}, open)], policies: { promoteFollowUpOn: ['completed'] } },
      expected: ['message-queued', 'tool-result', 'user-message', 'run-stop'],
      play: async (host) => {
        gate.isOpen = false;
        await say(host, 'hi');
        await has(host, 'tool-started');
        await say(host, 'and more', { kind });
        gate.isOpen = true;
        await has(host, 'run-stop', kind === 'steer' ? 1 : 2);
      },
    }),
  ),
  {
    name: 'a cancel ends a call that waits',
    replies: [[call('c1', 'ask')], 'x'],
    options: { tools: [tool('ask', { needsApproval: true })] },
    expected: ['run-suspended', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-suspended');
      await host.restart();
      await host.ask({ type: 'cancel' });
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a message after the end of a run starts another one',
    replies: ['first', 'second'],
    expected: ['run-stop'],
    play: async (host) => {
      await say(host, 'one');
      await has(host, 'run-stop');
      await host.restart();
      await say(host, 'two');
      await has(host, 'run-stop', 2);
    },
  },
  {
    name: 'TRC-5: a limit ends the run',
    replies: [[call('c1', 'one')], [call('c2', 'one')], [call('c3', 'one')]],
    options: { tools: [tool('one')], policies: { limits: { turns: 2 } } },
    expected: ['run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'TRC-6: older messages become a summary',
    replies: [long('a', 300), long('b', 300), 'ok'],
    window: { contextWindow: 1_000, maxOutputTokens: 0 },
    options: { tools: [tool('one')] },
    expected: ['compaction', 'run-stop'],
    play: async (host) => {
      for (const [index, word] of ['first', 'second', 'third'].entries()) {
        await say(host, long(word, index === 2 ? 150 : 50));
        await has(host, 'run-stop', index + 1);
      }
    },
  },
  {
    name: 'a final answer with a schema, after one that is invalid',
    replies: ['18 degrees', '{"city":"Lisbon"}'],
    options: { output: z.object({ city: z.string() }) },
    expected: ['continuation', 'extension', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a plugin adds to each request, and looks at each reply',
    replies: [[t('one'), call('c1', 'one')], [t('two'), call('c2', 'one')], 'three'],
    context: 'the words of the plugin',
    options: {
      tools: [tool('one')],
      plugins: [
        {
          name: 'adds',
          beforeInference: () => ({ context: 'the words of the plugin' }),
          afterInference: ({ reply }) => (reply ? undefined : { terminate: 'there is no reply' }),
          afterToolExecute: ({ call: { callId } }) => ({ context: `after ${callId}` }),
        },
      ],
    },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a plugin changes the arguments of a call',
    replies: [[call('c1', 'echo', { word: 'one' })], 'x'],
    options: {
      tools: [
        defineTool({
          name: 'echo',
          description: 'echo',
          parameters: z.object({ word: z.string() }),
          idempotent: true,
          execute: ({ word }) => word,
        }),
      ],
      plugins: [{ name: 'changes', beforeToolExecute: () => ({ args: { word: 'changed' } }) }],
    },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
];

/** Its reply depends on how many there were, so a repeated call has the same one. */
function modelOf({ replies, window, context = '' }: Scenario, log: () => readonly LogEntry[]): Model {
  return {
    id: 'scripted',
    ...window,
    async *stream({ tools, messages, system }): AsyncIterable<ModelPart> {
      if (!system.includes(context)) throw new Error('the context is missing');
      if (tools.length === 0 && messages.length === 1 && window) {
        yield t('A summary.');
        return yield finish('stop');
      }
      // A summary takes the place of messages. Then the log says how many replies there were.
      const given = window
        ? log().filter(({ type }) => type === 'model-reply').length
        : messages.filter(({ role }) => role === 'assistant').length;
      const reply = replies[given] ?? 'beyond the script';
      const parts = typeof reply === 'string' ? [t(reply)] : reply;
      yield* parts;
      yield finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop');
    },
  };
}

async function embedded(scenario: Scenario): Promise<readonly LogEntry[]> {
  const store = memoryStore();
  let conversation: Conversation | undefined;
  const log = () => conversation?.log() ?? [];
  const agent = createAgent({ ...scenario.options, model: modelOf(scenario, log), store });
  conversation = await agent.open(ID, OPEN);
  let acts = 0;
  await scenario.play({
    log,
    ask: (act) => {
      acts += 1;
      return carryOutHere(conversation as Conversation, { ...act, actId: `act-${acts}` } as unknown as Act);
    },
    restart: async () => {
      await conversation?.close();
      conversation = await agent.open(ID, OPEN);
    },
  });
  const entries = log();
  await agent.close();
  return entries;
}

async function held(scenario: Scenario, seed: number): Promise<readonly LogEntry[]> {
  const faults: string[] = [];
  const agent = engineAgentOf(createAgent({ ...scenario.options, model: modelOf(scenario, () => engine.log) }));
  if (!agent) throw new Error('the agent is not of this process');
  const engine: SimulatedEngine = new SimulatedEngine({
    chance: chance(seed),
    conversationId: ID,
    deaths: seed === 0 ? 0 : 0.1,
    hold: (invocation) => holdConversation({ agent, invocation, repliesMost: 1 + (seed % 3) }),
    broken: (invariant, detail) => void faults.push(`${invariant}: ${detail}`),
  });
  let acts = 0;
  const ask = async (act: object): Promise<unknown> => {
    acts += 1;
    const actId = `act-${acts}`;
    engine.put({ ...act, actId } as unknown as Act);
    await until(`${JSON.stringify(act)} has an answer`, () => engine.answers.has(actId) || faults.length > 0);
    return engine.answers.get(actId);
  };
  await ask({ type: 'open', ...OPEN });
  await scenario.play({ log: () => engine.log, ask, restart: () => engine.atRest() });
  await engine.atRest();
  expect(faults).toEqual([]);
  await agent.close();
  return engine.log;
}

/** Without times. Each id that a host makes becomes its place in the log. */
function comparable(log: readonly LogEntry[]): string[] {
  const names = new Map<string, string>();
  for (const { runId } of log) if (runId && !names.has(runId)) names.set(runId, `run ${names.size + 1}`);
  return log.map(({ at: _, ...entry }) => {
    let text = JSON.stringify(entry).replace(/"createdAt":\d+/, '"createdAt":0');
    for (const [id, name] of names) text = text.replaceAll(id, name);
    return text;
  });
}

describe('a scenario has the same log embedded and on a durable engine', () => {
  it.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', async (_, scenario) => {
    const log = await embedded(scenario);
    const types = log.map(({ type }) => type);
    for (const type of scenario.expected) expect(types).toContain(type);
    for (let seed = 0; seed < 6; seed += 1)
      expect([seed, ...comparable(await held(scenario, seed))]).toEqual([seed, ...comparable(log)]);
  });
});
