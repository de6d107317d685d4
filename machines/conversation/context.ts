/**
 * What a conversation knows around its runs, and what may come to it. Rule: a message is in the queue from its
 * acceptance until it is delivered, promoted or returned.
 */
import type { DoneActorEvent } from 'xstate';
import type { HeldDecision, OpenCalls, Rerun } from '../calls.ts';
import type { Counters } from '../counters.ts';
import type { SubAgentChange } from '../log/usage.ts';
import type { AppendFailed, EffectDone, EffectFailed } from '../ports.ts';
import type { RunChartOutput, Settings, Trigger } from '../run/context.ts';
import type { QueuedMessage, Settlement, StoredPart } from '../vocabulary.ts';

export interface ConversationInput {
  settings: Settings;
  open: OpenCalls;
  /** Calls the host wants retried, for the next resumption. */
  retries?: readonly Rerun[];
  counters: Counters;
  queue: readonly QueuedMessage[];
  /** Of the last run; empty where there was none. */
  runId: string;
  /** The last cycle is suspended. */
  waiting: boolean;
}

export interface ConversationContext extends Omit<ConversationInput, 'waiting' | 'retries'> {
  /** Set by the transition that starts the run. */
  trigger: Trigger;
  retries: readonly Rerun[];
  waiting: boolean;
  /** Ids of followUps that the run under way takes as steers: they were promoted together with its root. */
  drained: readonly string[];
  /** Takes the place of the cycle that waits, once that has its stop. */
  next: Omit<QueuedMessage, 'kind'> | undefined;
}

/** The last run that is in the log, and what the log counts. */
export interface Continued {
  runId: string;
  counters: Counters;
  /** Its cycle is over: only calls of ended cycles are to run again. */
  ended?: boolean;
  /** What waits, as the log has it; absent while the log has not heard of all that the chart has done. */
  waits?: Pick<OpenCalls, 'suspended' | 'decisions'> & { queue: readonly QueuedMessage[] };
}

export type ConversationEvent =
  | {
      type: 'message.sent';
      messageId: string;
      content: StoredPart[];
      kind: 'direct' | 'steer' | 'followUp';
      of?: Continued;
    }
  /** `runId`: of the run that continues; `continuation`: what the model is told where its own words came last. */
  | { type: 'resume.requested'; runId: string; continuation?: string; of?: Continued }
  /** Start the first queued followUp. */
  | { type: 'promotion.requested'; of?: Continued }
  /** The host takes a queued message back, or closes before it could be delivered. */
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested'; partial?: string }
  | { type: 'decision.arrived'; held: HeldDecision }
  /** `retry`: the call to run again when the conversation is resumed. */
  | { type: 'outcome.settled'; callId: string; how: Settlement; retry?: Rerun }
  | { type: 'steers.delivered'; messages: readonly QueuedMessage[] }
  | SubAgentChange
  | EffectDone
  | EffectFailed
  | AppendFailed
  | (DoneActorEvent<RunChartOutput, 'run'> & { type: 'xstate.done.actor.run' });

export const contextOf = (input: ConversationInput): ConversationContext => ({
  ...input,
  trigger: { kind: 'resume', of: '' },
  retries: input.retries ?? [],
  drained: [],
  next: undefined,
});

export type ConversationArgs = { context: ConversationContext; event: ConversationEvent };

/** The run that a message starts. */
export const runOf = (messageId: string): string => `run_${messageId}`;

type Sent = Extract<ConversationEvent, { type: 'message.sent' }>;

/** The message as it waits in the queue. */
export const queued = ({ messageId, kind, content }: Sent): QueuedMessage => ({
  messageId,
  kind: kind === 'steer' ? 'steer' : 'followUp',
  content,
});

export const nextFollowUp = (queue: readonly QueuedMessage[]): QueuedMessage | undefined =>
  queue.find(({ kind }) => kind === 'followUp');
