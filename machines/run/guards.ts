/** The guards of RUN, by the names in its drawing. Invariant: a guard reads only context and event. */

import { fallsBack, replies, retries, waitIsOver } from '../modelCall.machine.ts';
import type { AppendFailed } from '../ports.ts';
import { conflicts } from '../tools/toolRound.machine.ts';
import { shareOf } from '../transcript/contextEntries.ts';
import {
  deadlineId,
  failureInRound,
  limitOf,
  measured,
  outputsIn,
  type RunArgs,
  type RunContext,
  type RunEvent,
} from './runContext.ts';

type Args = RunArgs;

const idle = (context: RunContext): boolean => context.gate === 'closed';

const waits = (context: RunContext): boolean => context.settings.policies.onPartialSuspend === 'wait';

const isValue = (event: RunEvent, kind: string): boolean => event.type === 'effect.done' && event.value.kind === kind;

const stopped = (event: RunEvent): boolean =>
  event.type === 'xstate.done.actor.round' && event.output.kind === 'stopped';

/** The calls of the last round that are still suspended. */
const stillSuspended = ({ slots, suspended }: RunContext): boolean[] =>
  slots
    .filter((slot) => slot.status !== 'queued')
    .map((slot) => suspended.some(({ call }) => call.callId === slot.call.callId));

/** A failed append contained the end of the run. An abandoned append names no entries, so it counts as one. */
const losesStop = ({ lost }: AppendFailed): boolean =>
  lost.length === 0 || lost.some(({ type }) => type === 'run-stop' || type === 'run-suspended');

/** The next reply does not fit, even after pruning. */
function exhausted({ context: { settings }, event }: Args): boolean {
  const value = measured(event);
  const { exhaust } = settings.context ?? {};
  if (!value || exhaust === undefined) return false;
  return shareOf({ used: value.prunable?.used ?? value.used, limit: value.limit }) >= exhaust;
}

/** Earlier messages can become a summary, and the model is called after it. */
const compacts = ({ context, event }: Args): boolean =>
  measured(event)?.compactable !== undefined && limitOf(context) === undefined;

export const runGuards = {
  replies,
  retries,
  fallsBack,
  waitIsOver,
  /** The waits between attempts are timers too. */
  isDeadline: ({ context, event }: Args) => event.type === 'timer.elapsed' && event.id === deadlineId(context),
  nobodyAtStart: ({ context }: Args) => !context.settings.phases.runStart,
  replayed: ({ context }: Args) => idle(context) && context.replayed > 0,
  /** Nothing can continue without a decision, however the previous run ended. */
  onlyUndecided: ({ context }: Args) =>
    idle(context) && context.trigger.kind !== 'message' && context.suspended.length > 0 && context.steers.length === 0,
  gateIdle: ({ context }: Args) => idle(context),
  suspendedAnew: ({ context }: Args) => context.suspended.length > 0 && (context.settled === 0 || waits(context)),
  terminates: ({ event }: Args) => isValue(event, 'terminate'),
  nobodyPrepares: ({ context: { settings } }: Args) => !settings.phases.stepStart && !settings.phases.beforeInference,
  /** The size of the window is unknown, so there is nothing to wait for. */
  unmeasured: ({ context }: Args) => !context.settings.context,
  unmeasuredAtLimit: ({ context }: Args) => !context.settings.context && limitOf(context) !== undefined,
  exhausted,
  compacts,
  nobodyAfterInference: ({ context: { settings } }: Args) =>
    !settings.phases.afterInference && !settings.phases.stepEnd,
  atLimit: ({ context }: Args) => limitOf(context) !== undefined,
  wasTerminated: ({ context }: Args) => context.terminate !== undefined,
  hasToolCalls: ({ context }: Args) => context.calls.length > 0,
  gateOpen: ({ context }: Args) => !idle(context),
  goesOn: ({ context: { reply, settings, steers, settled } }: Args) =>
    reply.finish === 'pause' ||
    (reply.empty && settings.policies.onEmptyReply !== 'accept') ||
    // A reply that was cut by length is no natural end, so a steer waits for the next run.
    (steers.length > 0 && reply.finish !== 'length') ||
    settled > 0,
  /** The window may have cut the reply. */
  cutByFullWindow: ({ context: { reply, settings } }: Args) =>
    reply.finish === 'length' && settings.context?.compact !== undefined,
  cutByLength: ({ context }: Args) => context.reply.finish === 'length',
  hearsEnd: ({ context: { reply, settings } }: Args) =>
    reply.judged || (settings.phases.naturalEnd && reply.finish === 'stop'),
  continued: ({ event }: Args) => isValue(event, 'continue'),
  hasSuspended: ({ context }: Args) => context.suspended.length > 0,
  roundCancelled: ({ context, event }: Args) => stopped(event) && context.end.termination === 'Cancelled',
  roundBroken: ({ event }: Args) => stopped(event),
  stateConflict: ({ event }: Args) => event.type === 'xstate.done.actor.round' && conflicts(outputsIn(event.output)),
  toolFailed: ({ context, event }: Args) =>
    event.type === 'xstate.done.actor.round' && failureInRound(context, event.output) !== undefined,
  /** No tool failed the run at the gate that is done. */
  noneFailed: ({ context }: Args) => context.failure === undefined,
  cutsRound: ({ context }: Args) => context.settings.policies.steerAt === 'afterTool',
  allSuspended: ({ context }: Args) => {
    const calls = stillSuspended(context);
    return idle(context) && (calls.every(Boolean) || (waits(context) && calls.some(Boolean)));
  },
  /** The append that failed contained the run's end, not something that a host did meanwhile. */
  lostItsEnd: ({ context, event }: Args) =>
    event.type === 'append.failed' && (losesStop(event) || context.trigger.kind === 'retry'),
  nobodyAtEnd: ({ context }: Args) => !context.settings.phases.runEnd,
  nobodyHearsError: ({ context: { end, settings } }: Args) =>
    end.cause !== 'model' || (!settings.phases.afterInference && !settings.phases.stepEnd),
};
