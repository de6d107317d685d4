/**
 * How the context of a conversation changes: its run, its queue, its decisions, and what a store lost. Rule: each function
 * takes context and event and returns what changes.
 */

import type { OpenCalls } from '../calls.ts';
import { noOpenCalls } from '../calls.ts';
import { countUsage, newCycle } from '../counters.ts';
import { uncounted } from '../log/usage.ts';
import type { AppendFailed } from '../ports.ts';
import type { RunChartOutput, Trigger } from '../run/context.ts';
import { withGate } from '../tools/openCalls.ts';
import type { NewEntry, StoredPart } from '../vocabulary.ts';
import type { Continued, ConversationArgs, ConversationContext } from './context.ts';
import { nextFollowUp, queued, runOf } from './context.ts';

type Args = ConversationArgs;
type Change = Partial<ConversationContext>;

/** A store may have lost what this chart had done with what waits: then the log has it still. */
function asLogged(context: ConversationContext, of: Continued | undefined): ConversationContext {
  if (!of?.waits) return context;
  const { suspended, decisions, queue } = of.waits;
  return { ...context, queue, open: { ...context.open, suspended, decisions } };
}

function startWith(
  living: ConversationContext,
  message: { messageId: string; content: StoredPart[] },
  kind: 'direct' | 'followUp',
  of?: Continued,
) {
  const { messageId, content } = message;
  const context = asLogged(living, of);
  return {
    runId: runOf(messageId),
    trigger: { kind: 'message' as const, message: { messageId, kind, content } },
    counters: newCycle(of?.counters ?? context.counters),
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

/** What is gone on with is what the log has: a run whose start could not be stored never was. */
function resumeAs(
  living: ConversationContext,
  { runId, continuation, of: logged }: { runId: string; continuation?: string; of?: Continued },
) {
  const context = asLogged(living, logged);
  const { runId: of, counters, ended } = logged ?? { ...context, ended: false };
  const trigger: Trigger = ended
    ? { kind: 'retry', of }
    : { kind: 'resume', of, ...(continuation && { continuation }) };
  return {
    runId,
    trigger,
    counters,
    open: { ...context.open, reruns: [...context.open.reruns, ...context.retries] },
    queue: context.queue,
    retries: [],
    waiting: false,
    drained: [],
  };
}

/** A resumption nobody named takes its id from the run before it. */
function ownResume(context: ConversationContext, before: string) {
  const { runId, counters, trigger } = context;
  const of = { runId, counters, ended: trigger.kind === 'retry' };
  return resumeAs(context, { runId: `${before}~`, of });
}

/** What outlives a run. Where its end could not be stored, what begins next closes the calls that did not begin. */
const openOf = ({ suspended, kept, reruns, decisions, durable }: RunChartOutput): OpenCalls =>
  durable ? { suspended, kept, reruns, decisions } : { suspended, kept: [], reruns: [], decisions };

/** What could not be stored was not accepted. */
function withoutLost(context: ConversationContext, event: AppendFailed) {
  const lost = (type: NewEntry['type'], key: 'callId' | 'messageId', id: string): boolean =>
    event.lost.some((entry) => entry.type === type && (entry as { [key: string]: unknown })[key] === id);
  const decisions = context.open.decisions.filter(({ callId }) => !lost('decision', 'callId', callId));
  const retries = context.retries.filter(({ call }) => !lost('call-settled', 'callId', call.callId));
  const queue = context.queue.filter(({ messageId }) => !lost('message-queued', 'messageId', messageId));
  const told = event.lost.filter(({ type }) => type === 'extension');
  return { open: { ...context.open, decisions }, retries, queue, counters: uncounted(context.counters, told) };
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

export const withdrawMessage = ({ context, event }: Args): Change =>
  event.type === 'message.returned'
    ? { queue: context.queue.filter(({ messageId }) => messageId !== event.messageId) }
    : {};

export const holdDecision = ({ context, event }: Args): Change =>
  event.type === 'decision.arrived'
    ? { open: { ...context.open, decisions: [...context.open.decisions, event.held] } }
    : {};

/** A call that is asked for twice runs once. */
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
  // No log has that run: what comes next follows the one before it.
  const last = isRetry ? trigger.of : runId;
  return { runId: last, open: openOf(event.output), counters, waiting: end.termination === 'Suspended' && !isRetry };
}

/** Another run goes on at once where this one ended. Two runs that retry behind the same logged run have ids of their own. */
export const continueRun = ({ context, event }: Args): Change =>
  ownResume({ ...context, ...takeRun({ context, event }) }, context.runId);

export const countSubAgent = ({ context, event }: Args): Change =>
  event.type === 'sub-agent.changed' ? { counters: countUsage(context.counters, event.spent) } : {};

export const leaveReruns = ({ context }: Args): Change => ({ open: { ...context.open, reruns: [] } });

export const closeCycle = (): Change => ({ open: noOpenCalls, waiting: false });

/** A message that takes the place of the cycle that waits. */
export const takeNext = ({ event }: Args): Change =>
  event.type === 'message.sent' ? { next: { messageId: event.messageId, content: event.content } } : {};

export const startNext = ({ context }: Args): Change =>
  context.next ? startWith(context, context.next, 'direct') : {};

export const dropNext = (): Change => ({ next: undefined });
