/**
 * CONVERSATION: the life around the runs. Idle takes a message as a new request; busy holds one run and the queue of
 * steers and followUps; waiting is a suspended cycle. Rule: what was accepted is never lost: it is delivered, stays
 * queued and listed, or is returned.
 */
import { assign, type DoneActorEvent, setup } from 'xstate';
import { closed } from './closing.ts';
import { gatedAgain, gateWork } from './gateWork.ts';
import { type AppendFailed, door, type EffectDone, type EffectFailed, type EffectRequest } from './ports.ts';
import { runMachine } from './run.machine.ts';
import {
  type Counters,
  type HeldDecision,
  noOpenCalls,
  type OpenCalls,
  type Rerun,
  type RunChartOutput,
  type RunInput,
  type Settings,
  type Trigger,
} from './runContext.ts';
import { stopReason } from './runEnd.ts';
import { losesStop } from './runGuards.ts';
import type { NewEntry, QueuedMessage, Settlement, StoredPart } from './vocabulary.ts';

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
}

export type ConversationEvent =
  | { type: 'message.sent'; messageId: string; content: StoredPart[]; kind: 'direct' | 'steer' | 'followUp' }
  /** `runId`: of the run that continues; `continuation`: what the model is told where its own words came last. */
  | { type: 'resume.requested'; runId: string; continuation?: string }
  /** Start the first queued followUp. */
  | { type: 'promotion.requested' }
  /** The host takes a queued message back, or closes before it could be delivered. */
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested'; partial?: string }
  | { type: 'decision.arrived'; held: HeldDecision }
  /** `retry`: the call to run again when the conversation is resumed. */
  | { type: 'outcome.settled'; callId: string; how: Settlement; retry?: Rerun }
  | { type: 'steers.delivered'; messages: readonly QueuedMessage[] }
  | EffectDone
  | EffectFailed
  | AppendFailed
  | (DoneActorEvent<RunChartOutput, 'run'> & { type: 'xstate.done.actor.run' });

type Args = { context: ConversationContext; event: ConversationEvent };
type Sent = Extract<ConversationEvent, { type: 'message.sent' }>;

/** The run that a message starts. */
export const runOf = (messageId: string): string => `run_${messageId}`;

const queued = ({ messageId, kind, content }: Sent): QueuedMessage => ({
  messageId,
  kind: kind === 'steer' ? 'steer' : 'followUp',
  content,
});

const nextFollowUp = (queue: readonly QueuedMessage[]): QueuedMessage | undefined =>
  queue.find(({ kind }) => kind === 'followUp');

/** A new request counts its turns anew. */
const freshCycle = (counters: Counters): Counters => ({ ...counters, turns: 0, emptyReplies: 0, streaks: [] });

function startWith(
  context: ConversationContext,
  message: { messageId: string; content: StoredPart[] },
  kind: 'direct' | 'followUp',
) {
  const { messageId, content } = message;
  return {
    runId: runOf(messageId),
    trigger: { kind: 'message' as const, message: { messageId, kind, content } },
    counters: freshCycle(context.counters),
    queue: context.queue.filter((candidate) => candidate.messageId !== messageId),
    waiting: false,
  };
}

function promote(context: ConversationContext) {
  const message = nextFollowUp(context.queue);
  return message ? startWith(context, message, 'followUp') : {};
}

const resumeAs = (context: ConversationContext, runId: string, waited: boolean, continuation?: string) => ({
  runId,
  trigger: { kind: 'resume' as const, of: context.runId, waited, ...(continuation && { continuation }) },
  open: { ...context.open, reruns: [...context.open.reruns, ...context.retries] },
  retries: [],
  waiting: false,
});

/** A resumption nobody named takes its id from the run that it continues. */
const ownResume = (context: ConversationContext) => resumeAs(context, `${context.runId}~`, true);

const openOf = ({ suspended, kept, reruns, decisions }: OpenCalls): OpenCalls => ({
  suspended,
  kept,
  reruns,
  decisions,
});

const reasonOf = (event: ConversationEvent) =>
  event.type === 'xstate.done.actor.run' ? stopReason(event.output.end) : 'interrupted';

const undecided = ({ suspended, decisions }: OpenCalls): boolean =>
  suspended.some(
    ({ call, suspension }) => !decisions.some((held) => held.callId === call.callId && held.suspension === suspension),
  );

function runInput({ context }: { context: ConversationContext }): RunInput {
  const { runId, settings, trigger, counters, open, queue } = context;
  return { ...open, runId, settings, trigger, counters, steers: queue.filter(({ kind }) => kind === 'steer') };
}

/** Ends a cycle that waits: its calls are cancelled and its stop is written (request-cycle-model, Boundary Rule). */
function closingEntries({ context }: Args): NewEntry[] {
  const { runId, open } = context;
  return [
    ...closed(
      runId,
      open.suspended.map(({ call }) => call.callId),
      'cancelled',
    ),
    ...closed(
      runId,
      open.kept.map(({ call }) => call.callId),
      'skipped',
    ),
    ...closed(
      runId,
      open.reruns.map(({ call }) => call.callId),
      'unknown',
    ),
    { runId, type: 'run-stop', reason: 'interrupted', cause: 'cancelled' },
    { runId, type: 'checkpoint', boundary: 'RunFinished' },
  ];
}

function askEnded({ context, event }: Args): EffectRequest | undefined {
  if (event.type !== 'xstate.done.actor.run') return undefined;
  const { runId } = context;
  const { end, durable } = event.output;
  const { termination, cause, error } = end;
  const result = { runId, termination, durable, ...(cause !== undefined && { cause }), ...(error && { error }) };
  return { kind: 'ended', id: `${runId}/ended`, runId, result };
}

/** What could not be stored was not accepted. */
function withoutLost(context: ConversationContext, event: AppendFailed) {
  const lost = (type: NewEntry['type'], key: 'callId' | 'messageId', id: string): boolean =>
    event.lost.some((entry) => entry.type === type && (entry as { [key: string]: unknown })[key] === id);
  const decisions = context.open.decisions.filter(({ callId }) => !lost('decision', 'callId', callId));
  const retries = context.retries.filter(({ call }) => !lost('call-settled', 'callId', call.callId));
  const queue = context.queue.filter(({ messageId }) => !lost('message-queued', 'messageId', messageId));
  return { open: { ...context.open, decisions }, retries, queue };
}

const conversation = setup({
  types: {} as { context: ConversationContext; events: ConversationEvent; input: ConversationInput },
  actors: { run: runMachine },
  actions: {
    ...door,
    start: assign(({ context, event }) => (event.type === 'message.sent' ? startWith(context, event, 'direct') : {})),
    promote: assign(({ context }) => promote(context)),
    resume: assign(({ context, event }) =>
      event.type === 'resume.requested'
        ? resumeAs(context, event.runId, context.waiting, event.continuation)
        : ownResume(context),
    ),
    queue: assign(({ context, event }) =>
      event.type === 'message.sent' ? { queue: [...context.queue, queued(event)] } : {},
    ),
    unqueue: assign(({ context, event }) => {
      if (event.type !== 'steers.delivered') return {};
      const ids = new Set(event.messages.map(({ messageId }) => messageId));
      return { queue: context.queue.filter(({ messageId }) => !ids.has(messageId)) };
    }),
    takeBack: assign(({ context, event }) =>
      event.type === 'message.returned'
        ? { queue: context.queue.filter(({ messageId }) => messageId !== event.messageId) }
        : {},
    ),
    hold: assign(({ context, event }) =>
      event.type === 'decision.arrived'
        ? { open: { ...context.open, decisions: [...context.open.decisions, event.held] } }
        : {},
    ),
    settle: assign(({ context, event }) =>
      event.type === 'outcome.settled' && event.retry
        ? { retries: [...context.retries, { ...event.retry, call: gatedAgain(event.retry.call) }] }
        : {},
    ),
    unsettle: assign(({ context, event }) => (event.type === 'append.failed' ? withoutLost(context, event) : {})),
    takeRun: assign(({ event }) =>
      event.type === 'xstate.done.actor.run'
        ? {
            open: openOf(event.output),
            counters: event.output.counters,
            waiting: event.output.end.termination === 'Suspended',
          }
        : {},
    ),
    leaveBehind: assign(({ context }) => ({ open: { ...context.open, reruns: [] } })),
    closeCycle: assign({ open: noOpenCalls, waiting: false }),
  },
  guards: {
    wasWaiting: ({ context }) => context.waiting,
    steers: ({ event }) => event.type === 'message.sent' && event.kind === 'steer',
    nothingUndecided: ({ context }) => !undecided(context.open),
    /** A decision came after the run's last gate; it was taken in an active run, so it is applied without being asked. */
    decidedInTail: ({ event }) =>
      event.type === 'xstate.done.actor.run' &&
      event.output.end.termination === 'Suspended' &&
      gateWork(event.output).length > 0,
    suspended: ({ event }) => event.type === 'xstate.done.actor.run' && event.output.end.termination === 'Suspended',
    promotes: ({ context, event }) => {
      const reason = reasonOf(event);
      const stored = event.type !== 'xstate.done.actor.run' || event.output.durable;
      if (!stored || reason === null || !nextFollowUp(context.queue)) return false;
      return context.settings.policies.promoteFollowUpOn.includes(reason);
    },
    isQueued: ({ context, event }) =>
      event.type === 'message.returned' && context.queue.some(({ messageId }) => messageId === event.messageId),
    lostTheStop: ({ event }) => event.type === 'append.failed' && losesStop(event),
    hasFollowUp: ({ context }) => nextFollowUp(context.queue) !== undefined,
    failed: ({ event }) => event.type === 'xstate.done.actor.run' && event.output.end.termination === 'Error',
  },
});

const askEnd = { type: 'ask', params: askEnded } as const;
const logQueued = {
  type: 'log',
  params: ({ context: { runId }, event }: Args): NewEntry[] =>
    event.type === 'message.sent' ? [{ runId, type: 'message-queued', ...queued(event) }] : [],
} as const;
/** Calls that a resumption might have run again: a new request leaves them behind, and nobody knows whether they ran. */
const logLeftBehind = {
  type: 'log',
  params: ({ context: { runId, open } }: Args): NewEntry[] =>
    closed(
      runId,
      open.reruns.map(({ call }) => call.callId),
      'unknown',
    ),
} as const;
const logReturned = {
  type: 'log',
  params: ({ context: { runId }, event }: Args): NewEntry[] =>
    event.type === 'message.returned'
      ? [{ runId, type: 'message-returned', messageId: event.messageId, why: event.why }]
      : [],
} as const;
const logDecision = {
  type: 'log',
  params: ({ context: { runId }, event }: Args): NewEntry[] =>
    event.type === 'decision.arrived' ? [{ runId, type: 'decision', ...event.held }] : [],
} as const;
const logSettled = {
  type: 'log',
  params: ({ context: { runId }, event }: Args): NewEntry[] =>
    event.type === 'outcome.settled' ? [{ runId, type: 'call-settled', callId: event.callId, how: event.how }] : [],
} as const;

/** Hands an event on to the run as it is. */
const forward = conversation.enqueueActions(({ enqueue, event }) => {
  if (event.type === 'message.sent') enqueue.sendTo('run', { type: 'message.steered', message: queued(event) });
  else if (event.type === 'cancel.requested') {
    const { partial } = event;
    enqueue.sendTo('run', { type: 'run.cancelled', ...(partial !== undefined && { partial }) });
  } else if (event.type === 'decision.arrived') enqueue.sendTo('run', { type: 'decision.arrived', held: event.held });
  else if (event.type === 'message.returned' || event.type === 'append.failed' || event.type === 'effect.failed')
    enqueue.sendTo('run', event);
});

export const conversationMachine = conversation.createMachine({
  id: 'CONVERSATION',
  context: ({ input }) => ({
    ...input,
    trigger: { kind: 'resume', of: '', waited: false },
    retries: input.retries ?? [],
  }),
  initial: 'opening',
  on: {
    'outcome.settled': { actions: ['settle', logSettled] },
    'message.returned': { guard: 'isQueued', actions: [logReturned, 'takeBack'] },
  },
  states: {
    opening: { always: [{ guard: 'wasWaiting', target: 'waiting' }, { target: 'idle' }] },
    idle: {
      initial: 'ready',
      states: { ready: {}, error: {} },
      on: {
        'message.sent': { target: 'busy', actions: [logLeftBehind, 'leaveBehind', 'start'] },
        'resume.requested': { target: 'busy', actions: 'resume' },
        'promotion.requested': {
          guard: 'hasFollowUp',
          target: 'busy',
          actions: [logLeftBehind, 'leaveBehind', 'promote'],
        },
        'decision.arrived': { actions: ['hold', logDecision] },
        'append.failed': { target: '.error', actions: 'unsettle' },
      },
    },
    busy: {
      invoke: { src: 'run', id: 'run', input: runInput },
      initial: 'active',
      states: {
        active: { on: { 'cancel.requested': { target: 'cancelling', actions: forward } } },
        cancelling: {},
      },
      on: {
        'message.sent': [
          { guard: 'steers', actions: ['queue', logQueued, forward] },
          { actions: ['queue', logQueued] },
        ],
        'message.returned': { guard: 'isQueued', actions: [logReturned, 'takeBack', forward] },
        'steers.delivered': { actions: 'unqueue' },
        'decision.arrived': { actions: [logDecision, forward] },
        'append.failed': { actions: ['unsettle', forward] },
        'effect.failed': { actions: forward },
        'xstate.done.actor.run': [
          { guard: 'decidedInTail', target: 'busy', reenter: true, actions: ['takeRun', askEnd, 'resume'] },
          { guard: 'suspended', target: 'waiting', actions: ['takeRun', askEnd] },
          { guard: 'promotes', target: 'busy', reenter: true, actions: ['takeRun', askEnd, 'promote'] },
          { guard: 'failed', target: 'idle.error', actions: ['takeRun', askEnd] },
          { target: 'idle', actions: ['takeRun', askEnd] },
        ],
      },
    },
    waiting: {
      on: {
        'message.sent': [
          { guard: 'nothingUndecided', target: 'busy', actions: ['queue', logQueued, 'resume'] },
          { actions: ['queue', logQueued] },
        ],
        'resume.requested': { target: 'busy', actions: 'resume' },
        'decision.arrived': { actions: ['hold', logDecision] },
        'cancel.requested': { target: 'closing' },
        'append.failed': { actions: 'unsettle' },
      },
    },
    closing: {
      entry: [
        { type: 'log', params: closingEntries },
        {
          type: 'ask',
          params: ({ context }) => ({ kind: 'commit', id: `${context.runId}/closing`, boundary: 'RunFinished' }),
        },
      ],
      on: {
        'message.sent': { actions: ['queue', logQueued] },
        'effect.done': [
          { guard: 'promotes', target: 'busy', actions: ['closeCycle', 'promote'] },
          { target: 'idle', actions: 'closeCycle' },
        ],
        'append.failed': [{ guard: 'lostTheStop', target: 'waiting' }, { actions: 'unsettle' }],
      },
    },
  },
});
