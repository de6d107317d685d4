/**
 * The hosts of a scenario: an embedded conversation, and one that a durable engine holds, whose attempts end at any point. Each returns
 * the log of the conversation and those of its sub-agents.
 */
import { expect } from 'vitest';
import { engineAgentOf } from '../../../src/agent.ts';
import { carryOutHere } from '../../../src/conversation/served/remoteActs.ts';
import { type Conversation, createAgent, type LogEntry, type ModelPart, memoryStore } from '../../../src/index.ts';
import type { Model } from '../../../src/models/model.ts';
import { holdConversation } from '../../../src/restate/chain/holdConversation.ts';
import { type Act, subAgentIds } from '../../../src/stores/logStore.ts';
import type { ExecuteTool } from '../../../src/tools/execute.ts';
import { finish, t } from '../../support/scriptedReplies.ts';
import { chance } from '../../support/seededChance.ts';
import { logOf } from '../../support/subAgentBench.ts';
import { type Scenario, until } from './scenarios.ts';
import { SimulatedEngine } from './simulatedEngine.ts';

export const ID = 'same';
const OPEN = { cwd: '/', owner: 'somebody' };

/** The log of the conversation, and those of its sub-agents in the order of their first entries. */
export type Logs = readonly (readonly LogEntry[])[];

/** Its reply depends on how many there were, so a repeated call has the same one. */
function modelOf({ replies, tasks = {}, window, context = '' }: Scenario, log: () => readonly LogEntry[]): Model {
  return {
    id: 'scripted',
    ...window,
    async *stream({ tools, messages, system }): AsyncIterable<ModelPart> {
      if (!system.includes(context)) throw new Error('the context is missing');
      if (tools.length === 0 && messages.length === 1 && window && 'contextWindow' in window) {
        yield t('A summary.');
        return yield finish('stop');
      }
      // A summary takes the place of messages. Then the log says how many replies there were.
      const given =
        window && 'contextWindow' in window
          ? log().filter(({ type }) => type === 'model-reply').length
          : messages.filter(({ role }) => role === 'assistant').length;
      const [first] = messages[0]?.content ?? [];
      const script = (first?.type === 'text' && tasks[first.text]) || replies;
      const reply = script[given] ?? 'beyond the script';
      const parts = typeof reply === 'string' ? [t(reply)] : reply;
      yield* parts;
      yield finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop');
    },
  };
}

/** Which tools have been started. */
function startedTools() {
  const names = new Set<string>();
  const execute: ExecuteTool = (definition, args, context) => {
    names.add(definition.name);
    return definition.execute(args as never, context);
  };
  return { ports: { execute }, started: (name: string) => until(`${name} runs`, () => names.has(name)) };
}

export async function embedded(scenario: Scenario): Promise<Logs> {
  const store = memoryStore();
  let conversation: Conversation | undefined;
  const log = () => conversation?.log() ?? [];
  const tools = startedTools();
  const agent = createAgent({ ...scenario.options, model: modelOf(scenario, log), store, ports: tools.ports });
  conversation = await agent.open(ID, OPEN);
  let acts = 0;
  await scenario.play({
    log,
    started: tools.started,
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
  return [entries, ...(await Promise.all([...subAgentIds(entries)].map((id) => logOf(store, id))))];
}

/** Seed 0: no attempt ends early, but for `dies`. `ended` receives the number of points at which an attempt could end. */
export async function held(
  scenario: Scenario,
  seed: number,
  { dies, ended }: { dies?(point: number): boolean; ended?(points: number): void } = {},
): Promise<Logs> {
  const faults: string[] = [];
  const tools = startedTools();
  const agent = engineAgentOf(
    createAgent({ ...scenario.options, model: modelOf(scenario, () => engine.log), ports: tools.ports }),
  );
  if (!agent) throw new Error('the agent is not of this process');
  const engine: SimulatedEngine = new SimulatedEngine({
    chance: chance(seed),
    conversationId: ID,
    deaths: seed === 0 ? 0 : (scenario.deaths ?? 0.1),
    ...(dies && { dies }),
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
  await scenario.play({ log: () => engine.log, started: tools.started, ask, restart: () => engine.atRest() });
  await engine.atRest();
  expect(faults).toEqual([]);
  await agent.close();
  ended?.(engine.points);
  return [engine.log, ...[...subAgentIds(engine.log)].map((id) => engine.logOf(id))];
}

/** Without times. Each id that a host makes becomes its place in the log. */
export const comparable = (logs: Logs): string[][] => logs.map(comparableLog);

function comparableLog(log: readonly LogEntry[]): string[] {
  const names = new Map<string, string>();
  for (const entry of log) {
    const { runId } = entry;
    if (runId && !names.has(runId)) names.set(runId, `run ${names.size + 1}`);
    if ('messageId' in entry && runId === `run_${entry.messageId}`) names.set(entry.messageId, 'its message');
  }
  return log.map(({ at: _, ...entry }) => {
    let text = JSON.stringify(entry).replace(/"createdAt":\d+/, '"createdAt":0');
    for (const [id, name] of names) text = text.replaceAll(id, name);
    return text;
  });
}
