/**
 * The entries, requests and context changes of the conversation, one small pure function a step. Rule: each takes
 * context and event and returns data; nothing here decides where the conversation goes next.
 */

import { type HeldDecision, noOpenCalls, type OpenCalls } from './calls.ts';
import type { Continued, ConversationContext, ConversationEvent } from './conversationContext.ts';
import { counted, newCycle } from './counters.ts';
import { expired } from './decisions.ts';
import { answers, gatedAgain } from './gateWork.ts';
import type { AppendFailed, EffectRequest } from './ports.ts';
import { syntheticResults } from './run/closeCalls.ts';
import type { RunChartOutput, RunInput, Settings, Trigger } from './run/context.ts';
import { stopReason } from './run/entries.ts';
import { subAgentEntries } from './spending.ts';
import { ask, log } from './verbs.ts';
import type { NewEntry, QueuedMessage, StoredPart } from './vocabulary.ts';

export type Args = { context: ConversationContext; event: ConversationEvent };
type Sent = Extract<ConversationEvent, { type: 'message.sent' }>;

/** The run that a message starts. */
export const runOf = (messageId: string): string => `run_${messageId}`;

export const queued = ({ messageId, kind, content }: Sent): QueuedMessage => ({
  messageId,
  kind: kind === 'steer' ? 'steer' : 'followUp',
  content,
});

export const nextFollowUp = (queue: readonly QueuedMessage[]): QueuedMessage | undefined =>
  queue.find(({ kind }) => kind === 'followUp');

export function startWith(
  context: ConversationContext,
  message: { messageId: string; content: StoredPart[] },
  kind: 'direct' | 'followUp',
  of?: Continued,
) {
  const { messageId, content } = message;
  return {
    runId: runOf(messageId),
    trigger: { kind: 'message' as const, message: { messageId, kind, content } },
    counters: newCycle(of?.counters ?? context.counters),
    queue: context.queue.filter((candidate) => candidate.messageId !== messageId),
    waiting: false,
    drained: [],
    next: undefined,
  };
}

export function promote(context: ConversationContext, of?: Continued) {
  const message = nextFollowUp(context.queue);
  if (!message) return {};
  const started = startWith(context, message, 'followUp', of);
  if (context.settings.policies.queueDrain === 'one') return started;
  const drained = started.queue.filter(({ kind }) => kind === 'followUp').map(({ messageId }) => messageId);
  return { ...started, drained };
}

/** What is gone on with is what the log has: a run whose start could not be stored never was. */
export function resumeAs(
  context: ConversationContext,
  { runId, continuation, of: logged }: { runId: string; continuation?: string; of?: Continued },
) {
  const { runId: of, counters, ended } = logged ?? { ...context, ended: false };
  const trigger: Trigger = ended
    ? { kind: 'retry', of }
    : { kind: 'resume', of, ...(continuation && { continuation }) };
  return {
    runId,
    trigger,
    counters,
    open: { ...context.open, reruns: [...context.open.reruns, ...context.retries] },
    retries: [],
    waiting: false,
    drained: [],
  };
}

/** A resumption nobody named takes its id from the run that it continues. */
export function ownResume(context: ConversationContext) {
  const { runId, counters, trigger } = context;
  const of = { runId, counters, ended: trigger.kind === 'retry' };
  return resumeAs(context, { runId: `${runId}~`, of });
}

/** What outlives a run. Where its end could not be stored, what begins next closes the calls that did not begin. */
export const openOf = ({ suspended, kept, reruns, decisions, durable }: RunChartOutput): OpenCalls =>
  durable ? { suspended, kept, reruns, decisions } : { suspended, kept: [], reruns: [], decisions };

export const reasonOf = (event: ConversationEvent) =>
  event.type === 'xstate.done.actor.run' ? stopReason(event.output.end) : 'interrupted';

export const undecided = ({ suspended, decisions }: OpenCalls): boolean =>
  suspended.some((waiting) => !decisions.some((held) => answers(held, waiting)));
const early = ({ suspended, decisions }: OpenCalls): HeldDecision[] =>
  decisions.filter((held) => !suspended.some((waiting) => answers(held, waiting)));

/** Nobody takes part but in the calls, since there is no step of a model. */
const ofCallsAlone = ({ context: _, phases, ...rest }: Settings): Settings => ({
  ...rest,
  phases: {
    ...phases,
    runStart: false,
    stepStart: false,
    beforeInference: false,
    afterInference: false,
    stepEnd: false,
    runEnd: false,
  },
});

export function runInput({ context }: { context: ConversationContext }): RunInput {
  const { runId, settings, trigger, counters, open, queue, drained } = context;
  const shared = { ...open, runId, trigger, counters };
  if (trigger.kind === 'retry') return { ...shared, settings: ofCallsAlone(settings), steers: [] };
  const steers = queue.filter(({ kind, messageId }) => kind === 'steer' || drained.includes(messageId));
  return { ...shared, settings, steers };
}

const DENIED = 'This call was denied: the user sent a new message in place of a decision. It was not run.';
const content = [{ type: 'text' as const, text: DENIED }];

/** Ends a cycle that waits: each of its calls gets its result, and its stop is written (request-cycle-model, Boundary Rule). */
function stopEntries({ runId, open }: ConversationContext, waiting: NewEntry[], cause: string): NewEntry[] {
  const ids = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);
  return [
    ...waiting,
    ...syntheticResults(runId, ids(open.kept), 'skipped'),
    ...syntheticResults(runId, ids(open.reruns), 'unknown'),
    ...expired(runId, early(open)),
    { runId, type: 'run-stop', reason: 'interrupted', cause },
    { runId, type: 'checkpoint', boundary: 'RunFinished' },
  ];
}
export function closingEntries({ context }: Args): NewEntry[] {
  const { runId, open } = context;
  const callIds = open.suspended.map(({ call }) => call.callId);
  return stopEntries(context, syntheticResults(runId, callIds, 'cancelled'), 'cancelled');
}
/** A message takes the place of every decision, also of those that were taken and not carried out. */
export function supersedingEntries({ context }: Args): NewEntry[] {
  const { runId, open } = context;
  const denied = open.suspended.map(({ call: { callId } }): NewEntry => {
    return { runId, type: 'tool-result', callId, outcome: 'failed', content, code: 'denied' };
  });
  return stopEntries(context, denied, 'superseded');
}
export const askStop =
  (name: 'closing' | 'superseding') =>
  ({ context }: Args): EffectRequest => ({ kind: 'commit', id: `${context.runId}/${name}`, boundary: 'RunFinished' });

export function askEnded({ context, event }: Args): EffectRequest | undefined {
  if (event.type !== 'xstate.done.actor.run') return undefined;
  const { runId } = context;
  const { end, durable } = event.output;
  const { termination, cause, error } = end;
  const result = { runId, termination, durable, ...(cause !== undefined && { cause }), ...(error && { error }) };
  return { kind: 'ended', id: `${runId}/ended`, runId, result };
}

/** What could not be stored was not accepted. */
export function withoutLost(context: ConversationContext, event: AppendFailed) {
  const lost = (type: NewEntry['type'], key: 'callId' | 'messageId', id: string): boolean =>
    event.lost.some((entry) => entry.type === type && (entry as { [key: string]: unknown })[key] === id);
  const decisions = context.open.decisions.filter(({ callId }) => !lost('decision', 'callId', callId));
  const retries = context.retries.filter(({ call }) => !lost('call-settled', 'callId', call.callId));
  const queue = context.queue.filter(({ messageId }) => !lost('message-queued', 'messageId', messageId));
  return { open: { ...context.open, decisions }, retries, queue };
}

/** A message that was to take the place of a cycle, and does not any more: its run ends before it begins. */
function askNotBegun({ context: { next } }: Args): EffectRequest | undefined {
  if (!next) return undefined;
  const runId = runOf(next.messageId);
  const result = { runId, termination: 'Cancelled' as const, cause: 'cancelled', durable: true };
  return { kind: 'ended', id: `${runId}/ended`, runId, result };
}
export const askGivenBack = ask(askNotBegun);
export const askEnd = ask(askEnded);
export const logQueued = log(({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'message.sent' ? [{ runId, type: 'message-queued', ...queued(event) }] : [],
);
/** Calls that a resumption might have run again: a new request leaves them behind, and nobody knows whether they ran. */
export const logLeftBehind = log(({ context: { runId, open } }: Args): NewEntry[] =>
  syntheticResults(
    runId,
    open.reruns.map(({ call }) => call.callId),
    'unknown',
  ),
);
export const logReturned = log(({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'message.returned'
    ? [{ runId, type: 'message-returned', messageId: event.messageId, why: event.why }]
    : [],
);
export const logDecision = log(({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'decision.arrived' ? [{ runId, type: 'decision', ...event.held }] : [],
);
/** With a run under way it belongs to that run; behind its end to none. */
export const logSubAgent = log(({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'sub-agent.changed' ? subAgentEntries(runId, event) : [],
);
export const logLateSubAgent = log(({ event }: Args): NewEntry[] =>
  event.type === 'sub-agent.changed' ? subAgentEntries(null, event) : [],
);
export const logSettled = log(({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'outcome.settled' ? [{ runId, type: 'call-settled', callId: event.callId, how: event.how }] : [],
);

type Change = Partial<ConversationContext>;

export const runStarted = ({ context, event }: Args): Change =>
  event.type === 'message.sent' ? startWith(context, event, 'direct', event.of) : {};
export const followUpPromoted = ({ context, event }: Args): Change =>
  promote(context, event.type === 'promotion.requested' ? event.of : undefined);
export const runResumed = ({ context, event }: Args): Change =>
  event.type === 'resume.requested' ? resumeAs(context, event) : ownResume(context);

export const messageQueued = ({ context, event }: Args): Change =>
  event.type === 'message.sent' ? { queue: [...context.queue, queued(event)] } : {};
export function steersUnqueued({ context, event }: Args): Change {
  if (event.type !== 'steers.delivered') return {};
  const ids = new Set(event.messages.map(({ messageId }) => messageId));
  return { queue: context.queue.filter(({ messageId }) => !ids.has(messageId)) };
}
export const messageTakenBack = ({ context, event }: Args): Change =>
  event.type === 'message.returned'
    ? { queue: context.queue.filter(({ messageId }) => messageId !== event.messageId) }
    : {};

export const decisionHeld = ({ context, event }: Args): Change =>
  event.type === 'decision.arrived'
    ? { open: { ...context.open, decisions: [...context.open.decisions, event.held] } }
    : {};
/** A call that is asked for twice runs once. */
export function retrySettled({ context, event }: Args): Change {
  if (event.type !== 'outcome.settled' || !event.retry) return {};
  const { retry, callId } = event;
  const others = context.retries.filter(({ call }) => call.callId !== callId);
  return { retries: [...others, { ...retry, call: gatedAgain(retry.call) }] };
}
export const lostTaken = ({ context, event }: Args): Change =>
  event.type === 'append.failed' ? withoutLost(context, event) : {};

export function runTaken({ context: { runId, trigger }, event }: Args): Change {
  if (event.type !== 'xstate.done.actor.run') return {};
  const { end, counters } = event.output;
  const isRetry = trigger.kind === 'retry';
  // No log has that run: what comes next follows the one before it.
  const last = isRetry ? trigger.of : runId;
  return { runId: last, open: openOf(event.output), counters, waiting: end.termination === 'Suspended' && !isRetry };
}
export const spendingCounted = ({ context, event }: Args): Change =>
  event.type === 'sub-agent.changed' ? { counters: counted(context.counters, event.spent) } : {};

export const rerunsLeftBehind = ({ context }: Args): Change => ({ open: { ...context.open, reruns: [] } });
export const cycleClosed = (): Change => ({ open: noOpenCalls, waiting: false });

/** A message that takes the place of the cycle that waits. */
export const nextTaken = ({ event }: Args): Change =>
  event.type === 'message.sent' ? { next: { messageId: event.messageId, content: event.content } } : {};
export const nextStarted = ({ context }: Args): Change =>
  context.next ? startWith(context, context.next, 'direct') : {};
export const nextDropped = (): Change => ({ next: undefined });
