/**
 * What stands within a conversation: the calls of its sub-agents. Rule: a conversation without any has nothing here and
 * pays nothing, and an app without any has none of their code; who asks for it knows the conversation by its fold.
 */
import type {
  CallRecord,
  Decision,
  DecisionReceipt,
  Knowledge,
  NewEntry,
  PendingCall,
  Settlement,
} from '../../machines/internal.ts';
import type { Cast, Opened, Opening } from '../conversation/open.ts';
import type { Model } from '../models/model.ts';
import type { Policies } from '../policies.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Tool, ToolContext, ToolResult } from '../tools/tool.ts';
import type { Task } from './task.ts';

export interface Nested {
  /** Calls of sub-agents that wait for a person, each with its path. */
  readonly pending: readonly PendingCall[];
  /** Calls of sub-agents whose outcome is unknown and not settled, each with its path. */
  readonly unsettled: readonly PendingCall[];
  /** The call waits only for what is pending within it: nobody is to decide about the call itself. */
  waitsWithin(record: CallRecord): boolean;
  /** A call of a sub-agent, and the ids that lead to it. */
  find(callId: string): { record: CallRecord; path: string[] } | undefined;
  /** Takes a decision to the sub-agent whose call it is about. */
  decide(decision: Decision): Promise<DecisionReceipt>;
  /** Takes the host's word on an unknown outcome to the sub-agent whose call it is about. */
  settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'>;
  /** Keeps an id for a call of this conversation; false where another one of the family has it. */
  claims(callId: string): boolean;
  /** Does the tasks of a spawn call, or goes on with them. */
  raise(tasks: readonly Task[], context: ToolContext): Promise<ToolResult>;
  /** Joins what a dead process left behind; the answer is to be stored before the conversation starts. */
  restore(): Promise<NewEntry[]>;
  /** Lets go of every sub-agent once what it writes is durable. */
  close(): Promise<void>;
}

/** Opens a sub-agent's conversation where its parent stands. */
export type Birth = (opening: Omit<Opening, 'cwd' | 'attended'>, cast: Cast) => Promise<Opened>;
/** Makes what stands within a conversation that is being opened. */
export type Nest = (around: { id: string; runtime: Runtime; policies: Policies; birth: Birth }) => Nested;

const nests = new WeakMap<Knowledge, Nested>();
const nestsOfCalls = new WeakMap<ToolContext, Nested>();

export const nestedIn = (known: Knowledge): Nested | undefined => nests.get(known);
export const nestWithin = (known: Knowledge, nested: Nested): void => void nests.set(known, nested);

/** The context of a tool call leads to what stands within its conversation. */
export function adopt(context: ToolContext, known: Knowledge): void {
  const nested = nests.get(known);
  if (nested) nestsOfCalls.set(context, nested);
}
export const nestedOf = (context: ToolContext): Nested | undefined => nestsOfCalls.get(context);

/** What the spawn tools of an agent make of it. */
export interface Spawning {
  nest: Nest;
  /** Of the sub-agents. */
  models: readonly Model[];
}
/** Throws ConfigurationError where the agent and its spawn tools do not fit. */
export type Spawner = (tools: readonly Tool[], agent: Omit<Cast, 'nest'>) => Spawning;

const spawners = new WeakMap<Tool, Spawner>();
export const spawnsBy = (tool: Tool, spawner: Spawner): void => void spawners.set(tool, spawner);

/** Any of an agent's spawn tools speaks for all of them. */
export function spawningOf(tools: readonly Tool[], agent: Omit<Cast, 'nest'>): Spawning | undefined {
  for (const tool of tools) {
    const spawner = spawners.get(tool);
    if (spawner) return spawner(tools, agent);
  }
  return undefined;
}
