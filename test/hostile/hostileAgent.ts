/**
 * An agent for hostile tests: a model with a script of parts, tools that a test provides, and a clock that only the
 * test moves. Invariant: everything uses the public names.
 */
import { z } from 'zod';
import {
  type AgentOptions,
  type Conversation,
  createAgent,
  defineTool,
  type LogEntry,
  type Message,
  type Model,
  type ModelPart,
  type ModelRequest,
  type RunResult,
  type Tool,
} from '../../src/index.ts';
import { watched } from './hostileChecks.ts';

export type Reply = readonly ModelPart[] | ((request: ModelRequest) => readonly ModelPart[]);

export const say = (text: string): ModelPart[] => [
  { type: 'text-delta', text },
  { type: 'finish', reason: 'stop' },
];
/** A call as a model makes it: the arguments are text. */
export const call = (callId: string, name: string, args = '{}'): ModelPart => ({
  type: 'tool-call',
  callId,
  name,
  args,
});
export const calls = (...parts: ModelPart[]): ModelPart[] => [...parts, { type: 'finish', reason: 'tool-calls' }];

export interface ScriptedModel extends Model {
  readonly requests: ModelRequest[];
}

/** Plays one reply a call; after the last one it replies "done". */
export function scripted(replies: readonly Reply[], more: Partial<Model> = {}): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    id: 'scripted',
    ...more,
    requests,
    async *stream(request) {
      const reply = replies[requests.length] ?? say('done');
      requests.push(request);
      yield* typeof reply === 'function' ? reply(request) : reply;
    },
  };
}

/** A tool without parameters. */
export const plainTool = (name: string, execute: (args: unknown, context: never) => unknown): Tool =>
  defineTool({ name, description: name, parameters: z.object({}), execute: execute as never });

/** An object with a custom `then`. */
export const thenable = (then: unknown): object => Object.fromEntries([['then', then]]);

/** Takes one required text. */
export const pathTool = (name: string, seen: unknown[] = [], answer: unknown = 'read'): Tool =>
  defineTool({
    name,
    description: name,
    parameters: z.object({ path: z.string() }),
    execute: (args) => {
      seen.push(args);
      return answer;
    },
  });

/** Waits for a person's approval before it runs. */
export const askedTool = (name: string, seen: unknown[] = [], answer: unknown = 'ran'): Tool =>
  defineTool({
    name,
    description: name,
    parameters: z.object({ path: z.string().optional() }),
    needsApproval: true,
    execute: (args, { decision }) => {
      seen.push(decision === undefined ? { args } : { args, decision });
      return answer;
    },
  });

export async function opened(options: AgentOptions, id?: string): Promise<Conversation> {
  return watched(await createAgent(options).open(id));
}

export interface Played {
  conversation: Conversation;
  result: RunResult;
  log: readonly LogEntry[];
}

/** One complete request in a new conversation. */
export async function play(options: AgentOptions): Promise<Played> {
  const conversation = await opened(options);
  const result = await conversation.send('go').result;
  return { conversation, result, log: conversation.log() };
}

/** One reply with one call to one tool; then "done". */
export const playTool = (tool: Tool, args = '{}', options: Partial<AgentOptions> = {}): Promise<Played> =>
  play({ model: scripted([calls(call('c1', tool.name, args))]), tools: [tool], ...options });

type Of<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;
export const entriesOf = <T extends LogEntry['type']>(log: readonly LogEntry[], type: T): Of<T>[] =>
  log.filter((entry): entry is Of<T> => entry.type === type);

export function resultOf(log: readonly LogEntry[], callId = 'c1'): Of<'tool-result'> | undefined {
  return entriesOf(log, 'tool-result').find((entry) => entry.callId === callId);
}
/** The text of a call's result. */
export const resultText = (log: readonly LogEntry[], callId = 'c1'): string =>
  (resultOf(log, callId)?.content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
export const codesOf = (log: readonly LogEntry[]): string[] => entriesOf(log, 'diagnostic').map(({ code }) => code);
/** Outcome of a call with its code, such as `failed timeout`. */
export const outcomeOf = (log: readonly LogEntry[], callId = 'c1'): string => {
  const entry = resultOf(log, callId);
  return entry ? [entry.outcome, entry.code].filter(Boolean).join(' ') : 'none';
};

/** Every call of an assistant message has one result, directly after it, in call order. */
export function pairedCalls(messages: readonly Message[]): boolean {
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at];
    if (message?.role === 'tool') return false;
    if (message?.role !== 'assistant') continue;
    for (const { callId } of message.toolCalls) {
      at += 1;
      const answer = messages[at];
      if (answer?.role !== 'tool' || answer.callId !== callId) return false;
    }
  }
  return true;
}

interface Alarm {
  at: number;
  fire: () => void;
}

/** A clock that only a test moves. `advance` fires due timers, in order of time. */
export function stillClock(start = 1_000) {
  let now = start;
  const alarms = new Set<Alarm>();
  return {
    now: () => now,
    setTimer(ms: number, fire: () => void) {
      const alarm = { at: now + ms, fire };
      alarms.add(alarm);
      return () => void alarms.delete(alarm);
    },
    get waiting() {
      return alarms.size;
    },
    async advance(ms: number) {
      const until = now + ms;
      for (;;) {
        const due = [...alarms].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        alarms.delete(due);
        now = Math.max(now, due.at);
        due.fire();
        await settle();
      }
      now = until;
    },
  };
}

/** Runs everything that needs no time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Waits for a condition that becomes true without time. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000; turn++) {
    if (condition()) return;
    await settle();
  }
  throw new Error('the condition did not come true');
}
