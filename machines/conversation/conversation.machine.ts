/**
 * CONVERSATION: the life around the runs. `idle` takes a message as a new request. `busy` holds one run and the queue of
 * steers and followUps. `waiting` is a suspended cycle. Invariant: an accepted message is never lost. It is delivered, stays
 * queued and listed, or is returned.
 */

import { setup } from 'xstate';
import type { ActOutcome, AppendFailed } from '../ports.ts';
import { effectsOfRun } from '../run/requests.ts';
import { runChart, runMachine } from '../run/run.machine.ts';
import type { RunEvent } from '../run/runContext.ts';
import { stopReason } from '../run/runEntries.ts';
import { dueReplays } from '../tools/openCalls.ts';
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
import { judgeAct, type Outcome, standingOf } from './judgeAct.ts';

/**
 * The stop reason that promotion depends on. False where the store lost an entry of a call: only the log has the remaining calls, and the
 * next command brings them.
 */
function reasonOf(event: ConversationEvent) {
  if (event.type !== 'xstate.done.actor.run') return 'interrupted';
  const { durable, end } = event.output;
  // A call that is retried alone and waits again does not block the queue.
  return durable && !end.lost?.some((entry) => 'callId' in entry) && (stopReason(end) ?? 'completed');
}

/** The outcome of a message in the states with this status. */
const judged =
  (status: 'active' | 'waiting', outcome: Outcome) =>
  ({ context, event }: ConversationArgs): boolean =>
    event.type === 'message.sent' && judgeAct(standingOf({ tags: new Set([status]), context }), event) === outcome;

/** An append of an earlier run that fails is not a failure of the current run. A decision belongs to whichever run is active. */
const losesOfRun = ({ runId }: ConversationContext, { lost }: AppendFailed): boolean =>
  lost.length === 0 || lost.some((entry) => entry.runId === runId || entry.type === 'decision');

/** The event for the run, unchanged, if it concerns the run. */
function forRun({ context, event }: ConversationArgs): RunEvent | undefined {
  switch (event.type) {
    case 'message.sent':
      return { type: 'message.steered', message: queued(event) };
    case 'append.failed':
      return losesOfRun(context, event) ? event : undefined;
    case 'decision.arrived':
      return { type: event.type, held: event.held };
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
/** Cancels the run, which may have begun in the same step. */
function cancelRun({ event }: ConversationArgs): Message<'run', RunEvent> {
  const partial = 'partial' in event ? event.partial : undefined;
  return { to: 'run', event: { type: 'run.cancelled', ...(partial !== undefined && { partial }) } };
}
/** Answers an act of the host. Every handler of an act has one, so that every act is answered. */
const answer = (outcome: ActOutcome) => ask(entries.askAnswer(outcome));
const answerReceipt = ask(entries.askReceipt);
const takeRun = [ask(entries.askEnded), update(assigns.takeRun)] as const;
const continueRun = [ask(entries.askEnded), update(assigns.continueRun)] as const;
const queue = [update(assigns.queueMessage), log(entries.queuedEntries)] as const;
const hold = {
  guard: 'isAccepted',
  actions: [update(assigns.holdDecision), log(entries.decisionEntries), answerReceipt],
} as const;
const takeBack = [log(entries.returnedEntries), update(assigns.withdrawMessage), answer('returned')] as const;
const emptyQueue = [log(entries.returnedQueue), update(assigns.withdrawQueue)] as const;
/** A withdrawn message is not queued. */
const giveBack = { guard: 'isWithdrawn', actions: answer('returned') } as const;
const leaveBehind = [log(entries.leftBehindEntries), update(assigns.leaveReruns)] as const;
const close = [log(entries.cancelledCallsAndStop), ask(entries.askStop('closing'))] as const;
const rewind = [log(entries.rewindEntries), update(assigns.rewindLog), answer('rewound')] as const;
const start = [...leaveBehind, update(assigns.startRun), answer('started')] as const;
const closeCycle = [ask(entries.askNotBegun), update(assigns.closeCycle), update(assigns.dropNext)] as const;
/** Nobody waits for this stop any more. Entries from here on follow it in the log. */
const leaveLate = [drop(effectsOfRun), ...closeCycle] as const;
const startLate = [...leaveLate, update(assigns.startRun), answer('started')] as const;
const unsettle = update(assigns.dropLost);
const resume = [update(assigns.resumeRun), answer('continued')] as const;
const promote = [update(assigns.promoteFollowUp), answer('continued')] as const;
const dropNext = update(assigns.dropNext);

const guards = {
  wasWaiting: ({ context }) => context.waiting,
  steers: judged('active', 'steered'),
  supersedes: judged('waiting', 'superseding'),
  resumes: judged('waiting', 'resumed'),
  /** A decision arrived after the last gate of an active run, so it is applied without a resume. */
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
  /** The store refused the stop. While the store does not answer, the stop may still be stored. */
  lostTheStop: ({ event }) => event.type === 'append.failed' && event.lost.some(({ type }) => type === 'run-stop'),
  lostTheSuspension: ({ event }) =>
    event.type === 'append.failed' && event.lost.some(({ type }) => type === 'run-suspended'),
  wasGivenUp: ({ event }) => event.type === 'append.failed' && event.lost.length === 0,
  hasQueue: ({ context }) => context.queue.length > 0,
  hasFollowUp: ({ context, event }) => {
    const waits = event.type === 'promotion.requested' ? event.of?.waits : undefined;
    return nextFollowUp(waits?.queue ?? context.queue) !== undefined;
  },
  isWithdrawn: ({ event }) => 'withdrawn' in event && event.withdrawn === true,
  /** The decision or settlement is new to the log. */
  isAccepted: ({ event }) => 'receipt' in event && (event.receipt === 'applied' || event.receipt === 'held'),
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
    'outcome.settled': [
      { guard: 'isAccepted', actions: [update(assigns.settleRetry), log(entries.settledEntries), answerReceipt] },
      { actions: answerReceipt },
    ],
    'decision.arrived': { actions: answerReceipt },
    'message.returned': [{ guard: 'isQueued', actions: takeBack }, { actions: answer('nothing') }],
    'sub-agent.changed': {
      actions: [update(assigns.countSubAgent), log(entries.lateSubAgentEntries), answer('applied')],
    },
    'resume.requested': [giveBack, { actions: answer('nothing') }],
    'promotion.requested': { actions: answer('nothing') },
    'rewind.requested': { actions: answer('nothing') },
    'cancel.requested': { actions: answer('nothing') },
    'close.requested': [
      { guard: 'hasQueue', actions: [...emptyQueue, answer('returned')] },
      { actions: answer('nothing') },
    ],
  },
  states: {
    opening: { tags: 'idle', always: [{ guard: 'wasWaiting', target: 'waiting' }, { target: 'idle' }] },
    idle: {
      initial: 'ready',
      states: { ready: { tags: 'idle' }, error: { tags: 'error' } },
      on: {
        'message.sent': [
          { guard: 'isWithdrawn', target: 'busy.cancelling', actions: start },
          { target: 'busy', actions: start },
        ],
        'resume.requested': [
          { guard: 'isWithdrawn', target: 'busy.cancelling', actions: resume },
          { target: 'busy', actions: resume },
        ],
        'promotion.requested': {
          guard: 'hasFollowUp',
          target: 'busy',
          actions: [...leaveBehind, ...promote],
        },
        'rewind.requested': { actions: rewind },
        'decision.arrived': hold,
        'append.failed': { target: '.error', actions: unsettle },
      },
    },
    busy: {
      invoke: { src: 'run', id: 'run', input: entries.runInput },
      initial: 'active',
      states: {
        active: {
          tags: 'active',
          on: {
            'message.sent': [giveBack, { guard: 'steers', actions: [...queue, forward, answer('steered')] }],
            'cancel.requested': { target: 'cancelling', actions: answer('cancelled') },
            'close.requested': { target: 'cancelling', actions: [...emptyQueue, answer('cancelled')] },
            'resume.requested': [giveBack, { actions: answer('joined') }],
            'promotion.requested': { actions: answer('joined') },
          },
        },
        // A run that was suspended before it received the cancel leaves open calls.
        cancelling: {
          tags: 'cancelling',
          entry: tell(cancelRun),
          on: {
            'cancel.requested': { actions: answer('joined') },
            'close.requested': { actions: [...emptyQueue, answer('joined')] },
            'xstate.done.actor.run': {
              guard: 'suspended',
              target: '#CONVERSATION.closing',
              actions: [
                update(assigns.takeRun),
                log(entries.cancelledCallsAndStop),
                ask(entries.askEnded),
                ask(entries.askStop('closing')),
              ],
            },
          },
        },
      },
      on: {
        'message.sent': [giveBack, { actions: [...queue, answer('queued')] }],
        'message.returned': { guard: 'isQueued', actions: [...takeBack, forward] },
        'steers.delivered': { actions: update(assigns.unqueueSteers) },
        'sub-agent.changed': {
          actions: [update(assigns.countSubAgent), log(entries.subAgentEntriesOfRun), forward, answer('applied')],
        },
        'decision.arrived': {
          guard: 'isAccepted',
          actions: [log(entries.decisionEntries), forward, answerReceipt],
        },
        'append.failed': { actions: [unsettle, forward] },
        'effect.failed': { actions: forward },
        'xstate.done.actor.run': [
          { guard: 'decidedInTail', target: 'busy', reenter: true, actions: continueRun },
          { guard: 'suspended', target: 'waiting', actions: takeRun },
          {
            guard: 'promotes',
            target: 'busy',
            reenter: true,
            actions: [...takeRun, update(assigns.promoteFollowUp)],
          },
          { guard: 'failed', target: 'idle.error', actions: takeRun },
          { target: 'idle', actions: takeRun },
        ],
      },
    },
    waiting: {
      tags: 'waiting',
      on: {
        'message.sent': [
          giveBack,
          { guard: 'supersedes', target: 'superseding', actions: update(assigns.takeNext) },
          { guard: 'resumes', target: 'busy', actions: [...queue, update(assigns.resumeRun), answer('resumed')] },
          { actions: [...queue, answer('queued')] },
        ],
        'resume.requested': [
          { guard: 'isWithdrawn', target: 'busy.cancelling', actions: resume },
          { target: 'busy', actions: resume },
        ],
        'decision.arrived': hold,
        'cancel.requested': {
          target: 'closing',
          actions: [...close, answer('cancelled')],
        },
        'rewind.requested': { target: 'closing', actions: [...close, update(assigns.dropRetries), answer('rewound')] },
        'append.failed': { actions: unsettle },
      },
    },
    closing: {
      // The answer may belong to a stop that another state asked for.
      meta: { awaits: [entries.askStop('closing'), entries.askStop('superseding')] },
      initial: 'storing',
      states: {
        storing: { tags: 'cancelling', on: { 'cancel.requested': { actions: answer('joined') } } },
        // The cancel no longer waits for the stop, which may still be stored or refused. Later entries share its fate.
        late: {
          tags: 'error',
          on: {
            'message.sent': [
              { guard: 'isWithdrawn', target: '#CONVERSATION.busy.cancelling', actions: startLate },
              { target: '#CONVERSATION.busy', actions: startLate },
            ],
            'resume.requested': [
              {
                guard: 'isWithdrawn',
                target: '#CONVERSATION.busy.cancelling',
                actions: [...leaveLate, ...resume],
              },
              { target: '#CONVERSATION.busy', actions: [...leaveLate, ...resume] },
            ],
            'promotion.requested': {
              guard: 'hasFollowUp',
              target: '#CONVERSATION.busy',
              actions: [...leaveLate, ...promote],
            },
            'rewind.requested': { target: '#CONVERSATION.idle', actions: [...leaveLate, ...rewind] },
          },
        },
      },
      on: {
        'message.sent': [giveBack, { actions: [...queue, answer('queued')] }],
        'decision.arrived': hold,
        'effect.done': [
          { guard: 'promotes', target: 'busy', actions: [...closeCycle, update(assigns.promoteFollowUp)] },
          { target: 'idle', actions: closeCycle },
        ],
        'append.failed': [
          // The store refused the suspension before the stop too, so no cycle of the log waits.
          { guard: 'lostTheSuspension', target: 'idle.error', actions: [unsettle, update(assigns.loseSuspension)] },
          { guard: 'lostTheStop', target: 'waiting', actions: [unsettle, dropNext] },
          // The host receives the failure of the append.
          { guard: 'wasGivenUp', target: '.late', actions: dropNext },
          { actions: unsettle },
        ],
      },
    },
    // The message starts a run when the previous stop is durable. An earlier cancel returns the message.
    superseding: {
      tags: 'active',
      entry: [log(entries.deniedCallsAndStop), ask(entries.askStop('superseding')), answer('superseding')],
      on: {
        'cancel.requested': { target: 'closing', actions: answer('cancelled') },
        'close.requested': { target: 'closing', actions: [...emptyQueue, answer('cancelled')] },
        'message.sent': [
          giveBack,
          { guard: 'steers', actions: [...queue, answer('steered')] },
          { actions: [...queue, answer('queued')] },
        ],
        'resume.requested': [giveBack, { actions: answer('joined') }],
        'promotion.requested': { actions: answer('joined') },
        'decision.arrived': hold,
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
/** The chart CONVERSATION: it judges acts of the host and starts runs. */
export const conversationMachine = /* @__PURE__ */ (() => conversationSetup().createMachine(config))();
