/**
 * An agent for tests: scripted model, virtual time, counted ids, and access to every running actor. Invariant: a test reads here only the
 * facts that any caller can read, except for the actors, which come from the inspection hook.
 */
import { expect, onTestFinished } from 'vitest';
import type { AnyActorRef } from 'xstate';
import {
  type Agent,
  type AgentOptions,
  type Conversation,
  createAgent,
  type LogEntry,
  type LogStore,
  memoryStore,
} from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import { type Reply, type ScriptedModel, scripted } from './scriptedReplies.ts';
import { VirtualClock } from './virtualClock.ts';

export interface BenchOptions extends Omit<AgentOptions, 'model' | 'ports' | 'inspect'> {
  replies?: readonly Reply[];
  model?: ScriptedModel;
  clock?: VirtualClock;
  /** Default: 0, no jitter. */
  random?: () => number;
}
export interface Bench {
  agent: Agent;
  conversation: Conversation;
  model: ScriptedModel;
  clock: VirtualClock;
  store: LogStore;
  /** Ids of the running actors, without the conversation's own. */
  alive(): string[];
  /** The context of the newest actor with this id. */
  contextOf(id: string): unknown;
}

/** An agent with one open conversation `c`. A second call with the same store is a restart. */
export async function bench(options: BenchOptions = {}): Promise<Bench> {
  const {
    replies = [],
    model = scripted(replies),
    clock = new VirtualClock(),
    store = memoryStore(),
    random = () => 0,
    ...rest
  } = options;
  const actors = new Set<AnyActorRef>();
  let ids = 0;
  const born = nextBirth();
  const agent = createAgent({
    ...rest,
    model,
    store,
    inspect: (event) => {
      const { type, actorRef } = event as { type: string; actorRef: AnyActorRef };
      if (type === '@xstate.actor') actors.add(actorRef);
    },
    ports: {
      now: clock.now,
      setTimer: clock.setTimer,
      random,
      newId: () => {
        ids += 1;
        return `${born}${ids}`;
      },
    },
  });
  const conversation = await agent.open('c');
  const { length: stored } = conversation.log();
  onTestFinished(() => void expect(misshapen(conversation.log().slice(stored))).toEqual([]));
  const alive = (): string[] =>
    [...actors].filter((actor) => actor._parent && actor.getSnapshot().status === 'active').map(({ id }) => id);
  const contextOf = (id: string): unknown =>
    [...actors]
      .filter((actor) => actor.id === id)
      .at(-1)
      ?.getSnapshot().context;
  return { agent, conversation, model, clock, store, alive, contextOf };
}

/** Entries that violate the schema of logs. */
const misshapen = (log: readonly LogEntry[]): unknown[] =>
  log.flatMap((entry) => (logEntrySchema.safeParse(entry).success ? [] : [entry]));

let births = 0;
/** Ids differ from agent to agent, like those of two processes. */
function nextBirth(): string {
  births += 1;
  return `b${births}i`;
}

/** Closes the agent and opens the same conversation with another one on the same store. */
export async function restart(old: Bench, options: BenchOptions = {}): Promise<Bench> {
  await old.agent.close();
  return bench({ ...options, store: old.store });
}

/** Resolves with the first entry that matches, stored or future. */
export function entry<T extends LogEntry['type']>(
  conversation: Conversation,
  type: T,
  wanted: (entry: Extract<LogEntry, { type: T }>) => boolean = () => true,
): Promise<Extract<LogEntry, { type: T }>> {
  return new Promise((resolve) => {
    const subscription = conversation.log$().subscribe((each) => {
      if (each.type !== type || !wanted(each as Extract<LogEntry, { type: T }>)) return;
      resolve(each as Extract<LogEntry, { type: T }>);
      queueMicrotask(() => subscription.unsubscribe());
    });
  });
}

export const types = (log: readonly LogEntry[]): string[] => log.map(({ type }) => type);

const textIn = (content: readonly { type: string; text?: string }[]): string =>
  content.map((part) => part.text ?? '').join('');

function words(item: LogEntry): (string | number | undefined)[] {
  switch (item.type) {
    case 'user-message':
      return [item.kind, textIn(item.content)];
    case 'message-queued':
      return [item.kind, textIn(item.content)];
    case 'agent-output':
      return item.item.type === 'tool-call' ? [item.item.callId] : [item.item.text];
    case 'tool-result':
      return [item.callId, item.outcome, item.code];
    case 'tool-suspended':
    case 'decision':
    case 'decision-consumed':
      return [item.callId, item.suspension];
    case 'tool-started':
    case 'tool-allowed':
      return [item.callId];
    case 'checkpoint':
      return [item.boundary];
    case 'run-stop':
      return [item.reason, item.cause];
    case 'run-suspended':
      return item.waiting;
    case 'message-returned':
      return [item.why];
    case 'model-retry':
      return [item.attempt, item.waitMs, item.model];
    case 'diagnostic':
    case 'notice':
      return [item.code];
    case 'continuation':
      return [item.why];
    default:
      return [];
  }
}

/** The log as short lines, without the conversation's first entry: `tool-result c1 succeeded`. */
export const story = (log: readonly LogEntry[]): string[] =>
  log
    .filter(({ type }) => type !== 'conversation')
    .map((item) => [item.type, ...words(item).filter((word) => word !== undefined)].join(' '));

/** The lines of a story whose first word is one of these. */
export const only = (log: readonly LogEntry[], ...wanted: LogEntry['type'][]): string[] =>
  story(log.filter(({ type }) => wanted.includes(type)));

export const resultText = (log: readonly LogEntry[], callId: string): string => {
  const result = log.find((each) => each.type === 'tool-result' && each.callId === callId);
  return result?.type === 'tool-result' ? textIn(result.content) : '';
};

/** A store that contains this log, as another process finds it after the writer has died. */
export async function storeWith(log: readonly LogEntry[]): Promise<LogStore> {
  const store = memoryStore();
  const handle = await store.open('c');
  await handle.append([...log], 0);
  await handle.close();
  return store;
}
