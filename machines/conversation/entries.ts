/**
 * The entries and requests of a conversation, and its messages to its run. Invariant: each function takes context and event and returns
 * plain values. The next state is decided by the chart alone.
 */

import type { HeldDecision, OpenCalls } from '../calls.ts';
import { subAgentEntries } from '../counters.ts';
import { expiredEntries } from '../log/callRecord.ts';
import { syntheticResults } from '../log/reconcile.ts';
import type { ActOutcome, EffectRequest } from '../ports.ts';
import type { RunInput, Settings } from '../run/runContext.ts';
import { matches } from '../tools/openCalls.ts';
import { SUPERSEDED } from '../transcript/texts.ts';
import type { NewEntry } from '../vocabulary.ts';
import { type ConversationArgs, type ConversationContext, queued, runOf } from './context.ts';

type Args = ConversationArgs;

export const queuedEntries = ({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'message.sent' ? [{ runId, type: 'message-queued', ...queued(event) }] : [];

/** Calls that a resumption might have run again. A new request abandons them with the outcome `unknown`. */
export const leftBehindEntries = (args: Args): NewEntry[] =>
  syntheticResults(args.context.runId, idsOf(openNow(args).reruns), 'unknown');

/** What waits according to the log, where it is complete, or else to the chart. */
const openNow = ({ context, event }: Args): OpenCalls => ('of' in event && event.of?.waits) || context.open;

export const returnedEntries = ({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'message.returned'
    ? [{ runId, type: 'message-returned', messageId: event.messageId, why: event.why }]
    : [];

/** Each queued message is returned. */
export const returnedQueue = ({ context: { runId, queue } }: Args): NewEntry[] =>
  queue.map(({ messageId }) => ({ runId, type: 'message-returned', messageId, why: 'closed' }));

export const decisionEntries = ({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'decision.arrived' ? [{ runId, type: 'decision', ...event.held }] : [];

/** While a run is active the entry belongs to that run. After its end it belongs to no run. */
export const subAgentEntriesOfRun = ({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'sub-agent.changed' ? subAgentEntries(runId, event) : [];

export const lateSubAgentEntries = ({ event }: Args): NewEntry[] =>
  event.type === 'sub-agent.changed' ? subAgentEntries(null, event) : [];

export const settledEntries = ({ context: { runId }, event }: Args): NewEntry[] =>
  event.type === 'outcome.settled' ? [{ runId, type: 'call-settled', callId: event.callId, how: event.how }] : [];

const earlyDecisions = ({ suspended, decisions }: OpenCalls): HeldDecision[] =>
  decisions.filter((held) => !suspended.some((waiting) => matches(held, waiting)));

const content = [{ type: 'text' as const, text: SUPERSEDED }];

const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);

/** Each open call gets its result. `waiting`: the results of suspended calls. */
const callsOver = (runId: string, open: OpenCalls, waiting: readonly NewEntry[]): NewEntry[] => [
  ...waiting,
  ...syntheticResults(runId, idsOf(open.kept), 'skipped'),
  ...syntheticResults(runId, idsOf(open.reruns), 'unknown'),
  ...expiredEntries(runId, earlyDecisions(open)),
];
const cancelledCalls = (runId: string, open: OpenCalls): NewEntry[] =>
  callsOver(runId, open, syntheticResults(runId, idsOf(open.suspended), 'cancelled'));

/** A rewind also ends the calls of earlier cycles that the host wants retried. */
const rewoundEntries = ({ context: { retries }, event }: Args): NewEntry[] =>
  event.type === 'rewind.requested'
    ? [...syntheticResults(null, idsOf(retries), 'unknown'), { runId: null, type: 'rewound', toSeq: event.toSeq }]
    : [];

/** Ends a waiting cycle: its calls get their results, and the stop is written (docs/internals/model.md, Boundary Rule). */
function stopEntries(args: Args, cause: string): NewEntry[] {
  const { runId } = args.context;
  return [
    { runId, type: 'run-stop', reason: 'interrupted', cause },
    ...rewoundEntries(args),
    { runId, type: 'checkpoint', boundary: 'RunFinished' },
  ];
}

/** A rewind of a waiting conversation cancels its cycle. Both are one append. */
export function cancelledCallsAndStop(args: Args): NewEntry[] {
  const { runId, open } = args.context;
  return [...cancelledCalls(runId, open), ...stopEntries(args, 'cancelled')];
}

/** A rewind while no cycle waits. Calls that a resumption might have run again are over. */
export const rewindEntries = (args: Args): NewEntry[] => [
  ...cancelledCalls(args.context.runId, openNow(args)),
  ...rewoundEntries(args),
];

/** A superseding message also replaces decisions that were taken and not yet carried out. */
export function deniedCallsAndStop(args: Args): NewEntry[] {
  const { runId, open } = args.context;
  const denied = open.suspended.map(({ call: { callId } }): NewEntry => {
    return { runId, type: 'tool-result', callId, outcome: 'failed', content, code: 'denied' };
  });
  return [...callsOver(runId, open, denied), ...stopEntries(args, 'superseded')];
}

export const askStop =
  (name: 'closing' | 'superseding') =>
  ({ context }: Args): EffectRequest => ({ kind: 'commit', id: `${context.runId}/${name}`, boundary: 'RunFinished' });

export function askEnded({ context, event }: Args): EffectRequest | undefined {
  if (event.type !== 'xstate.done.actor.run') return undefined;
  const { runId } = context;
  const { end, durable } = event.output;
  const { lost: _, ...fields } = end;
  // The cancel may not have waited for the store, so it is not known whether the run is suspended.
  const result = { runId, durable, ...fields, ...(!durable && { termination: 'Error' as const }) };
  return { kind: 'ended', id: `${runId}/ended`, runId, result };
}

/** A message that was to replace a cycle and no longer does. Its run ends before it begins. */
export function askNotBegun({ context: { next } }: Args): EffectRequest | undefined {
  if (!next) return undefined;
  const runId = runOf(next.messageId);
  const result = { runId, termination: 'Cancelled' as const, cause: 'cancelled', durable: true };
  return { kind: 'ended', id: `${runId}/ended`, runId, result };
}

type Answer = Extract<EffectRequest, { kind: 'answer' }>;

/** Answers an act of the host, once everything that the act logged is durable. */
export const askAnswer =
  (outcome: ActOutcome) =>
  ({ event }: Args): Answer | undefined =>
    'actId' in event && event.actId !== undefined ? { kind: 'answer', id: event.actId, outcome } : undefined;

/** The answer to a decision or a settlement. */
export function askReceipt(args: Args): Answer | undefined {
  const { event } = args;
  if (event.type === 'outcome.settled') return askAnswer(event.receipt)(args);
  if (event.type !== 'decision.arrived') return undefined;
  const answer = askAnswer(event.receipt)(args);
  return answer && { ...answer, suspension: event.held.suspension };
}

/** Without a model step, only the phases around tool calls run. */
const ofCallsAlone = ({ context: _, phases, ...rest }: Settings): Settings => ({
  ...rest,
  phases: {
    ...phases,
    runStart: false,
    stepStart: false,
    beforeInference: false,
    afterInference: false,
    stepEnd: false,
    naturalEnd: false,
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
