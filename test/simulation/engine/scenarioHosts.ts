/**
 * The hosts of a scenario: an embedded conversation, one that another process reads and asks through a store, and one that a simulated
 * engine holds, whose attempts end at any point. Each returns the log of the conversation and those of its sub-agents.
 */
import { engineAgentOf } from '../../../src/agent.ts';
import { carryOutHere } from '../../../src/conversation/served/remoteActs.ts';
import {
  type Agent,
  type Conversation,
  createAgent,
  type LogEntry,
  type ModelPart,
  memoryStore,
} from '../../../src/index.ts';
import type { Model } from '../../../src/models/model.ts';
import { holdConversation } from '../../../src/restate/chain/holdConversation.ts';
import { type Act, type LogStore, subAgentIds } from '../../../src/stores/logStore.ts';
import type { ExecuteTool } from '../../../src/tools/execute.ts';
import { finish, t } from '../../support/replyParts.ts';
import { chance } from '../../support/seededChance.ts';
import { type Scenario, until } from './scenarios.ts';
import { SimulatedEngine } from './simulatedEngine.ts';

export const ID = 'same';
export const OPEN = { cwd: '/', owner: 'somebody' };

/** The log of the conversation, and those of its sub-agents in the order of their first entries. */
export type Logs = readonly (readonly LogEntry[])[];

/** Its reply depends on how many there were, so a repeated call has the same one. */
function modelOf(
  { replies, tasks = {}, window, context = '', tokens }: Scenario,
  log: () => readonly LogEntry[],
): Model {
  return {
    id: 'scripted',
    ...window,
    async *stream({ tools, messages, system }): AsyncIterable<ModelPart> {
      if (!system.includes(context)) throw new Error('the context is missing');
      if (tools.length === 0 && messages.length === 1 && window && 'contextWindow' in window) {
        yield t('A summary.');
        return yield finish('stop');
      }
      // A summary takes the place of messages. In that case the log contains the number of replies.
      const replied =
        window && 'contextWindow' in window
          ? log().filter(({ type }) => type === 'model-reply').length
          : messages.filter(({ role }) => role === 'assistant').length;
      const [first] = messages[0]?.content ?? [];
      const script = (first?.type === 'text' && tasks[first.text]) || replies;
      const reply = script[replied] ?? 'beyond the script';
      const parts = typeof reply === 'string' ? [t(reply)] : reply;
      yield* parts;
      yield finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop', tokens);
    },
  };
}

/** The tools that have been started. */
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
  return [entries, ...(await Promise.all([...subAgentIds(entries)].map((id) => storedLog(store, id))))];
}

async function storedLog(store: LogStore, id: string): Promise<LogEntry[]> {
  const handle = await store.open(id);
  const entries: LogEntry[] = [];
  for await (const entry of handle.read()) entries.push(entry);
  await handle.close();
  return entries;
}

/** The holder of the conversation: a process, or an engine with a worker. */
export interface Holder {
  /** Another process takes its place. */
  restart(): Promise<void>;
  /** Resolves when nothing is under way. Then the logs are read. */
  atRest(): Promise<void>;
  close(): Promise<void>;
}

/** The logs as a process has them that shares the store with the holder. */
export async function followed(
  scenario: Scenario,
  store: LogStore,
  begin: (agentOf: (store?: LogStore) => Agent) => Promise<Holder>,
): Promise<Logs> {
  const { follow, act } = store;
  if (!follow || !act) throw new Error('the store is not of many processes');
  const entries: LogEntry[] = [];
  const tools = startedTools();
  const model = modelOf(scenario, () => entries);
  const holder = await begin((own) =>
    createAgent({ ...scenario.options, model, ports: tools.ports, ...(own && { store: own }) }),
  );
  let acts = 0;
  const ask = (asked: object): Promise<unknown> => {
    acts += 1;
    return act.call(store, ID, { ...asked, actId: `act-${acts}` } as unknown as Act);
  };
  const items = follow.call(store, ID)[Symbol.asyncIterator]();
  const reading = (async () => {
    for (let item = await items.next(); !item.done; item = await items.next())
      if ('seq' in item.value) entries.push(item.value);
  })();
  await scenario.play({ log: () => entries, started: tools.started, ask, restart: () => holder.restart() });
  await holder.atRest();
  await items.return?.();
  await reading;
  const children = await Promise.all([...subAgentIds(entries)].map((id) => followedLog(store, id)));
  await holder.close();
  return [entries, ...children];
}

/** The log of a conversation that is at rest. */
async function followedLog(store: LogStore, id: string): Promise<LogEntry[]> {
  const length = (await store.stateOf?.(id))?.length ?? 0;
  const entries: LogEntry[] = [];
  if (length === 0) return entries;
  for await (const item of store.follow?.(id) ?? []) {
    if ('seq' in item) entries.push(item);
    if (entries.length === length) break;
  }
  return entries;
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
  if (faults.length > 0) throw new Error(faults.join('\n'));
  await agent.close();
  ended?.(engine.points);
  return [engine.log, ...[...subAgentIds(engine.log)].map((id) => engine.member(id).log)];
}

/**
 * Without times. Each id that a host makes becomes its place in the log. An entry that is stored after the end of a run names the run, or
 * none: that depends on how long the store takes.
 */
export const comparable = (logs: Logs): string[][] => logs.map(comparableLog);

function comparableLog(log: readonly LogEntry[]): string[] {
  const names = new Map<string, string>();
  for (const entry of log) {
    const { runId } = entry;
    if (runId && !names.has(runId)) names.set(runId, `run ${names.size + 1}`);
    if ('messageId' in entry && runId === `run_${entry.messageId}`) names.set(entry.messageId, 'its message');
  }
  const finished = new Set<string | null>();
  return log.map(({ at: _, ...entry }) => {
    const runId = finished.has(entry.runId) ? null : entry.runId;
    if (entry.type === 'checkpoint' && entry.boundary === 'RunFinished') finished.add(entry.runId);
    let text = JSON.stringify({ ...entry, runId }).replace(/"createdAt":\d+/, '"createdAt":0');
    for (const [id, name] of names) text = text.replaceAll(`"${id}"`, `"${name}"`);
    return text;
  });
}
