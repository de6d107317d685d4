/**
 * How a run ends: what it writes for the calls it leaves behind, what is said of its end, and what outlives it. Rule:
 * every way out writes exactly one stop or suspension, and each of its calls has one result or still waits.
 */
import { closeCalls, closed, heardOf, leftWaiting, nothingLeft } from './closing.ts';
import { type Counters, countOutputs } from './counters.ts';
import { expired } from './decisions.ts';
import { failureOf } from './modelCall.machine.ts';
import type { EffectRequest } from './ports.ts';
import { outputsIn, roundOf } from './roundSteps.ts';
import type { End, Lost, RunChartOutput, RunContext, RunEvent } from './runContext.ts';
import { limitOf } from './runGuards.ts';
import { askPhases } from './runSteps.ts';
import type { Failure, NewEntry, StopReason, Termination } from './vocabulary.ts';
import { conflicts, writesOf } from './writes.ts';

type Args = { context: RunContext; event: RunEvent };

export const cancelEntries = ({ context, event }: Args): NewEntry[] => {
  const { runId, settings } = context;
  const text = event.type === 'run.cancelled' ? event.partial : undefined;
  const kept: NewEntry[] =
    text?.trim() && settings.policies.partialReply === 'keep'
      ? [{ runId, type: 'agent-output', item: { type: 'assistant', text, flag: 'interrupted' } }]
      : [];
  return [...kept, ...closeCalls(withRound(context, event), 'cancelled'), ...writesLeft(context, event)];
};
/**
 * What a failed append may not take with it: what was said, and where the run began. A message that had to wait is not
 * among it: it was refused, and whoever sent it is told.
 */
const SAID: ReadonlySet<NewEntry['type']> = new Set<NewEntry['type']>([
  'run-started',
  'run-resumed',
  'user-message',
  'continuation',
]);
export const errorEntries = ({ context, event }: Args): NewEntry[] => {
  const lost = event.type === 'append.failed' ? event.lost : (context.end.lost ?? []);
  const said = lost.filter(({ runId, type }) => runId === context.runId && SAID.has(type));
  return [...said, ...closeCalls(withRound(context, event), 'kept', lost), ...writesLeft(context, event, lost)];
};
export const terminateEntries = ({ context }: Args): NewEntry[] => [
  ...closed(
    context.runId,
    context.calls.map((call) => call.callId),
    'terminated',
  ),
  ...closeCalls({ ...context, calls: [] }, 'kept'),
];
const withRound = (context: RunContext, event: RunEvent): RunContext =>
  event.type === 'xstate.done.actor.round' ? { ...context, slots: event.output.slots } : context;

/** What stays open behind an end that is no cancel. */
export const leftOpen = (args: Args): Partial<RunContext> => ({
  ...leftWaiting(withRound(args.context, args.event)),
  counters: countLeft(args),
});
export const closedAll = (args: Args): Partial<RunContext> => ({
  ...nothingLeft(withRound(args.context, args.event)),
  counters: countLeft(args),
});
/** With the results of calls whose round or gate did not come to its end. */
const countLeft = ({ context, event }: Args): Counters =>
  countOutputs(context.counters, [...outputsIn(roundOf(event)), ...heardOf(context)]);

/** What calls with a result wrote to the state, where neither their round nor their gate came to its end. */
function writesLeft({ runId, replaying, concluded }: RunContext, event: RunEvent, lost: Lost = []): NewEntry[] {
  const inRound = outputsIn(roundOf(event));
  const outputs = [...(conflicts(inRound) ? [] : inRound), ...(replaying.length > 0 ? concluded : [])];
  const unknown = lost.flatMap((entry) => (entry.type === 'tool-result' ? [entry.callId] : []));
  return writesOf(
    runId,
    outputs.filter((output) => !unknown.includes(output?.callId ?? '')),
  );
}

/** A failure that was tried again says how often. */
const afterAttempts = ({ attempts: { attempt } }: RunContext, { code, message }: Failure): Failure => ({
  code,
  message: attempt > 1 ? `${message} (after ${attempt} attempts)` : message,
});

/** How an event that ends the run early ends it. */
export function endOf({ context, event }: Args): End {
  switch (event.type) {
    case 'run.cancelled':
      return { termination: 'Cancelled', cause: 'cancelled' };
    case 'timer.elapsed':
      return { termination: 'Cancelled', cause: 'timeout' };
    case 'append.failed':
      return { termination: 'Error', cause: 'store', error: event.error, lost: event.lost };
    case 'effect.failed':
      return { termination: 'Error', cause: event.cause, error: event.error };
    case 'effect.done':
      return { termination: 'Error', cause: 'model', error: afterAttempts(context, failureOf(event)) };
    case 'xstate.done.actor.round':
      return {
        termination: 'Error',
        cause: 'state',
        error: { code: 'state', message: 'two calls of a round wrote one key of the state differently' },
      };
    default:
      return context.end;
  }
}

/** The run ends as the event says. */
export const early = (args: Args): Partial<RunContext> => ({ end: endOf(args) });
export const exhaustedWindow = (): Partial<RunContext> => ({
  end: { termination: 'Stopped', cause: 'context_exhausted' },
});
export const cutByLength = (): Partial<RunContext> => ({ end: { termination: 'Stopped', cause: 'max_tokens' } });
export const suspendedRun = (): Partial<RunContext> => ({ end: { termination: 'Suspended' } });
/** A tool ends the run. No gate runs any more; what was left out of the last one did not begin. */
export const toolFailed = ({ context: { failure } }: Args): Partial<RunContext> => ({
  end: { termination: 'Error', cause: 'tool', ...(failure && { error: failure }) },
  gate: 'closed',
  replaying: [],
  concluded: [],
});

/** The end itself could not be stored, and neither was a suspension that stood in the same append. */
export function endLost(args: Args): Partial<RunContext> {
  const end = endOf(args);
  const { suspended, decisions } = leftWaiting({ ...args.context, end });
  return { end, durable: false, suspended, decisions };
}

/** How the Terminate state ends the run: by a plugin, or by a limit. */
export function terminationOf({ context, event }: Args): End {
  if (context.trigger.kind === 'retry') return context.end;
  const asked = event.type === 'effect.done' && event.value.kind === 'terminate' ? event.value : context.terminate;
  if (asked) return { termination: 'PluginRequested', cause: asked.by };
  return { termination: 'Stopped', cause: limitOf(context) ?? 'max_tokens' };
}

export const terminated = (args: Args): Partial<RunContext> => ({ end: terminationOf(args) });

/** Plugins hear of a model call that failed for good. */
export function askErrorPhases({ context }: { context: RunContext }): EffectRequest | undefined {
  const { end } = context;
  const request = end.cause === 'model' ? askPhases(context, 'error', ['afterInference', 'stepEnd']) : undefined;
  return request?.kind === 'phase' && end.error ? { ...request, failure: end.error } : request;
}

const RUN_END_MS = 5000;
const CANCELLED_RUN_END_MS = 30;
/** A run that fails and is cancelled before it is over ends as failed, and as fast as a cancelled one. */
export function askEndPhase({ context, event }: Args): EffectRequest | undefined {
  const { termination } = context.end;
  const isCancelled = termination === 'Cancelled' || event.type === 'run.cancelled';
  const request = askPhases(context, 'end', ['runEnd']);
  if (request?.kind !== 'phase') return undefined;
  return { ...request, termination, limitMs: isCancelled ? CANCELLED_RUN_END_MS : RUN_END_MS };
}

export const askFinish = ({ context }: { context: RunContext }): EffectRequest => ({
  kind: 'commit',
  id: `${context.runId}/RunFinished`,
  boundary: 'RunFinished',
});

/** What could not be stored is written again with what follows, but for messages that were refused. */
export const lostEntries = ({ event }: Args): NewEntry[] =>
  event.type === 'append.failed' ? event.lost.filter(({ type }) => type !== 'message-queued') : [];

const REASON: Record<Exclude<Termination, 'Suspended'>, StopReason> = {
  NaturalEnd: 'completed',
  PluginRequested: 'completed',
  Stopped: 'error',
  Cancelled: 'interrupted',
  Error: 'error',
};
/** The boundary that closes the cycle (request-cycle-model, Boundary Rule). */
export const stopReason = (end: End): StopReason | null =>
  end.termination === 'Suspended' ? null : end.cause === 'timeout' ? 'error' : REASON[end.termination];

/** Early decisions whose call never suspended; one that keeps its turn may still come to it. */
const expiredDecisions = ({ decisions, suspended, kept }: RunContext) =>
  decisions.filter(({ callId }) => ![...suspended, ...kept].some(({ call }) => call.callId === callId));

/** What outlives the run. */
export function outputOf(context: RunContext): RunChartOutput {
  const { end, durable, counters, suspended, kept, reruns } = context;
  const over = new Set(expiredDecisions(context));
  const decisions = context.decisions.filter((held) => !over.has(held));
  return { end, durable, counters, suspended, kept, reruns, decisions };
}

export function closingEntries({ context }: { context: RunContext }): NewEntry[] {
  const { runId, end, suspended, trigger } = context;
  const reason = stopReason(end);
  const boundary: NewEntry = { runId, type: 'checkpoint', boundary: 'RunFinished' };
  const over = expired(runId, expiredDecisions(context));
  if (trigger.kind === 'retry') return over;
  if (reason === null) {
    return [...over, { runId, type: 'run-suspended', waiting: suspended.map(({ call }) => call.callId) }, boundary];
  }
  const { cause } = end;
  return [...over, { runId, type: 'run-stop', reason, ...(cause !== undefined && { cause }) }, boundary];
}
