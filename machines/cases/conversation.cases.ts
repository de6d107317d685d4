/** Cases of CONVERSATION: fresh, restored with a queue, and waiting; every act of a host and every end of a run. */

import { type HeldDecision, noOpenCalls } from '../calls.ts';
import type { ConversationContext, ConversationInput } from '../conversation/context.ts';
import { freshCounters, subAgentEntries } from '../counters.ts';
import { type ChartPolicies, defaultPolicies } from '../policies.ts';
import type { End, RunChartOutput } from '../run/runContext.ts';
import type { NewEntry, QueuedMessage } from '../vocabulary.ts';
import { type Cases, surroundings } from './cases.ts';
import { conversationSurroundings } from './conversation.surroundings.ts';
import { callOf, subAgentEnds } from './run.inputs.ts';
import { noPhases } from './toolRound.cases.ts';

const held: HeldDecision = { callId: 's', suspension: 1, decision: { callId: 's', action: 'approve' } };
const waiting = { ...noOpenCalls, suspended: [{ call: callOf('s'), suspension: 1 }] };
const cutOff = { ...noOpenCalls, reruns: [{ call: callOf('x'), suspension: 0 }] };
const followUp: QueuedMessage = { messageId: 'f0', kind: 'followUp', content: [] };

/** `acts`: how many messages and resumptions may come. */
function conversation(
  acts: number,
  start: Partial<ConversationInput> = {},
  policies: Partial<ChartPolicies> = {},
): ConversationInput {
  const limits = { ...defaultPolicies.limits, queue: acts };
  return {
    settings: {
      conversationId: 'c',
      policies: { ...defaultPolicies, ...policies, limits },
      phases: noPhases,
      models: ['m'],
    },
    open: noOpenCalls,
    counters: freshCounters,
    queue: [],
    runId: '',
    waiting: false,
    ...start,
  };
}

const inputs: readonly ConversationInput[] = [
  conversation(2),
  conversation(2, {}, { promoteFollowUpOn: ['completed'] }),
  conversation(1, { queue: [followUp], runId: 'q0' }),
  conversation(1, { open: waiting, runId: 'q0', waiting: true }),
  conversation(1, { open: { ...waiting, decisions: [held] }, runId: 'q0', waiting: true, queue: [followUp] }),
  conversation(2, { open: waiting, runId: 'q0', waiting: true }, { whileSuspended: 'denyAndRun' }),
  // Calls that a crash interrupted and that may run again, in a cycle that has ended.
  conversation(1, { open: cutOff, runId: 'q0' }),
  conversation(0, { open: cutOff, runId: 'q0', queue: [followUp] }),
];

const ended = (end: End, rest: Partial<RunChartOutput> = {}) => ({
  type: 'xstate.done.actor.run',
  actorId: 'run',
  output: { end, durable: true, counters: freshCounters, ...noOpenCalls, ...rest },
});
const error = { code: 'disk', message: 'no space left' };
const ends = [
  ended({ termination: 'NaturalEnd', cause: 'end_turn' }),
  ended({ termination: 'NaturalEnd', cause: 'end_turn' }, { durable: false }),
  ended({ termination: 'Cancelled', cause: 'cancelled' }),
  ended({ termination: 'Error', cause: 'model', error }),
  // Suspended calls still wait after an error; the next request does not answer them.
  ended({ termination: 'Error', cause: 'store', error }, waiting),
  ended({ termination: 'Suspended' }, waiting),
  ended({ termination: 'Suspended' }, { ...waiting, decisions: [held] }),
];

/** Each act of the host is answered under its id. */
const actId = 'act/1';
/** Messages and resumptions, in the order of their arrival. */
const acts = ['n1', 'n2'];
const sent = (messageId: string, kind: 'direct' | 'steer' | 'followUp') => ({
  type: 'message.sent',
  actId,
  messageId,
  content: [],
  kind,
});
/** The log after a store lost everything of a resumption: a decided call waits, one call follows it, and one was interrupted. */
const others = { ...held, callId: 'o', decision: { ...held.decision, callId: 'o' } };
const logged = {
  runId: 'q',
  counters: freshCounters,
  waits: {
    suspended: waiting.suspended,
    kept: [{ call: callOf('k'), behind: 's' }],
    reruns: [{ call: callOf('l'), suspension: 0 }],
    decisions: [others, { ...held, decision: { ...held.decision, by: '[redacted]' } }],
    queue: [{ ...followUp, messageId: 'f1' }],
  },
};
/** The entries that end a waiting cycle, in one append. */
const stopOf = (result: { outcome: 'cancelled' | 'failed'; code: string }, cause: string): NewEntry[] => [
  { runId: 'q0', type: 'tool-result', callId: 's', content: [], ...result },
  { runId: 'q0', type: 'run-stop', reason: 'interrupted', cause },
  { runId: 'q0', type: 'checkpoint', boundary: 'RunFinished' },
];
const queuedEntry: NewEntry = { runId: 'q0', type: 'message-queued', messageId: 'n1', kind: 'followUp', content: [] };
const suspendedEntry: NewEntry = { runId: 'q0', type: 'run-suspended', waiting: ['s'] };
const lost: readonly NewEntry[][] = [
  [],
  [{ runId: 'q0', type: 'decision', ...held }],
  [{ runId: 'q0', type: 'call-settled', callId: 'x', how: { retry: true } }],
  [queuedEntry],
  subAgentEntries('q0', subAgentEnds),
  stopOf({ outcome: 'cancelled', code: 'cancelled' }, 'cancelled'),
  stopOf({ outcome: 'failed', code: 'denied' }, 'superseded'),
  // A message that arrived while the stop was being stored is lost with it.
  [...stopOf({ outcome: 'cancelled', code: 'cancelled' }, 'cancelled'), queuedEntry],
  [...stopOf({ outcome: 'failed', code: 'denied' }, 'superseded'), queuedEntry],
  // A cancel did not wait for the suspension, and the store refused both.
  [suspendedEntry, ...stopOf({ outcome: 'cancelled', code: 'cancelled' }, 'cancelled')],
  [suspendedEntry, ...stopOf({ outcome: 'cancelled', code: 'cancelled' }, 'cancelled'), queuedEntry],
];

export const conversationCases = {
  inputs,
  cases: {
    [surroundings]: conversationSurroundings,
    'message.sent': [
      ...acts.flatMap((id) => [sent(id, 'direct'), sent(id, 'steer'), sent(id, 'followUp')]),
      { ...sent('n2', 'direct'), of: logged },
      { ...sent('n2', 'direct'), whileSuspended: 'denyAndRun' },
      // Its caller withdrew it before the chart took it.
      { ...sent('n2', 'direct'), withdrawn: true },
    ],
    'resume.requested': [
      { type: 'resume.requested', actId, runId: 'n1' },
      { type: 'resume.requested', actId, runId: 'n2', continuation: 'Go on.' },
      { type: 'resume.requested', actId, runId: 'n1', of: { runId: 'q', counters: freshCounters, ended: true } },
      { type: 'resume.requested', actId, runId: 'n2', of: { runId: 'q', counters: { ...freshCounters, turns: 2 } } },
      { type: 'resume.requested', actId, runId: 'n2', of: logged },
      { type: 'resume.requested', actId, runId: 'n2', withdrawn: true },
    ],
    'promotion.requested': [
      { type: 'promotion.requested', actId },
      { type: 'promotion.requested', actId, of: logged },
    ],
    'message.returned': ['f0', 'n1'].map((messageId) => ({ type: 'message.returned', actId, messageId, why: 'host' })),
    'cancel.requested': [
      { type: 'cancel.requested', actId },
      { type: 'cancel.requested', actId, partial: 'so f' },
    ],
    'close.requested': [
      { type: 'close.requested', actId },
      { type: 'close.requested', actId, partial: 'so f' },
    ],
    'rewind.requested': [
      { type: 'rewind.requested', actId, toSeq: 3 },
      { type: 'rewind.requested', actId, toSeq: 3, of: logged },
    ],
    'decision.arrived': [
      { type: 'decision.arrived', actId, held, receipt: 'applied' },
      { type: 'decision.arrived', actId, held, receipt: 'duplicate' },
    ],
    'outcome.settled': [
      { type: 'outcome.settled', actId, callId: 'x', how: { didNotRun: true }, receipt: 'applied' },
      { type: 'outcome.settled', actId, callId: 'x', how: { didNotRun: true }, receipt: 'unknown' },
      {
        type: 'outcome.settled',
        actId,
        receipt: 'applied',
        callId: 'x',
        how: { retry: true },
        retry: { call: { ...callOf('x'), gated: false }, suspension: 0 },
      },
    ],
    'steers.delivered': acts.map((messageId) => ({
      type: 'steers.delivered',
      messages: [{ messageId, kind: 'steer', content: [] }],
    })),
    'sub-agent.changed': [{ ...subAgentEnds, actId }],
    'effect.done': [{ type: 'effect.done', id: '', value: { kind: 'committed' } }],
    'effect.failed': [{ type: 'effect.failed', id: 'q/', cause: 'executor', error }],
    'append.failed': lost.map((entries) => ({ type: 'append.failed', error, lost: entries })),
    'xstate.done.actor.run': ends,
  },
  projection: ({ trigger, queue, open, retries, waiting: waits, runId, next }: ConversationContext) => ({
    retry: trigger.kind === 'retry',
    queue: queue.map(({ messageId, kind }) => [messageId, kind]),
    suspended: open.suspended.map(({ call }) => call.callId),
    decisions: open.decisions.length,
    reruns: open.reruns.length,
    retries: retries.length,
    waits,
    begun: runId !== '',
    next: next?.messageId,
  }),
} satisfies Cases;
