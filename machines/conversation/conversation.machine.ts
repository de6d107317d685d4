/**
 * CONVERSATION: the life around the runs. `idle` takes a message as a new request. `busy` holds one run and the queue of
 * steers and followUps. `waiting` is a suspended cycle. Invariant: an accepted message is never lost. It is delivered, stays
 * queued and listed, or is returned.
 */

import { setup } from 'xstate';
import type { AppendFailed } from '../ports.ts';
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
 * The stop reason that promotion depends on. False where the store lost an entry of a call: only the log knows what remains,
 * and the next command brings it.
 */
function reasonOf(event: ConversationEvent) {
  if (event.type !== 'xstate.done.actor.run') return 'interrupted';
  const { durable, end } = event.output;
  // A call that is retried alone and waits again does not block the queue.
  return durable && !end.lost?.some((entry) => 'callId' in entry) && (stopReason(end) ?? 'completed');
}

/** What a message comes to in the states with this status. */
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
/** Nobody waits for this stop any more. Entries from here on follow it in the log. */
const leaveLate = [drop(effectsOfRun), ...closeCycle] as const;
const unsettle = update(assigns.dropLost);
const resume = update(assigns.resumeRun);
const promote = update(assigns.promoteFollowUp);
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
    opening: { tags: 'idle', always: [{ guard: 'wasWaiting', target: 'waiting' }, { target: 'idle' }] },
    idle: {
      initial: 'ready',
      states: { ready: { tags: 'idle' }, error: { tags: 'error' } },
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
        active: { tags: 'active', on: { 'cancel.requested': { target: 'cancelling', actions: forward } } },
        // A run that was suspended before it received the cancel leaves calls that nobody waits for.
        cancelling: {
          tags: 'cancelling',
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
      tags: 'waiting',
      on: {
        'message.sent': [
          { guard: 'supersedes', target: 'superseding', actions: update(assigns.takeNext) },
          { guard: 'resumes', target: 'busy', actions: [...queue, resume] },
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
      // The answer may belong to a stop that another state asked for.
      meta: { awaits: [entries.askStop('closing'), entries.askStop('superseding')] },
      initial: 'storing',
      states: {
        storing: { tags: 'cancelling' },
        // The stop was given up and may be stored or refused. Later entries share its fate.
        late: {
          tags: 'error',
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
          // The suspension before the stop was refused too: by the log, no cycle waits.
          { guard: 'lostTheSuspension', target: 'idle.error', actions: [unsettle, update(assigns.loseSuspension)] },
          { guard: 'lostTheStop', target: 'waiting', actions: [unsettle, dropNext] },
          // The host is told that nothing was stored.
          { guard: 'wasGivenUp', target: '.late', actions: dropNext },
          { actions: unsettle },
        ],
      },
    },
    // The run of the message begins after the stop before it is durable. A cancel before that returns the message.
    superseding: {
      tags: 'active',
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
