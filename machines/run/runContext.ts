/**
 * The context of a run (ids, counters, inbox, open calls), the events that it receives, its input and its output.
 * Invariant: no message, text or payload of a model or tool is held here. Those go from the event that carries them into the
 * log.
 */

import type { DoneActorEvent } from 'xstate';
import type {
  CallConcluded,
  HeldDecision,
  OpenCalls,
  RoundCall,
  Slot,
  ToolCallOutput,
  ToolResultEntry,
} from '../calls.ts';
import type { CompactionOutput } from '../compaction/compaction.machine.ts';
import { type Counters, limitReached, type SubAgentChange } from '../counters.ts';
import { resultFingerprint } from '../fingerprint.ts';
import { type Attempts, firstAttempt } from '../modelCall.machine.ts';
import type { ChartPolicies } from '../policies.ts';
import type { AppendFailed, ContextValue, EffectDone, EffectFailed, Phases, TimerElapsed } from '../ports.ts';
import type { ResumeToolCallOutput } from '../tools/resumeToolCall.machine.ts';
import type { ToolRoundOutput } from '../tools/toolRound.machine.ts';
import { skippedText } from '../transcript/texts.ts';
import type { Failure, FinishReason, NewEntry, QueuedMessage, Termination } from '../vocabulary.ts';

/** The settings, which are equal for every run of a conversation. */
export interface Settings {
  /** The id of the conversation. */
  conversationId: string;
  /** The policies of the charts. */
  policies: ChartPolicies;
  /** The phases that some plugin has. */
  phases: Phases;
  /** Ids of the agent's model and its fallbacks, without repetition. */
  models: readonly string[];
  /** Fractions of the context window above which a policy acts; absent where the size of the window is unknown. */
  context?: { warn?: number; prune?: number; compact?: number; exhaust?: number };
}

/** The reason why a run starts. */
export type Trigger =
  | { kind: 'message'; message: Omit<QueuedMessage, 'kind'> & { kind: 'direct' | 'followUp' } }
  /** `continuation`: the text for the model where its own words came last. */
  | { kind: 'resume'; of: string; continuation?: string }
  /** Calls of ended cycles run again. No cycle reopens, and no model is called. `of`: the last run. */
  | { kind: 'retry'; of: string };

/** The input of `runMachine`. */
export interface RunInput extends OpenCalls {
  /** The id of the run. */
  runId: string;
  /** The settings of every run of the conversation. */
  settings: Settings;
  /** The reason why the run starts. */
  trigger: Trigger;
  /** The counts of the log so far. */
  counters: Counters;
  /** The steers that are delivered with the first model call. */
  steers: readonly QueuedMessage[];
}

/** How the run ends. The transition that decides it sets this. */
export interface End {
  /** The end state of the chart. */
  termination: Termination;
  /** The reason for the end. */
  cause?: string;
  /** The failure that ended the run. */
  error?: Failure;
  /** The entries that a failed append contained. */
  lost?: Lost;
}

/** The entries a failed append took with it. */
export type Lost = readonly NewEntry[];

/** The context of `runMachine`. */
export interface RunContext extends RunInput {
  /** Number of the current model call within the cycle. */
  turn: number;
  /** The attempts of the current model call. */
  attempts: Attempts;
  /** The ids of the model and its fallbacks. */
  models: readonly string[];
  /** The policy for failed model calls. */
  retry: ChartPolicies['modelRetry'];
  /** Calls of the last reply that have neither a result nor a suspension yet. */
  calls: readonly RoundCall[];
  /** The outcomes of the last round's calls. */
  slots: readonly Slot[];
  /** The finish reason of the last reply. */
  reply: { finish: FinishReason; empty: boolean; judged?: true | undefined };
  /** A plugin asked to end the run after this reply. */
  terminate: { by: string; reason: string; stopped?: true } | undefined;
  /** The number of gates opened so far. */
  gates: number;
  /** Whether a gate is open. */
  gate: 'open' | 'closed';
  /** Calls that the open gate has not settled yet. */
  replaying: readonly string[];
  /** The outcomes of its calls. A call that is not settled yet is waiting for plugins only. */
  concluded: readonly ToolCallOutput[];
  /** Calls replayed since the last model call began, and the number that was settled. */
  replayed: number;
  /** The number of replayed calls that are settled. */
  settled: number;
  /** The number that was settled before a reply that does not include them. */
  settledDuringReply: number;
  /** The tool's request to end the run as soon as nothing else runs. */
  failure: Failure | undefined;
  /** How the run ends. */
  end: End;
  /** False if the end could not be stored. */
  durable: boolean;
}

/** The output of `runMachine`. */
export interface RunChartOutput extends OpenCalls {
  /** How the run ended. */
  end: End;
  /** False if the end could not be stored. */
  durable: boolean;
  /** The counts of the log after the run. */
  counters: Counters;
}

/** The events of `runMachine`. */
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
  | (DoneActorEvent<CompactionOutput, 'compaction'> & { type: 'xstate.done.actor.compaction' })
  | (DoneActorEvent<ToolRoundOutput, 'round'> & { type: 'xstate.done.actor.round' })
  | (DoneActorEvent<ResumeToolCallOutput, 'gate'> & { type: 'xstate.done.actor.gate' });

/** The parameter of every function of a chart. */
export type RunArgs = { context: RunContext; event: RunEvent };

export const contextOf = (input: RunInput): RunContext => ({
  ...input,
  turn: input.counters.turns,
  attempts: firstAttempt,
  models: input.settings.models,
  retry: input.settings.policies.modelRetry,
  calls: [],
  slots: [],
  reply: { finish: 'stop', empty: false },
  terminate: undefined,
  gates: 0,
  gate: 'closed',
  replaying: [],
  concluded: [],
  replayed: 0,
  settled: 0,
  settledDuringReply: 0,
  failure: undefined,
  end: { termination: 'NaturalEnd', cause: 'end_turn' },
  durable: true,
});

/** Early decisions whose call never suspended. A call that keeps its turn may still suspend. */
export const expiredDecisions = ({ decisions, suspended, kept }: RunContext) =>
  decisions.filter(({ callId }) => ![...suspended, ...kept].some(({ call }) => call.callId === callId));

/** The output of the run, with the calls and decisions that outlive it. */
export function outputOf(context: RunContext): RunChartOutput {
  const { end, durable, counters, suspended, kept, reruns } = context;
  const over = new Set(expiredDecisions(context));
  const decisions = context.decisions.filter((held) => !over.has(held));
  return { end, durable, counters, suspended, kept, reruns, decisions };
}

/** The cause that ends the run before its next model call, if any. A run that only retries calls ends before its first model call. */
export const limitOf = ({ counters, settings, trigger }: RunContext): string | undefined =>
  trigger.kind === 'retry' ? 'end_turn' : limitReached(counters, settings.policies.limits);

/** The steers that are delivered now. */
export const dueSteers = ({ steers, settings }: RunContext): readonly QueuedMessage[] =>
  settings.policies.queueDrain === 'all' ? steers : steers.slice(0, 1);

export const roundOf = (event: RunEvent): ToolRoundOutput =>
  event.type === 'xstate.done.actor.round' ? event.output : { kind: 'stopped', slots: [] };

export const outputsIn = ({ slots }: ToolRoundOutput): (ToolCallOutput | undefined)[] =>
  slots.map(({ output }) => output);

/** A steer leaves nothing waiting. A refused call needs no turn, and a later check would not know the reason. */
export const isAnswered = ({ status, call }: Slot, steered: string | undefined): boolean =>
  status === 'queued' && (steered !== undefined || call.refused !== undefined);

type ToolAnswer = Pick<ToolResultEntry, 'callId' | 'outcome' | 'code' | 'content'>;

/** The results of the calls of a round that are answered without a turn, each with its fingerprint. */
export const answersIn = ({ slots, steered }: ToolRoundOutput): (ToolAnswer & { fingerprint: string })[] =>
  slots
    .filter((slot) => isAnswered(slot, steered))
    .map(({ call: { callId, fingerprint, refused } }) => {
      const [text, how] =
        steered === undefined && refused
          ? [refused.text, { outcome: 'failed' as const, code: refused.code }]
          : [skippedText(steered ?? ''), { outcome: 'cancelled' as const, code: 'skipped' }];
      const result = { content: [{ type: 'text' as const, text }], ...how };
      return { callId, ...result, fingerprint: resultFingerprint(fingerprint, result) };
    });

/** The failure of a tool that ends the run: the first one, if the policy requires that. */
export function toolFailureOf(
  context: RunContext,
  outputs: readonly (ToolCallOutput | undefined)[],
): Failure | undefined {
  if (context.settings.policies.onToolFailure !== 'failRun') return undefined;
  return context.failure ?? outputs.find((output) => output?.failure)?.failure;
}

export const failureInRound = (context: RunContext, round: ToolRoundOutput): Failure | undefined =>
  toolFailureOf(context, outputsIn(round));

export const withRound = (context: RunContext, event: RunEvent): RunContext =>
  event.type === 'xstate.done.actor.round' ? { ...context, slots: event.output.slots } : context;

export const measured = (event: RunEvent): ContextValue | undefined =>
  event.type === 'effect.done' && event.value.kind === 'context' ? event.value : undefined;

/** The id of the timer that ends a run after its time limit. */
export const deadlineId = ({ runId }: { runId: string }): string => `${runId}/deadline`;
