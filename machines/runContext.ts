/**
 * What a run knows while it is under way: ids, counters, inbox, and the calls that are open. Rule: no message, text or
 * payload of a model or tool is kept here; those go from the event that brings them into the log.
 */

import type { DoneActorEvent } from 'xstate';
import type { CallConcluded, HeldDecision, OpenCalls, RoundCall, Slot, ToolCallOutput } from './calls.ts';
import type { Counters } from './counters.ts';
import type { Attempts } from './modelCall.machine.ts';
import type { ChartPolicies } from './policies.ts';
import type { AppendFailed, EffectDone, EffectFailed, Phases, TimerElapsed } from './ports.ts';
import type { ResumeToolCallOutput } from './resumeToolCall.machine.ts';
import type { SubAgentChange } from './spending.ts';
import type { ToolRoundOutput } from './toolRound.machine.ts';
import type { Failure, FinishReason, NewEntry, QueuedMessage, StoredPart, Termination } from './vocabulary.ts';

/** What is the same for every run of a conversation. */
export interface Settings {
  conversationId: string;
  policies: ChartPolicies;
  phases: Phases;
  /** Ids of the agent's model and its fallbacks, without repetition. */
  models: readonly string[];
  /** Shares of the context window above which something happens; absent where no window is known. */
  context?: { warn?: number; prune?: number; exhaust?: number };
}

export type Trigger =
  | { kind: 'message'; message: { messageId: string; kind: 'direct' | 'followUp'; content: StoredPart[] } }
  /** `continuation`: what the model is told where its own words came last. */
  | { kind: 'resume'; of: string; continuation?: string }
  /** Calls of cycles that have ended run again; no cycle reopens, and no model is called. `of`: the last run. */
  | { kind: 'retry'; of: string };

export interface RunInput extends OpenCalls {
  runId: string;
  settings: Settings;
  trigger: Trigger;
  counters: Counters;
  steers: readonly QueuedMessage[];
}

/** How the run ends; set by the transition that decides it. */
export interface End {
  termination: Termination;
  cause?: string;
  error?: Failure;
  /** What a failed append took with it. */
  lost?: Lost;
}

export interface RunContext extends RunInput {
  /** Number of the current model call within the cycle. */
  turn: number;
  attempts: Attempts;
  models: readonly string[];
  retry: ChartPolicies['modelRetry'];
  /** Calls of the last reply that have neither a result nor a suspension yet. */
  calls: readonly RoundCall[];
  /** What became of the last round's calls. */
  slots: readonly Slot[];
  /** How the last reply ended. */
  reply: { finish: FinishReason; empty: boolean };
  /** A plugin asked to end the run after this reply. */
  terminate: { by: string; reason: string } | undefined;
  /** Gates opened so far. */
  gates: number;
  gate: 'open' | 'closed';
  /** Calls the open gate has not settled yet. */
  replaying: readonly string[];
  /** What its calls have come to; of one that is not settled yet only the plugins have not heard. */
  concluded: readonly ToolCallOutput[];
  /** Calls replayed since the last model call began, and how many of them were settled. */
  replayed: number;
  settled: number;
  /** How many of them were settled before the reply came that knows nothing of them. */
  untold: number;
  /** Of a tool, where it ends the run as soon as nothing beside it runs. */
  failure: Failure | undefined;
  end: End;
  durable: boolean;
}

export interface RunChartOutput extends OpenCalls {
  end: End;
  durable: boolean;
  counters: Counters;
}

/** The entries a failed append took with it. */
export type Lost = readonly NewEntry[];

export type RunEvent =
  | EffectDone
  | TimerElapsed
  | EffectFailed
  | AppendFailed
  /** `partial`: the text streamed so far, where the policy keeps it. */
  | { type: 'run.cancelled'; partial?: string }
  | { type: 'decision.arrived'; held: HeldDecision }
  | { type: 'message.steered'; message: QueuedMessage }
  | { type: 'message.returned'; messageId: string }
  | { type: 'call.suspended'; output: ToolCallOutput }
  | { type: 'call.settled'; output: ToolCallOutput }
  | CallConcluded
  | SubAgentChange
  | (DoneActorEvent<ToolRoundOutput, 'round'> & { type: 'xstate.done.actor.round' })
  | (DoneActorEvent<ResumeToolCallOutput, 'gate'> & { type: 'xstate.done.actor.gate' });
