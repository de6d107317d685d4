/**
 * What a conversation knows of its sub-agents: an interface, which src/subAgents implements. Rule: a conversation without
 * sub-agents has nothing behind it and pays nothing, and an app without any has none of their code.
 */
import type {
  CallRecord,
  Decision,
  DecisionReceipt,
  LogEntry,
  LogState,
  NewEntry,
  PendingCall,
  RunOutput,
  Settlement,
} from '../../machines/internal.ts';
import type { ConversationStatus } from '../live.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import type { Policies } from '../policies.ts';
import { definitionOf, type Tool, type ToolContext, type ToolDefinition, type ToolResult } from '../tools/tool.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import type { Command } from './commands.ts';
import type { LiveFeed } from './status.ts';

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
  /** Those whose conversations are open; who observes them is told of each that is opened. */
  observeOpened(opened: (child: OpenedChild) => void): { readonly now: readonly OpenedChild[]; stop(): void };
  /** The call waits only for what is pending within it: nobody is to decide about the call itself. */
  waitsWithin(record: CallRecord): boolean;
  /** A call of a sub-agent, and the ids that lead to it. */
  find(callId: string): { record: CallRecord; path: string[] } | undefined;
  /** Takes a decision to the sub-agent whose call it is about. */
  decide(decision: Decision): Promise<DecisionReceipt>;
  /** Takes a settlement to the sub-agent whose call it is about. */
  settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'>;
  /** Keeps an id for a call of this conversation; false where its parent or another sub-agent has it. */
  reserveCallId(callId: string): boolean;
  /** Does the tasks of a spawn call, or continues them. */
  run(tasks: readonly Task[], context: ToolContext): Promise<ToolResult>;
  /** Reopens what a dead process left behind; the answer is to be stored before the conversation starts. */
  restore(): Promise<NewEntry[]>;
  /** Lets go of every sub-agent once what it writes is durable. */
  close(): Promise<void>;
}

/** Who an agent or a sub-agent is, and the rules of its conversations. */
export interface AgentProfile {
  models: readonly [Model, ...Model[]];
  toolbox: Toolbox;
  plugins: readonly Plugin[];
  policies: Policies;
  instructions: string;
  /** Where there may be sub-agents, or this is one. */
  makeSubAgents: MakeSubAgents | undefined;
}
/** A profile before its sub-agents are known. */
export type OwnProfile = Omit<AgentProfile, 'makeSubAgents'>;

/** A conversation from inside, as far as its sub-agents or its parent need it. */
export interface ConversationCore {
  readonly logState: LogState;
  readonly log: { readonly entries: readonly LogEntry[]; listen(listener: (entry: LogEntry) => void): void };
  readonly live: LiveFeed;
  readonly status: ConversationStatus;
  readonly subAgents: SubAgents | undefined;
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

/** Opens a sub-agent's conversation in its parent's directory. */
export type OpenChild = (
  request: { id: string; parent: { conversationId: string; callId: string }; closed(): void },
  profile: AgentProfile,
) => Promise<OpenedChild>;

/** Makes the sub-agents of a conversation that is being opened. */
export type MakeSubAgents = (parent: {
  id: string;
  runtime: ConversationCore;
  policies: Policies;
  openChild: OpenChild;
}) => SubAgents;

const SUB_AGENTS = Symbol('sub-agents');
type CallContext = ToolContext & { [SUB_AGENTS]?: SubAgents };

/** The context of a tool call leads to the sub-agents of its conversation. */
export function attachSubAgents(context: CallContext, subAgents: SubAgents): void {
  context[SUB_AGENTS] = subAgents;
}
export const subAgentsOf = (context: CallContext): SubAgents | undefined => context[SUB_AGENTS];

/** What the spawn tools of an agent add to its profile. */
export interface SpawnPlan {
  makeSubAgents: MakeSubAgents;
  /** Of the sub-agents. */
  models: readonly Model[];
}
/** What only the definition of a spawn tool has. */
export interface Spawn {
  options: object;
  /** Any of an agent's spawn tools speaks for all of them. Throws ConfigurationError where agent and tools do not fit. */
  plan(tools: readonly Tool[], agent: OwnProfile): SpawnPlan;
}

const SPAWN = Symbol('spawn');
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
