/**
 * CONVERSATION: the life around the runs. Idle takes a message as a new request; busy holds one run and the queue of
 * steers and followUps; waiting is a suspended cycle. Rule: what was accepted is never lost: it is delivered, stays
 * queued and listed, or is returned.
 */
import { assign, setup } from 'xstate';
import type { ConversationContext, ConversationEvent, ConversationInput } from './conversationContext.ts';
import * as step from './conversationSteps.ts';
import { gatedAgain, gateWork } from './gateWork.ts';
import { type AppendFailed, door } from './ports.ts';
import { runMachine } from './run.machine.ts';
import { noOpenCalls } from './runContext.ts';
import { counted } from './spending.ts';

const conversation = setup({
  types: {} as { context: ConversationContext; events: ConversationEvent; input: ConversationInput },
  actors: { run: runMachine },
  actions: {
    ...door,
    start: assign(({ context, event }) =>
      event.type === 'message.sent' ? step.startWith(context, event, 'direct') : {},
    ),
    promote: assign(({ context }) => step.promote(context)),
    resume: assign(({ context, event }) =>
      event.type === 'resume.requested' ? step.resumeAs(context, event) : step.ownResume(context),
    ),
    queue: assign(({ context, event }) =>
      event.type === 'message.sent' ? { queue: [...context.queue, step.queued(event)] } : {},
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
        ? {
            // A call that is asked for twice runs once.
            retries: [
              ...context.retries.filter(({ call }) => call.callId !== event.callId),
              { ...event.retry, call: gatedAgain(event.retry.call) },
            ],
          }
        : {},
    ),
    unsettle: assign(({ context, event }) => (event.type === 'append.failed' ? step.withoutLost(context, event) : {})),
    takeRun: assign(({ event }) =>
      event.type === 'xstate.done.actor.run'
        ? {
            open: step.openOf(event.output),
            counters: event.output.counters,
            waiting: event.output.end.termination === 'Suspended',
          }
        : {},
    ),
    countSpent: assign(({ context, event }) =>
      event.type === 'sub-agent.changed' ? { counters: counted(context.counters, event.spent) } : {},
    ),
    leaveBehind: assign(({ context }) => ({ open: { ...context.open, reruns: [] } })),
    closeCycle: assign({ open: noOpenCalls, waiting: false }),
    supersede: assign(({ event }) => {
      if (event.type !== 'message.sent') return {};
      const { messageId, content } = event;
      return { next: { messageId, content } };
    }),
    startNext: assign(({ context }) => (context.next ? step.startWith(context, context.next, 'direct') : {})),
    dropNext: assign({ next: undefined }),
  },
  guards: {
    wasWaiting: ({ context }) => context.waiting,
    steers: ({ event }) => event.type === 'message.sent' && event.kind === 'steer',
    supersedes: ({ context, event }) =>
      event.type === 'message.sent' &&
      event.kind === 'direct' &&
      context.settings.policies.whileSuspended === 'denyAndRun',
    nothingUndecided: ({ context }) => !step.undecided(context.open),
    /** A decision came after the run's last gate; it was taken in an active run, so it is applied without being asked. */
    decidedInTail: ({ event }) =>
      event.type === 'xstate.done.actor.run' &&
      event.output.end.termination === 'Suspended' &&
      gateWork(event.output).length > 0,
    suspended: ({ event }) => event.type === 'xstate.done.actor.run' && event.output.end.termination === 'Suspended',
    promotes: ({ context, event }) => {
      const reason = step.reasonOf(event);
      const stored = event.type !== 'xstate.done.actor.run' || event.output.durable;
      if (!stored || reason === null || !step.nextFollowUp(context.queue)) return false;
      return context.settings.policies.promoteFollowUpOn.includes(reason);
    },
    isQueued: ({ context, event }) =>
      event.type === 'message.returned' && context.queue.some(({ messageId }) => messageId === event.messageId),
    /** The store has said no; while it says nothing, the stop may still land. */
    lostTheStop: ({ event }) => event.type === 'append.failed' && event.lost.some(({ type }) => type === 'run-stop'),
    wasGivenUp: ({ event }) => event.type === 'append.failed' && event.lost.length === 0,
    hasFollowUp: ({ context }) => step.nextFollowUp(context.queue) !== undefined,
    failed: ({ event }) => event.type === 'xstate.done.actor.run' && event.output.end.termination === 'Error',
  },
});

/** What an earlier run lost is no failure of the one under way; a decision is held by whoever runs. */
const losesOfRun = ({ runId }: ConversationContext, { lost }: AppendFailed): boolean =>
  lost.length === 0 || lost.some((entry) => entry.runId === runId || entry.type === 'decision');

/** Hands an event on to the run that it is about, as it is. */
const forward = conversation.enqueueActions(({ context, enqueue, event }) => {
  if (event.type === 'message.sent') enqueue.sendTo('run', { type: 'message.steered', message: step.queued(event) });
  else if (event.type === 'cancel.requested') {
    const { partial } = event;
    enqueue.sendTo('run', { type: 'run.cancelled', ...(partial !== undefined && { partial }) });
  } else if (event.type === 'decision.arrived') enqueue.sendTo('run', { type: 'decision.arrived', held: event.held });
  else if (event.type === 'append.failed') {
    if (losesOfRun(context, event)) enqueue.sendTo('run', event);
  } else if (event.type === 'message.returned' || event.type === 'effect.failed') enqueue.sendTo('run', event);
  else if (event.type === 'sub-agent.changed') enqueue.sendTo('run', event);
});

export const conversationMachine = conversation.createMachine({
  id: 'CONVERSATION',
  context: ({ input }) => ({
    ...input,
    trigger: { kind: 'resume', of: '' },
    retries: input.retries ?? [],
    drained: [],
    next: undefined,
  }),
  initial: 'opening',
  on: {
    'outcome.settled': { actions: ['settle', step.logSettled] },
    'message.returned': { guard: 'isQueued', actions: [step.logReturned, 'takeBack'] },
    'sub-agent.changed': { actions: ['countSpent', step.logLateSubAgent] },
  },
  states: {
    opening: { always: [{ guard: 'wasWaiting', target: 'waiting' }, { target: 'idle' }] },
    idle: {
      initial: 'ready',
      states: { ready: {}, error: {} },
      on: {
        'message.sent': { target: 'busy', actions: [step.logLeftBehind, 'leaveBehind', 'start'] },
        'resume.requested': { target: 'busy', actions: 'resume' },
        'promotion.requested': {
          guard: 'hasFollowUp',
          target: 'busy',
          actions: [step.logLeftBehind, 'leaveBehind', 'promote'],
        },
        'decision.arrived': { actions: ['hold', step.logDecision] },
        'append.failed': { target: '.error', actions: 'unsettle' },
      },
    },
    busy: {
      invoke: { src: 'run', id: 'run', input: step.runInput },
      initial: 'active',
      states: {
        active: { on: { 'cancel.requested': { target: 'cancelling', actions: forward } } },
        cancelling: {},
      },
      on: {
        'message.sent': [
          { guard: 'steers', actions: ['queue', step.logQueued, forward] },
          { actions: ['queue', step.logQueued] },
        ],
        'message.returned': { guard: 'isQueued', actions: [step.logReturned, 'takeBack', forward] },
        'steers.delivered': { actions: 'unqueue' },
        'sub-agent.changed': { actions: ['countSpent', step.logSubAgent, forward] },
        'decision.arrived': { actions: [step.logDecision, forward] },
        'append.failed': { actions: ['unsettle', forward] },
        'effect.failed': { actions: forward },
        'xstate.done.actor.run': [
          { guard: 'decidedInTail', target: 'busy', reenter: true, actions: ['takeRun', step.askEnd, 'resume'] },
          { guard: 'suspended', target: 'waiting', actions: ['takeRun', step.askEnd] },
          { guard: 'promotes', target: 'busy', reenter: true, actions: ['takeRun', step.askEnd, 'promote'] },
          { guard: 'failed', target: 'idle.error', actions: ['takeRun', step.askEnd] },
          { target: 'idle', actions: ['takeRun', step.askEnd] },
        ],
      },
    },
    waiting: {
      on: {
        'message.sent': [
          { guard: 'supersedes', target: 'superseding', actions: 'supersede' },
          { guard: 'nothingUndecided', target: 'busy', actions: ['queue', step.logQueued, 'resume'] },
          { actions: ['queue', step.logQueued] },
        ],
        'resume.requested': { target: 'busy', actions: 'resume' },
        'decision.arrived': { actions: ['hold', step.logDecision] },
        'cancel.requested': {
          target: 'closing',
          actions: [
            { type: 'log', params: step.closingEntries },
            { type: 'ask', params: step.askStop('closing') },
          ],
        },
        'append.failed': { actions: 'unsettle' },
      },
    },
    closing: {
      // It may come from a stop that was asked for elsewhere.
      meta: { awaits: [step.askStop('closing'), step.askStop('superseding')] },
      on: {
        'message.sent': { actions: ['queue', step.logQueued] },
        'decision.arrived': { actions: ['hold', step.logDecision] },
        'effect.done': [
          { guard: 'promotes', target: 'busy', actions: [step.askGivenBack, 'closeCycle', 'dropNext', 'promote'] },
          { target: 'idle', actions: [step.askGivenBack, 'closeCycle', 'dropNext'] },
        ],
        'append.failed': [
          { guard: 'lostTheStop', target: 'waiting', actions: 'dropNext' },
          // The host is told that nothing was stored; the stop may land all the same.
          { guard: 'wasGivenUp', actions: 'dropNext' },
          { actions: 'unsettle' },
        ],
      },
    },
    // The run of the message begins when the stop before it is durable; a cancel until then gives the message back.
    superseding: {
      entry: [
        { type: 'log', params: step.supersedingEntries },
        { type: 'ask', params: step.askStop('superseding') },
      ],
      on: {
        'cancel.requested': { target: 'closing' },
        'message.sent': { actions: ['queue', step.logQueued] },
        'decision.arrived': { actions: ['hold', step.logDecision] },
        'effect.done': { target: 'busy', actions: ['closeCycle', 'startNext'] },
        'append.failed': [{ guard: 'lostTheStop', target: 'waiting', actions: 'dropNext' }, { actions: 'unsettle' }],
      },
    },
  },
});
