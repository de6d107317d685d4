/**
 * CONVERSATION: the life around the runs. Idle takes a message as a new request; busy holds one run and the queue of
 * steers and followUps; waiting is a suspended cycle. Rule: what was accepted is never lost: it is delivered, stays
 * queued and listed, or is returned.
 */

import { setup } from 'xstate';
import type { OpenCalls } from '../calls.ts';
import type { AppendFailed } from '../ports.ts';
import type { RunEvent } from '../run/context.ts';
import { stopReason } from '../run/entries.ts';
import { effectsOfRun } from '../run/requests.ts';
import { runChart, runMachine } from '../run/run.machine.ts';
import { dueReplays, matches } from '../tools/openCalls.ts';
import { ask, type Chart, type ConfigOf, drop, type Guards, log, type Message, tell, update } from '../verbs.ts';
import { verbs } from '../xstateVerbs.ts';
import * as assigns from './context.ts';
import {
  type ConversationArgs,
  type ConversationContext,
  type ConversationEvent,
  type ConversationInput,
  contextOf,
  nextFollowUp,
  queued,
} from './context.ts';
import * as entries from './entries.ts';

/** Nothing where promotion must wait: what a store lost of a call is known from the log alone, which comes with a command. */
function reasonOf(event: ConversationEvent) {
  if (event.type !== 'xstate.done.actor.run') return 'interrupted';
  const { durable, end } = event.output;
  // A call that is retried alone and waits again keeps nobody else waiting.
  return durable && !end.lost?.some((entry) => 'callId' in entry) && (stopReason(end) ?? 'completed');
}

const undecided = ({ suspended, decisions }: OpenCalls): boolean =>
  suspended.some((waiting) => !decisions.some((held) => matches(held, waiting)));

/** What an earlier run lost is no failure of the one under way; a decision is held by whoever runs. */
const losesOfRun = ({ runId }: ConversationContext, { lost }: AppendFailed): boolean =>
  lost.length === 0 || lost.some((entry) => entry.runId === runId || entry.type === 'decision');

/** The event for the run that is about it, as it is. */
function forRun({ context, event }: ConversationArgs): RunEvent | undefined {
  switch (event.type) {
    case 'message.sent':
      return { type: 'message.steered', message: queued(event) };
    case 'cancel.requested': {
      const { partial } = event;
      return { type: 'run.cancelled', ...(partial !== undefined && { partial }) };
    }
    case 'append.failed':
      return losesOfRun(context, event) ? event : undefined;
    case 'decision.arrived':
    case 'message.returned':
    case 'effect.failed':
    case 'sub-agent.changed':
      return event;
    default:
      return undefined;
  }
}
const tellRun = (args: ConversationArgs): Message<'run', RunEvent> | undefined => {
  const event = forRun(args);
  return event && { to: 'run', event };
};

const forward = tell(tellRun);
const takeRun = [ask(entries.askEnded), update(assigns.takeRun)] as const;
const continueRun = [ask(entries.askEnded), update(assigns.continueRun)] as const;
const queue = [update(assigns.queueMessage), log(entries.queuedEntries)] as const;
const hold = [update(assigns.holdDecision), log(entries.decisionEntries)] as const;
const takeBack = [log(entries.returnedEntries), update(assigns.withdrawMessage)] as const;
const leaveBehind = [log(entries.leftBehindEntries), update(assigns.leaveReruns)] as const;
const close = [log(entries.closingEntries), ask(entries.askStop('closing'))] as const;
const closeCycle = [ask(entries.askNotBegun), update(assigns.closeCycle), update(assigns.dropNext)] as const;
/** Nobody waits for the stop any more: what is logged from here stands behind it. */
const leaveLate = [drop(effectsOfRun), ...closeCycle] as const;
const unsettle = update(assigns.dropLost);
const resume = update(assigns.resumeRun);
const promote = update(assigns.promoteFollowUp);
const dropNext = update(assigns.dropNext);

const guards = {
  wasWaiting: ({ context }) => context.waiting,
  steers: ({ event }) => event.type === 'message.sent' && event.kind === 'steer',
  supersedes: ({ context, event }) =>
    event.type === 'message.sent' &&
    event.kind === 'direct' &&
    context.settings.policies.whileSuspended === 'denyAndRun',
  nothingUndecided: ({ context }) => !undecided(context.open),
  /** A decision came after the run's last gate; it was taken in an active run, so it is applied without being asked. */
  decidedInTail: ({ event }) =>
    event.type === 'xstate.done.actor.run' &&
    event.output.end.termination === 'Suspended' &&
    dueReplays(event.output).length > 0,
  suspended: ({ context, event }) =>
    event.type === 'xstate.done.actor.run' &&
    event.output.end.termination === 'Suspended' &&
    context.trigger.kind !== 'retry',
  promotes: ({ context, event }) => {
    const reasons: readonly unknown[] = context.settings.policies.promoteFollowUpOn;
    return !!nextFollowUp(context.queue) && reasons.includes(reasonOf(event));
  },
  isQueued: ({ context, event }) =>
    event.type === 'message.returned' && context.queue.some(({ messageId }) => messageId === event.messageId),
  /** The store has said no; while it says nothing, the stop may still land. */
  lostTheStop: ({ event }) => event.type === 'append.failed' && event.lost.some(({ type }) => type === 'run-stop'),
  wasGivenUp: ({ event }) => event.type === 'append.failed' && event.lost.length === 0,
  hasFollowUp: ({ context, event }) => {
    const waits = event.type === 'promotion.requested' ? event.of?.waits : undefined;
    return nextFollowUp(waits?.queue ?? context.queue) !== undefined;
  },
  failed: ({ event }) => event.type === 'xstate.done.actor.run' && event.output.end.termination === 'Error',
} satisfies Guards<ConversationContext, ConversationEvent>;

const conversationSetup = () =>
  setup({
    types: {} as { context: ConversationContext; events: ConversationEvent; input: ConversationInput },
    actors: { run: runMachine },
    actions: verbs<ConversationContext, ConversationEvent, never, Message<'run', RunEvent>>(),
    guards,
  });

const config = {
  id: 'CONVERSATION',
  context: ({ input }) => contextOf(input),
  initial: 'opening',
  on: {
    'outcome.settled': { actions: [update(assigns.settleRetry), log(entries.settledEntries)] },
    'message.returned': { guard: 'isQueued', actions: takeBack },
    'sub-agent.changed': { actions: [update(assigns.countSubAgent), log(entries.lateSubAgentEntries)] },
  },
  states: {
    opening: { always: [{ guard: 'wasWaiting', target: 'waiting' }, { target: 'idle' }] },
    idle: {
      initial: 'ready',
      states: { ready: {}, error: {} },
      on: {
        'message.sent': { target: 'busy', actions: [...leaveBehind, update(assigns.startRun)] },
        'resume.requested': { target: 'busy', actions: resume },
        'promotion.requested': {
          guard: 'hasFollowUp',
          target: 'busy',
          actions: [...leaveBehind, promote],
        },
        'decision.arrived': { actions: hold },
        'append.failed': { target: '.error', actions: unsettle },
      },
    },
    busy: {
      invoke: { src: 'run', id: 'run', input: entries.runInput },
      initial: 'active',
      states: {
        active: { on: { 'cancel.requested': { target: 'cancelling', actions: forward } } },
        // A run that was suspended before it heard of the cancel leaves calls that nobody waits for.
        cancelling: {
          on: {
            'xstate.done.actor.run': {
              guard: 'suspended',
              target: '#CONVERSATION.closing',
              actions: [
                update(assigns.takeRun),
                log(entries.closingEntries),
                ask(entries.askEnded),
                ask(entries.askStop('closing')),
              ],
            },
          },
        },
      },
      on: {
        'message.sent': [{ guard: 'steers', actions: [...queue, forward] }, { actions: queue }],
        'message.returned': { guard: 'isQueued', actions: [...takeBack, forward] },
        'steers.delivered': { actions: update(assigns.unqueueSteers) },
        'sub-agent.changed': { actions: [update(assigns.countSubAgent), log(entries.subAgentEntriesOfRun), forward] },
        'decision.arrived': { actions: [log(entries.decisionEntries), forward] },
        'append.failed': { actions: [unsettle, forward] },
        'effect.failed': { actions: forward },
        'xstate.done.actor.run': [
          { guard: 'decidedInTail', target: 'busy', reenter: true, actions: continueRun },
          { guard: 'suspended', target: 'waiting', actions: takeRun },
          { guard: 'promotes', target: 'busy', reenter: true, actions: [...takeRun, promote] },
          { guard: 'failed', target: 'idle.error', actions: takeRun },
          { target: 'idle', actions: takeRun },
        ],
      },
    },
    waiting: {
      on: {
        'message.sent': [
          { guard: 'supersedes', target: 'superseding', actions: update(assigns.takeNext) },
          { guard: 'nothingUndecided', target: 'busy', actions: [...queue, resume] },
          { actions: queue },
        ],
        'resume.requested': { target: 'busy', actions: resume },
        'decision.arrived': { actions: hold },
        'cancel.requested': {
          target: 'closing',
          actions: close,
        },
        'append.failed': { actions: unsettle },
      },
    },
    closing: {
      // It may come from a stop that was asked for elsewhere.
      meta: { awaits: [entries.askStop('closing'), entries.askStop('superseding')] },
      initial: 'storing',
      states: {
        storing: {},
        // The stop was given up, and may land or fail: what is logged behind it goes the same way.
        late: {
          on: {
            'message.sent': { target: '#CONVERSATION.busy', actions: [...leaveLate, update(assigns.startRun)] },
            'resume.requested': { target: '#CONVERSATION.busy', actions: [...leaveLate, resume] },
            'promotion.requested': {
              guard: 'hasFollowUp',
              target: '#CONVERSATION.busy',
              actions: [...leaveLate, promote],
            },
          },
        },
      },
      on: {
        'message.sent': { actions: queue },
        'decision.arrived': { actions: hold },
        'effect.done': [
          { guard: 'promotes', target: 'busy', actions: [...closeCycle, promote] },
          { target: 'idle', actions: closeCycle },
        ],
        'append.failed': [
          { guard: 'lostTheStop', target: 'waiting', actions: [unsettle, dropNext] },
          // The host is told that nothing was stored.
          { guard: 'wasGivenUp', target: '.late', actions: dropNext },
          { actions: unsettle },
        ],
      },
    },
    // The run of the message begins when the stop before it is durable; a cancel until then gives the message back.
    superseding: {
      entry: [log(entries.supersedingEntries), ask(entries.askStop('superseding'))],
      on: {
        'cancel.requested': { target: 'closing' },
        'message.sent': { actions: queue },
        'decision.arrived': { actions: hold },
        'effect.done': { target: 'busy', actions: [update(assigns.closeCycle), update(assigns.startNext)] },
        'append.failed': [
          { guard: 'lostTheStop', target: 'waiting', actions: [unsettle, dropNext] },
          { actions: unsettle },
        ],
      },
    },
  },
} satisfies ConfigOf<typeof conversationSetup>;

export const conversationChart: Chart = {
  id: config.id,
  config,
  implementations: { guards, actors: { run: runChart } },
};
export const conversationMachine = /* @__PURE__ */ (() => conversationSetup().createMachine(config))();
