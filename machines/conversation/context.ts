/**
 * The context of CONVERSATION, its events, and one function for each named change of the context. Invariant: a function
 * returns the fields that change, and reads only context and event.
 */
import type { DoneActorEvent } from 'xstate';
import { type HeldDecision, noOpenCalls, type OpenCalls, type Rerun } from '../calls.ts';
import { type Counters, countUsage, newCycle, type SubAgentChange, uncounted } from '../counters.ts';
import { choicesOf } from '../log/callRecord.ts';
import type { ChartPolicies } from '../policies.ts';
import type { AppendFailed, EffectDone, EffectFailed } from '../ports.ts';
import type { RunChartOutput, Settings, Trigger } from '../run/runContext.ts';
import { withGate } from '../tools/openCalls.ts';
import type {
  DecisionReceipt,
  NewEntry,
  QueuedMessage,
  RequestChoices,
  Settlement,
  StoredPart,
} from '../vocabulary.ts';

/** The input of `conversationMachine`. */
export interface ConversationInput {
  /** The settings of every run. */
  settings: Settings;
  /** The calls and decisions that earlier runs left open. */
  open: OpenCalls;
  /** Calls the host wants retried, for the next resumption. */
  retries?: readonly Rerun[];
  /** The counts of the log so far. */
  counters: Counters;
  /** The messages that are not delivered. */
  queue: readonly QueuedMessage[];
  /** The last run; empty where there was none. */
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
  /** The message that replaces the waiting cycle after the stop of that cycle is durable. */
  next: Omit<QueuedMessage, 'kind'> | undefined;
}

/** The last run in the log, and the counts of the log. */
export interface Continued {
  /** The id of the last run. */
  runId: string;
  /** The counts of the log. */
  counters: Counters;
  /** The cycle of that run has ended. A new run can only retry calls of ended cycles. */
  ended?: boolean;
  /** The calls and messages that wait according to the log. Absent while some entries of the chart are not in the log yet. */
  waits?: OpenCalls & { queue: readonly QueuedMessage[] };
}

/** An act of the host. The chart answers it under this id; an act without one needs no answer. */
export interface HostAct {
  /** The id of the act. */
  actId?: string;
  /** Its caller withdrew it before the chart took it. */
  withdrawn?: boolean;
}

/** The events of `conversationMachine`. */
export type ConversationEvent =
  | (HostAct & HostEvent)
  | { type: 'steers.delivered'; messages: readonly QueuedMessage[] }
  | EffectDone
  | EffectFailed
  | AppendFailed
  | (DoneActorEvent<RunChartOutput, 'run'> & { type: 'xstate.done.actor.run' });

/** The acts of the host. */
type HostEvent =
  | ({
      type: 'message.sent';
      messageId: string;
      content: StoredPart[];
      kind: 'direct' | 'steer' | 'followUp';
      /** Replaces the policy `whileSuspended` for this message. */
      whileSuspended?: ChartPolicies['whileSuspended'];
      of?: Continued;
    } & RequestChoices)
  /** `runId`: the run that continues. `continuation`: the text for the model where its own words came last. */
  | { type: 'resume.requested'; runId: string; continuation?: string; of?: Continued }
  /** Starts the first queued followUp. */
  | { type: 'promotion.requested'; of?: Continued }
  /** The entries after `toSeq` no longer count. */
  | { type: 'rewind.requested'; toSeq: number; of?: Continued }
  /** The host takes a queued message back, or closes the conversation before its delivery. */
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested'; partial?: string }
  /** Returns the queue and cancels an active run. A waiting cycle continues to wait. */
  | { type: 'close.requested'; partial?: string }
  /** `receipt`: the judgement of the decision against the calls of the log. */
  | { type: 'decision.arrived'; held: HeldDecision; receipt: DecisionReceipt }
  /** `receipt`: whether the log has an unknown outcome of the call. `retry`: the call to run again when the conversation is resumed. */
  | { type: 'outcome.settled'; callId: string; how: Settlement; receipt: 'applied' | 'unknown'; retry?: Rerun }
  | SubAgentChange;

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
export const queued = (sent: Sent): QueuedMessage => ({
  messageId: sent.messageId,
  kind: sent.kind === 'steer' ? 'steer' : 'followUp',
  content: sent.content,
  ...choicesOf(sent),
});

export const nextFollowUp = (queue: readonly QueuedMessage[]): QueuedMessage | undefined =>
  queue.find(({ kind }) => kind === 'followUp');

type Args = ConversationArgs;
type Change = Partial<ConversationContext>;

/**
 * The store may have lost changes of this chart to the waiting calls and messages. Then the log still contains it. Decisions are taken
 * from the
 * chart where it has them, because the log may hold them without their secrets.
 */
function asLogged(context: ConversationContext, of: Continued | undefined): ConversationContext {
  if (!of?.waits) return context;
  const { suspended, queue } = of.waits;
  const chartDecisions = context.open.decisions;
  const decisions = of.waits.decisions.map(
    (held) =>
      chartDecisions.find(({ callId, suspension }) => callId === held.callId && suspension === held.suspension) ?? held,
  );
  return { ...context, queue, open: { ...context.open, suspended, decisions } };
}

/** The counts of the log where it is complete; else the chart's, which include usage that is not stored yet. */
const spent = (context: ConversationContext, of?: Continued): Counters => (of?.waits ? of : context).counters;

function startWith(
  living: ConversationContext,
  message: Omit<QueuedMessage, 'kind'>,
  kind: 'direct' | 'followUp',
  of?: Continued,
) {
  const { messageId, content } = message;
  const choices = choicesOf(message);
  const context = asLogged(living, of);
  return {
    runId: runOf(messageId),
    trigger: { kind: 'message' as const, message: { messageId, kind, content, ...choices } },
    counters: newCycle(spent(context, of)),
    open: context.open,
    queue: context.queue.filter((candidate) => candidate.messageId !== messageId),
    waiting: false,
    drained: [],
    next: undefined,
  };
}

function promote(living: ConversationContext, of?: Continued) {
  const context = asLogged(living, of);
  const message = nextFollowUp(context.queue);
  if (!message) return {};
  const started = startWith(context, message, 'followUp', of);
  if (context.settings.policies.queueDrain === 'one') return started;
  const drained = started.queue.filter(({ kind }) => kind === 'followUp').map(({ messageId }) => messageId);
  return { ...started, drained };
}

/** A run continues from the contents of the log. A run whose start was not stored never existed. */
function resumeAs(
  living: ConversationContext,
  { runId, continuation, of: logged }: { runId: string; continuation?: string; of?: Continued },
) {
  const context = asLogged(living, logged);
  const { kept, reruns } = logged?.waits ?? context.open;
  const { runId: of } = logged ?? context;
  const trigger: Trigger = logged?.ended
    ? { kind: 'retry', of }
    : { kind: 'resume', of, ...(continuation && { continuation }) };
  return {
    runId,
    trigger,
    counters: spent(context, logged),
    open: { ...context.open, kept, reruns: [...reruns, ...context.retries] },
    queue: context.queue,
    retries: [],
    waiting: false,
    drained: [],
  };
}

/** A resumption without a name takes its id from the run before it. */
function ownResume(context: ConversationContext, before: string) {
  const { runId, counters, trigger } = context;
  const of = { runId, counters, ended: trigger.kind === 'retry' };
  return resumeAs(context, { runId: `${before}~`, of });
}

/**
 * The calls and decisions that outlive a run. If its end was lost, the next run closes the calls that did not begin. A suspension that a
 * cancel
 * did not wait for may still be stored: the cancel closes all of its calls.
 */
const openOf = ({ end, suspended, kept, reruns, decisions, durable }: RunChartOutput): OpenCalls =>
  durable || end.termination === 'Suspended'
    ? { suspended, kept, reruns, decisions }
    : { suspended, kept: [], reruns: [], decisions };

/** A message or decision that was not stored was not accepted. */
function withoutLost(context: ConversationContext, event: AppendFailed) {
  const lost = (type: NewEntry['type'], key: 'callId' | 'messageId', id: string): boolean =>
    event.lost.some((entry) => entry.type === type && (entry as { [key: string]: unknown })[key] === id);
  const decisions = context.open.decisions.filter(({ callId }) => !lost('decision', 'callId', callId));
  const retries = context.retries.filter(({ call }) => !lost('call-settled', 'callId', call.callId));
  const queue = context.queue.filter(({ messageId }) => !lost('message-queued', 'messageId', messageId));
  const extensions = event.lost.filter(({ type }) => type === 'extension');
  return { open: { ...context.open, decisions }, retries, queue, counters: uncounted(context.counters, extensions) };
}

export const startRun = ({ context, event }: Args): Change =>
  event.type === 'message.sent' ? startWith(context, event, 'direct', event.of) : {};

export const promoteFollowUp = ({ context, event }: Args): Change =>
  promote(context, event.type === 'promotion.requested' ? event.of : undefined);

export const resumeRun = ({ context, event }: Args): Change =>
  event.type === 'resume.requested' ? resumeAs(context, event) : ownResume(context, context.runId);

export const queueMessage = ({ context, event }: Args): Change =>
  event.type === 'message.sent' ? { queue: [...context.queue, queued(event)] } : {};

export function unqueueSteers({ context, event }: Args): Change {
  if (event.type !== 'steers.delivered') return {};
  const ids = new Set(event.messages.map(({ messageId }) => messageId));
  return { queue: context.queue.filter(({ messageId }) => !ids.has(messageId)) };
}

export const withdrawQueue = (): Change => ({ queue: [] });

export const withdrawMessage = ({ context, event }: Args): Change =>
  event.type === 'message.returned'
    ? { queue: context.queue.filter(({ messageId }) => messageId !== event.messageId) }
    : {};

export const holdDecision = ({ context, event }: Args): Change =>
  event.type === 'decision.arrived'
    ? { open: { ...context.open, decisions: [...context.open.decisions, event.held] } }
    : {};

/** A call that is retried twice runs once. */
export function settleRetry({ context, event }: Args): Change {
  if (event.type !== 'outcome.settled' || !event.retry) return {};
  const { retry, callId } = event;
  const others = context.retries.filter(({ call }) => call.callId !== callId);
  return { retries: [...others, { ...retry, call: withGate(retry.call) }] };
}

export const dropLost = ({ context, event }: Args): Change =>
  event.type === 'append.failed' ? withoutLost(context, event) : {};

export function takeRun({ context: { runId, trigger }, event }: Args): Change {
  if (event.type !== 'xstate.done.actor.run') return {};
  const { end, counters } = event.output;
  const isRetry = trigger.kind === 'retry';
  // The log contains no run that only retried calls. The next run follows the one before it.
  const last = isRetry ? trigger.of : runId;
  return { runId: last, open: openOf(event.output), counters, waiting: end.termination === 'Suspended' && !isRetry };
}

/** Another run continues where this one ended. Two runs that retry after the same logged run have different ids. */
export const continueRun = ({ context, event }: Args): Change =>
  ownResume({ ...context, ...takeRun({ context, event }) }, context.runId);

export const countSubAgent = ({ context, event }: Args): Change =>
  event.type === 'sub-agent.changed' ? { counters: countUsage(context.counters, event.spent) } : {};

export const leaveReruns = ({ context }: Args): Change => ({ open: { ...context.open, reruns: [] } });

export const closeCycle = (): Change => ({ open: noOpenCalls, waiting: false });

/** The queue is unchanged: its messages were accepted, and none of them has counted. */
export const rewindLog = ({ context, event }: Args): Change =>
  event.type === 'rewind.requested'
    ? { ...closeCycle(), ...dropRetries(), queue: asLogged(context, event.of).queue }
    : {};

export const dropRetries = (): Change => ({ retries: [] });

/** The message that replaces the waiting cycle. */
export const takeNext = ({ event }: Args): Change =>
  event.type === 'message.sent'
    ? { next: { messageId: event.messageId, content: event.content, ...choicesOf(event) } }
    : {};

export const startNext = ({ context }: Args): Change =>
  context.next ? startWith(context, context.next, 'direct') : {};

export const dropNext = (): Change => ({ next: undefined });

/** The suspended calls still wait in the log. The cycle no longer waits, so its calls that kept their turn are dropped. */
export const loseSuspension = ({ context: { open } }: Args): Change => ({
  open: { ...open, kept: [] },
  waiting: false,
  next: undefined,
});
