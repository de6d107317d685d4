/**
 * The interface between a conversation and its sub-agents, which src/subAgents implements. Invariant: a conversation without
 * sub-agents has no implementation and no cost, and an app without any has none of their code.
 */
import type {
  CallRecord,
  Counters,
  CycleRequest,
  Decision,
  DecisionReceipt,
  Json,
  LogEntry,
  LogState,
  NewEntry,
  PendingCall,
  RunOutput,
  Settlement,
  UsageCost,
} from '../../machines/internal.ts';
import type { Policies } from '../agentPolicies.ts';
import type { ConversationStatus } from '../live.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import {
  definitionOf,
  SPAWN,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
} from '../tools/tool.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import type { Command } from './commands.ts';
import type { CurrentRequest, RequestNames } from './currentRequest.ts';
import type { LiveFeed } from './status.ts';

/** The reason of a call whose sub-agents wait. */
export const WAITS = 'sub-agent';

/**
 * The sub-agents' calls that a suspended spawn call waits for, as listed in the payload of its suspension. Any payload is
 * safe to read.
 */
export function pendingWithin(callId: string, payload: Json | undefined): PendingCall[] {
  return listOf(objectOf(payload).waiting).flatMap((child) => {
    const details = listOf(child.pending);
    return (Array.isArray(child.calls) ? child.calls : []).flatMap((id): PendingCall[] => {
      if (typeof id !== 'string') return [];
      const call = details.find((each) => each.callId === id) ?? {};
      const { name = '', args = null, reason = WAITS, suspension = 1, payload: asked } = call;
      const shown = { callId: id, name: String(name), args, reason: String(reason), suspension: Number(suspension) };
      return [{ ...shown, ...(asked !== undefined && { payload: asked }), path: [callId, id] }];
    });
  });
}

type Fields = { readonly [key: string]: Json };
const objectOf = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
const listOf = (value: Json | undefined): Fields[] => (Array.isArray(value) ? value.map(objectOf) : []);

/** A task of a spawn call. */
export interface Task {
  /** Chosen by the model; unique within its call. */
  id: string;
  task: string;
}

/** The sub-agents of one conversation. */
export interface SubAgents {
  /** Calls of sub-agents that wait for a person, each with its path. */
  readonly pending: readonly PendingCall[];
  /** Calls of sub-agents whose outcome is unknown and not settled, each with its path. */
  readonly unsettled: readonly PendingCall[];
  /** None of them works, and none is being ended. */
  readonly isIdle: boolean;
  /** Sub-agents with open conversations; observers are notified of each that is opened. */
  observeOpened(opened: (child: OpenedChild) => void): { readonly now: readonly OpenedChild[]; stop(): void };
  /** The call waits only for calls of its sub-agents: the call itself needs no decision. */
  waitsWithin(record: CallRecord): boolean;
  /** A call of a sub-agent, and the ids that lead to it. */
  find(callId: string): { record: CallRecord; path: string[] } | undefined;
  /** Passes a decision to the sub-agent with the call. */
  decide(decision: Decision): Promise<DecisionReceipt>;
  /** Passes a settlement to the sub-agent with the call. */
  settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'>;
  /** Reserves an id for a call of this conversation; false where its parent or another sub-agent has it. */
  reserveCallId(callId: string): boolean;
  /** True from the call of `run` until its result. */
  isRunning(callId: string): boolean;
  /** Carries out the tasks of a spawn call, or continues them. */
  run(tasks: readonly Task[], context: ToolContext): Promise<ToolResult>;
  /**
   * Reopens the sub-agents of a process that ended early. The answer must be stored before the conversation starts. `isHeld`: sub-agents
   * receive nothing before their parent is open, so those of calls that have their result end in `endLeft`.
   */
  restore(isHeld: boolean): Promise<NewEntry[]>;
  /** Ends the sub-agents that `restore` has left. */
  endLeft(): void;
  /** Releases every sub-agent after its entries are durable. */
  close(): Promise<void>;
}

/** The identity of an agent or a sub-agent, and the rules of its conversations. */
export interface AgentProfile {
  models: readonly [Model, ...Model[]];
  toolbox: Toolbox;
  plugins: readonly Plugin[];
  policies: Policies;
  instructions: string;
  named: RequestNames;
  /** Present where there may be sub-agents, or for a sub-agent. */
  makeSubAgents: MakeSubAgents | undefined;
}
/** A profile before its sub-agents are resolved. */
export type OwnProfile = Omit<AgentProfile, 'makeSubAgents'>;

/** A conversation as its sub-agents or its parent use it. */
export interface ConversationCore {
  readonly logState: LogState;
  readonly log: { readonly entries: readonly LogEntry[]; listen(listener: (entry: LogEntry) => void): void };
  readonly live: LiveFeed;
  readonly status: ConversationStatus;
  readonly subAgents: SubAgents | undefined;
  readonly request: Pick<CurrentRequest, 'of' | 'origin'>;
  submit(command: Command): Promise<unknown>;
}

type ChildRun = { readonly result: Promise<Pick<RunOutput, 'termination' | 'cause' | 'error'>> };

/** The open conversation of a sub-agent. */
export interface ChildConversation {
  readonly pending: readonly PendingCall[];
  readonly unsettled: readonly PendingCall[];
  readonly status: ConversationStatus;
  send(task: string): ChildRun;
  resume(): ChildRun;
  decide(decision: Decision): Promise<DecisionReceipt>;
  settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'>;
  cancel(): Promise<void>;
  close(): Promise<void>;
}
export interface OpenedChild {
  conversation: ChildConversation;
  runtime: ConversationCore;
}

/** The usage of a conversation that its counters contain, and that of its sub-agents that they do not contain yet. */
export interface SpentUsage {
  readonly counted: Pick<Counters, 'tokens' | 'costUsd' | 'unpriced'>;
  readonly uncounted: readonly UsageCost[];
}

/** A sub-agent as its parent opens it. */
export interface ChildRequest {
  id: string;
  parent: { conversationId: string; callId: string };
  /** The request that the sub-agent works on. */
  above(): CycleRequest;
  spent(): SpentUsage;
  /** Its calls that a person was asked about, as the parent's log names them. */
  asked: readonly string[];
  closed(): void;
}

/** Opens a sub-agent's conversation in its parent's directory. */
export type OpenChild = (request: ChildRequest, profile: AgentProfile) => Promise<OpenedChild>;

/** Makes the sub-agents of a conversation during its opening. */
export interface MakeSubAgents {
  (parent: { id: string; runtime: ConversationCore; policies: Policies; openChild: OpenChild }): SubAgents;
  /** Opens one sub-agent without its parent. A sub-agent has no sub-agents of its own, so its profile lacks this. */
  readonly openApart?: OpenApart;
}

/** `isTaken`: another call of the parent or of its sub-agents has the id. Rejects with ConfigurationError for an unknown tool. */
export type OpenApart = (
  request: Omit<ChildRequest, 'asked' | 'closed'> & {
    tool: string;
    isTaken(callId: string): boolean;
    openChild: OpenChild;
  },
) => Promise<OpenedChild>;

const SUB_AGENTS = Symbol('sub-agents');
type CallContext = ToolContext & { [SUB_AGENTS]?: SubAgents };

/** Finds the sub-agents of a conversation by the context of a tool call. */
export function attachSubAgents(context: CallContext, subAgents: SubAgents): void {
  context[SUB_AGENTS] = subAgents;
}
export const subAgentsOf = (context: CallContext): SubAgents | undefined => context[SUB_AGENTS];

/** The part of an agent's profile that its spawn tools add. */
export interface SpawnPlan {
  makeSubAgents: MakeSubAgents;
  /** The policies of the sub-agents. */
  models: readonly Model[];
}
/** Only the definition of a spawn tool has this. */
export interface Spawn {
  options: object;
  /** Any of an agent's spawn tools represents all of them. Throws ConfigurationError where agent and tools do not fit. */
  plan(tools: readonly Tool[], agent: OwnProfile): SpawnPlan;
}

type SpawnDefinition = ToolDefinition & { [SPAWN]?: Spawn };

/** The definition of a tool that spawns sub-agents. */
export const spawning = <D extends object>(definition: D, spawn: Spawn): D =>
  Object.assign(definition, { [SPAWN]: spawn });
export const spawnOf = (tool: Tool): Spawn | undefined => (definitionOf(tool) as SpawnDefinition | undefined)?.[SPAWN];

/** Undefined for an agent without spawn tools. */
export function spawnPlanOf(tools: readonly Tool[], agent: OwnProfile): SpawnPlan | undefined {
  for (const tool of tools) {
    const spawn = spawnOf(tool);
    if (spawn) return spawn.plan(tools, agent);
  }
  return undefined;
}
