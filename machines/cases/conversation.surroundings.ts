/**
 * The facts around a CONVERSATION that its context does not contain: its messages, runs, decisions and settlements. Invariant: a path
 * contains nothing that the host would refuse or that a run could not report.
 */
import type { AnyMachineSnapshot } from 'xstate';
import type { ConversationContext, ConversationEvent, ConversationInput } from '../conversation/context.ts';
import type { AppendFailed } from '../ports.ts';
import type { RunChartOutput } from '../run/runContext.ts';
import type { NewEntry } from '../vocabulary.ts';
import type { Surroundings } from './cases.ts';

export interface ConversationWorld {
  /** The number of messages and resumptions that a host has sent; the next one carries the next number. */
  acts: number;
  /** The decision on the suspended call, and whether a run has taken it up. */
  decision: 'none' | 'durable' | 'taken';
  /** The call that runs suspend: not made yet, open, or ended for good. */
  call: 'none' | 'open' | 'ended';
  /** The call with an unknown outcome, which only a restored conversation has. */
  unsettled: boolean;
  /** The suspension of a run that was being cancelled may not be stored yet. */
  lateSuspension: boolean;
  /** The log had more than the chart, once. A restored conversation begins with everything in its log. */
  hadMore: boolean;
}

const hasMore = (event: ConversationEvent): boolean => 'of' in event && event.of?.waits !== undefined;

const contextOf = (state: AnyMachineSnapshot): ConversationContext => state.context as ConversationContext;
const isQueued = (state: AnyMachineSnapshot, messageId: string): boolean =>
  contextOf(state).queue.some((message) => message.messageId === messageId);

/** A suspended run holds calls without a decision, or decisions that came after its last gate. */
function runEnds(world: ConversationWorld, output: RunChartOutput, state: AnyMachineSnapshot): boolean {
  const { termination, cause } = output.end;
  if (termination === 'Cancelled') return cause === 'timeout' || state.matches({ busy: 'cancelling' } as never);
  if (output.suspended.length === 0) return true;
  if (world.call === 'ended') return false;
  return world.decision === (output.decisions.length > 0 ? 'durable' : 'none');
}

const stops = (entry: NewEntry, state: AnyMachineSnapshot): boolean =>
  entry.type === 'run-stop' && entry.cause === (contextOf(state).next ? 'superseded' : 'cancelled');

/** True if an append that loses these entries can fail in this state. */
function appendFails(
  { decision, unsettled, lateSuspension }: ConversationWorld,
  { lost }: AppendFailed,
  state: AnyMachineSnapshot,
) {
  const has = (type: string): boolean => lost.some((entry) => entry.type === type);
  const atRest = !state.matches('busy' as never);
  const closing = state.matches('closing') || state.matches('superseding');
  // Usage of a sub-agent counts before it is stored.
  if (has('sub-agent')) return atRest && contextOf(state).counters.tokens > 0;
  if (has('message-queued') && !isQueued(state, 'n1')) return false;
  // A message that arrives while a cycle is being closed may be lost with the stop.
  if (has('message-queued') && !has('run-stop')) return true;
  if (lost.length === 0) return !closing || !state.matches('superseding');
  if (has('run-suspended') && !lateSuspension) return false;
  if (closing || has('run-stop')) return closing && lost.some((entry) => stops(entry, state));
  if (has('decision')) return atRest && decision === 'durable';
  if (has('call-settled')) return atRest && !unsettled && contextOf(state).retries.length > 0;
  return true;
}

export const conversationSurroundings: Surroundings<ConversationWorld> = {
  start: (input) => {
    const { open, runId, waiting } = input as ConversationInput;
    const decision = open.decisions.length > 0 ? 'durable' : 'none';
    const call = open.suspended.length > 0 ? 'open' : 'none';
    return {
      acts: 0,
      decision,
      call,
      unsettled: runId !== '' && !waiting,
      lateSuspension: false,
      hadMore: runId !== '',
    };
  },
  can: (world, anyEvent, state) => {
    const event = anyEvent as ConversationEvent;
    const { settings, open } = contextOf(state);
    // A log has more than the chart only where nothing is under way.
    if (hasMore(event) && (world.hadMore || !state.matches('idle') || world.call !== 'open')) return false;
    const isNext = (id: string): boolean => id === `n${world.acts + 1}` && world.acts < settings.policies.limits.queue;
    switch (event.type) {
      case 'message.sent':
        return isNext(event.messageId);
      case 'resume.requested':
        // A waiting cycle has not ended.
        return isNext(event.runId) && !(event.of?.ended && state.matches('waiting'));
      case 'message.returned':
        return isQueued(state, event.messageId) || world.acts > 0;
      case 'steers.delivered':
        return event.messages.every(({ messageId }) => isQueued(state, messageId));
      case 'decision.arrived':
        if (event.receipt === 'duplicate') return world.decision !== 'none';
        return world.decision === 'none' && (open.suspended.length > 0 || state.matches('busy' as never));
      case 'outcome.settled':
        return world.unsettled === (event.receipt === 'applied');
      // Meanwhile the host is storing the stop.
      case 'sub-agent.changed':
        return ['idle', 'busy', 'waiting'].some((value) => state.matches(value as never));
      case 'append.failed':
        return appendFails(world, event, state);
      case 'xstate.done.actor.run':
        return runEnds(world, event.output, state);
      default:
        return true;
    }
  },
  after: (world, anyEvent, state) => {
    const event = anyEvent as ConversationEvent;
    const { open } = contextOf(state);
    const taken = world.decision === 'durable' && state.matches('busy' as never) && open.decisions.length > 0;
    const hadMore = world.hadMore || hasMore(event);
    const now: ConversationWorld = { ...world, hadMore, ...(taken && { decision: 'taken' as const }) };
    switch (event.type) {
      case 'message.sent':
      case 'resume.requested':
        return { ...now, acts: now.acts + 1 };
      case 'decision.arrived':
        return event.receipt === 'applied' ? { ...now, decision: 'durable' } : now;
      case 'rewind.requested':
        // Calls that are open at rest get their results. A waiting cycle ends with its stop.
        return state.matches('idle' as never) && now.call === 'open' ? { ...now, call: 'ended' } : now;
      case 'effect.done':
        return { ...now, call: 'ended', lateSuspension: false };
      case 'xstate.done.actor.run': {
        const call = event.output.suspended.length > 0 ? 'open' : now.call === 'open' ? 'ended' : now.call;
        return {
          ...now,
          call,
          lateSuspension: event.output.end.termination === 'Suspended' && state.matches('closing'),
        };
      }
      case 'outcome.settled':
        return event.receipt === 'applied' ? { ...now, unsettled: false } : now;
      case 'append.failed': {
        const lost = (type: string): boolean => event.lost.some((entry) => entry.type === type);
        const decision = lost('decision') ? 'none' : now.decision;
        // A stop that was given up counts, unless it is lost later.
        if (state.matches({ closing: 'late' } as never)) return { ...now, call: 'ended' };
        if (lost('run-stop') && !state.matches('closing')) {
          return { ...now, decision, call: 'open', lateSuspension: false };
        }
        return { ...now, decision, unsettled: now.unsettled || lost('call-settled') };
      }
      default:
        return now;
    }
  },
};
