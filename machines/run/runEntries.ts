/**
 * The entries of a run, from its opening to its last checkpoint. Invariant: each function takes context and event and returns
 * entries. Every end writes exactly one stop or suspension. Each call has one result or still waits.
 */

import { expiredEntries } from '../log/callRecord.ts';
import { syntheticResults } from '../log/reconcile.ts';
import { conflicts, writesOf } from '../tools/toolRound.machine.ts';
import { EASED, PRUNED, shareOf } from '../transcript/contextEntries.ts';
import { GO_ON, GO_ON_CUT, GO_ON_EMPTY, GO_ON_RESULTS } from '../transcript/texts.ts';
import type { Json, NewEntry, StopReason, Termination } from '../vocabulary.ts';
import { closeCalls } from './closeCalls.ts';
import {
  answersIn,
  dueSteers,
  type End,
  expiredDecisions,
  type Lost,
  limitOf,
  measured,
  outputsIn,
  type RunArgs,
  type RunContext,
  type RunEvent,
  roundOf,
  withRound,
} from './runContext.ts';

type Args = RunArgs;

export function openingEntries({ context: { runId, trigger } }: Args): NewEntry[] {
  if (trigger.kind === 'retry') return [];
  if (trigger.kind === 'resume') {
    const resumed: NewEntry = { runId, type: 'run-resumed', of: trigger.of };
    const { continuation } = trigger;
    return continuation ? [resumed, { runId, type: 'continuation', text: continuation, why: 'resume' }] : [resumed];
  }
  return [
    { runId, type: 'run-started' },
    { runId, type: 'user-message', ...trigger.message },
  ];
}

export function checkpointEntries(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  const checkpoint = ({ context: { runId, trigger } }: { context: RunContext }): NewEntry[] =>
    boundary === 'UserMessage' && trigger.kind !== 'message' ? [] : [{ runId, type: 'checkpoint', boundary }];
  return checkpoint;
}

export const phaseWriteEntries = ({ context, event }: Args): NewEntry[] =>
  event.type === 'effect.done' && event.value.kind === 'done' && event.value.writes
    ? writesEntry(context.runId, event.value.writes)
    : [];

const writesEntry = (runId: string, writes: { [key: string]: Json }): NewEntry[] => [
  { runId, type: 'state-changed', writes },
];

export const steerEntries = ({ context }: Args): NewEntry[] =>
  dueSteers(context).map((message) => ({
    runId: context.runId,
    type: 'user-message',
    ...message,
    kind: 'steer',
  }));

/** Above `warn`: one warning until usage has fallen again. Above `prune`: the results that are removed. */
export function contextEntries({ context: { runId, settings }, event }: Args): NewEntry[] {
  const value = measured(event);
  if (!value || !settings.context) return [];
  const { warn = Number.POSITIVE_INFINITY } = settings.context;
  const { used, limit, warned, prunable } = value;
  const above = shareOf(value) > warn;
  const entries: NewEntry[] = [];
  if (above && !warned) entries.push({ runId, type: 'context-warning', used, limit });
  if (!above && warned) entries.push({ runId, type: 'extension', name: EASED, value: { used, limit } });
  if (prunable) entries.push({ runId, type: 'extension', name: PRUNED, value: { callIds: prunable.callIds } });
  return entries;
}

export function replyEntries({ context, event }: Args): NewEntry[] {
  if (event.type !== 'effect.done' || event.value.kind !== 'reply') return [];
  const { runId, turn } = context;
  const { items, extra, model, finish, usage, costUsd } = event.value;
  const last = extra === undefined ? undefined : items.at(-1);
  const output = items.map(
    (item): NewEntry => ({ runId, type: 'agent-output', item, ...(item === last && { extra }) }),
  );
  return [...output, { runId, type: 'model-reply', turn, model, finish, usage, costUsd }];
}

/** The text that tells the model why it is called again although its reply has no calls; none at a limit. */
export function continuationEntries({ context }: Args): NewEntry[] {
  const { runId, reply, settings, settled, settledDuringReply, steers } = context;
  if (limitOf(context) !== undefined) return [];
  if (reply.finish === 'pause') return [{ runId, type: 'continuation', text: GO_ON, why: 'pause' }];
  if (!reply.empty && settled > 0 && settled === settledDuringReply && steers.length === 0) {
    return [{ runId, type: 'continuation', text: GO_ON_RESULTS, why: 'results' }];
  }
  if (!reply.empty || settings.policies.onEmptyReply !== 'notice') return [];
  return [
    { runId, type: 'notice', code: 'empty_reply', text: 'The model sent an empty reply; it is asked again.' },
    { runId, type: 'continuation', text: GO_ON_EMPTY, why: 'empty_reply' },
  ];
}

/** The text that tells the model to continue its reply after space was made. */
export const cutEntries = ({ context: { runId } }: Args): NewEntry[] => [
  { runId, type: 'continuation', text: GO_ON_CUT, why: 'length' },
];

/**
 * The final answer, or the reason to continue: a plugin asked for it, or the answer does not fit. At a limit there is no
 * reason to give.
 */
export function endHeardEntries({ context, event }: Args): NewEntry[] {
  const { runId } = context;
  const value = event.type === 'effect.done' ? event.value : undefined;
  if (value?.kind === 'answer') return [{ runId, type: 'extension', name: 'output', value: value.value }];
  if (value?.kind !== 'continue' || limitOf(context)) return [];
  return [{ runId, type: 'continuation', text: value.text, why: value.why }];
}

/** The results of calls that are refused without a start, then the entries of the round's calls. */
export function roundEntries(args: Args): NewEntry[] {
  const { runId } = args.context;
  const round = roundOf(args.event);
  const answered = answersIn(round).map(
    ({ fingerprint: _, ...result }): NewEntry => ({ runId, type: 'tool-result', ...result }),
  );
  return [...answered, ...writesOf(runId, outputsIn(round))];
}

/** The run continues without the calls that kept their turn. */
export const notStartedEntries = ({ context }: Args): NewEntry[] =>
  syntheticResults(
    context.runId,
    context.kept.map(({ call }) => call.callId),
    'not_started',
  );

export const cancelEntries = ({ context, event }: Args): NewEntry[] => {
  const { runId, settings } = context;
  const text = event.type === 'run.cancelled' ? event.partial : undefined;
  const kept: NewEntry[] =
    text?.trim() && settings.policies.partialReply === 'keep'
      ? [{ runId, type: 'agent-output', item: { type: 'assistant', text, flag: 'interrupted' } }]
      : [];
  return [...kept, ...closeCalls(withRound(context, event), 'cancelled'), ...stateWrites(context, event)];
};

/**
 * The lost entries that an error writes again: the message, and the beginning of the run. A queued message is not among them:
 * `send` has rejected it.
 */
const OPENING_TYPES: ReadonlySet<NewEntry['type']> = new Set<NewEntry['type']>([
  'run-started',
  'run-resumed',
  'user-message',
  'continuation',
]);

export const errorEntries = ({ context, event }: Args): NewEntry[] => {
  const lost = event.type === 'append.failed' ? event.lost : (context.end.lost ?? []);
  const opening = lost.filter(({ runId, type }) => runId === context.runId && OPENING_TYPES.has(type));
  return [...opening, ...closeCalls(withRound(context, event), 'stopped', lost), ...stateWrites(context, event, lost)];
};

export const terminateEntries = ({ context }: Args): NewEntry[] => [
  ...syntheticResults(
    context.runId,
    context.calls.map((call) => call.callId),
    'terminated',
  ),
  ...closeCalls({ ...context, calls: [] }, 'stopped'),
];

/** State changes of calls that have a result, although their round or gate was interrupted. */
function stateWrites({ runId, replaying, concluded }: RunContext, event: RunEvent, lost: Lost = []): NewEntry[] {
  const inRound = outputsIn(roundOf(event));
  const outputs = [...(conflicts(inRound) ? [] : inRound), ...(replaying.length > 0 ? concluded : [])];
  const unknown = lost.flatMap((entry) => (entry.type === 'tool-result' ? [entry.callId] : []));
  return writesOf(
    runId,
    outputs.filter((output) => !unknown.includes(output?.callId ?? '')),
  );
}

/** Entries that could not be stored are written again with the next ones, except messages that were refused. */
export const lostEntries = ({ event }: Args): NewEntry[] =>
  event.type === 'append.failed' ? event.lost.filter(({ type }) => type !== 'message-queued') : [];

const REASON: Record<Exclude<Termination, 'Suspended'>, StopReason> = {
  NaturalEnd: 'completed',
  PluginRequested: 'completed',
  Stopped: 'error',
  Cancelled: 'interrupted',
  Error: 'error',
};

/** The boundary that closes the cycle (docs/internals/model.md, Boundary Rule). */
export const stopReason = (end: End): StopReason | null =>
  end.termination === 'Suspended' ? null : end.cause === 'timeout' ? 'error' : REASON[end.termination];

export function closingEntries({ context }: { context: RunContext }): NewEntry[] {
  const { runId, end, suspended, trigger } = context;
  const reason = stopReason(end);
  const boundary: NewEntry = { runId, type: 'checkpoint', boundary: 'RunFinished' };
  const over = expiredEntries(runId, expiredDecisions(context));
  if (trigger.kind === 'retry') return over;
  if (reason === null) {
    return [...over, { runId, type: 'run-suspended', waiting: suspended.map(({ call }) => call.callId) }, boundary];
  }
  const { cause } = end;
  return [...over, { runId, type: 'run-stop', reason, ...(cause !== undefined && { cause }) }, boundary];
}
