/**
 * The changes of a run's context: arriving messages and decisions, the progress of turn, round and gate, and the end of the run.
 * Invariant: each function takes context and event and returns the changed fields. Nothing that arrives is lost, whatever the
 * state of the run.
 */

import type { HeldDecision, Slot } from '../calls.ts';
import { type Counters, countOutputs, countReply, countResults, countUsage, uncounted } from '../counters.ts';
import { failureOf, firstAttempt } from '../modelCall.machine.ts';
import { afterReplay, followers } from '../tools/openCalls.ts';
import type { ToolRoundOutput } from '../tools/toolRound.machine.ts';
import type { Failure } from '../vocabulary.ts';
import { openCallsAfter, unhandledOutcomes } from './closeCalls.ts';
import { dueReplaysOf, isImmediate } from './requests.ts';
import {
  answersIn,
  dueSteers,
  type End,
  failureInRound,
  isAnswered,
  limitOf,
  outputsIn,
  type RunArgs,
  type RunContext,
  roundOf,
  toolFailureOf,
  withRound,
} from './runContext.ts';

type Args = RunArgs;
type Change = Partial<RunContext>;

export const holdDecision = ({ context, event }: Args): Change =>
  event.type === 'decision.arrived' ? { decisions: [...context.decisions, event.held] } : {};

/** A decision that was not stored was not taken. Usage of a sub-agent counts only after it was reported. */
export const releaseLost = ({ context, event }: Args): Change => {
  if (event.type !== 'append.failed') return {};
  const isLost = ({ callId, suspension }: HeldDecision): boolean =>
    event.lost.some((entry) => entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension);
  const decisions = context.decisions.filter((held) => !isLost(held));
  return { decisions, counters: uncounted(context.counters, event.lost) };
};

/** A run that only retries calls has no model call to deliver a steer with. The message stays in the queue of the conversation. */
export const queueSteer = ({ context, event }: Args): Change =>
  event.type === 'message.steered' && context.trigger.kind !== 'retry'
    ? { steers: [...context.steers, event.message] }
    : {};

export const withdrawSteer = ({ context, event }: Args): Change =>
  event.type === 'message.returned'
    ? { steers: context.steers.filter(({ messageId }) => messageId !== event.messageId) }
    : {};

export function suspendCall({ context, event }: Args): Change {
  if (event.type !== 'call.suspended') return {};
  const { callId, suspension } = event.output;
  const call = context.calls.find((candidate) => candidate.callId === callId);
  return call ? { suspended: [...context.suspended, { call: { ...call, gated: true }, suspension }] } : {};
}

/** A replayed call has an outcome while a plugin still handles it. The outcome counts if the run is interrupted now. */
export const noteConcluded = ({ context, event }: Args): Change =>
  event.type === 'call.concluded' ? { concluded: [...context.concluded, event.output] } : {};

export function settleCall({ context, event }: Args): Change {
  if (event.type !== 'call.settled') return {};
  const { output } = event;
  const settled = context.settled + (output.outcome === 'suspended' ? 0 : 1);
  // The gate skips the calls after a call that is suspended again.
  const skipped = output.outcome === 'suspended' ? followers(context.kept, output.callId) : [];
  const over = new Set([output.callId, ...skipped.map(({ call }) => call.callId)]);
  const replaying = context.replaying.filter((callId) => !over.has(callId));
  const replayed = context.replayed + 1;
  const concluded = [...context.concluded.filter(({ callId }) => callId !== output.callId), output];
  const failure = toolFailureOf(context, [output]);
  const counters = countOutputs(context.counters, [output]);
  return { ...afterReplay(context, [output]), replayed, settled, replaying, concluded, failure, counters };
}

export const countSubAgent = ({ context, event }: Args): Change =>
  event.type === 'sub-agent.changed' ? { counters: countUsage(context.counters, event.spent) } : {};

export function openGate({ context }: Args): Change {
  const replays = dueReplaysOf(context);
  if (replays.length === 0) return {};
  return { gates: context.gates + 1, gate: 'open', replaying: replays.map(({ call }) => call.callId) };
}

export const openGateInWindow = (args: Args): Change => (isImmediate(args.context) ? openGate(args) : {});

export const closeGate = (): Change => ({ gate: 'closed', replaying: [], concluded: [] });

export function takeSteers({ context }: Args): Change {
  const due = dueSteers(context);
  return due.length === 0 ? {} : { steers: context.steers.slice(due.length) };
}

export const startTurn = ({ context }: Args): Change => ({
  turn: context.counters.turns + 1,
  attempts: firstAttempt,
  replayed: 0,
  settled: 0,
  settledDuringReply: 0,
});

export function takeReply({ context, event }: Args): Change {
  if (event.type !== 'effect.done' || event.value.kind !== 'reply') return {};
  const { calls, finish, empty, judged } = event.value;
  const counters = countReply(context.counters, event.value);
  return {
    calls,
    slots: [],
    reply: { finish, empty, judged },
    terminate: undefined,
    counters,
    settledDuringReply: context.settled,
  };
}

export const countCompaction = ({ context, event }: Args): Change =>
  event.type === 'xstate.done.actor.compaction' ? { counters: countUsage(context.counters, event.output.spent) } : {};

export const noteTermination = ({ event }: Args): Change =>
  event.type === 'effect.done' && event.value.kind === 'terminate' ? { terminate: event.value } : {};

/** Counts the calls of a round that ran or were refused. */
const countRound = (counters: Counters, round: ToolRoundOutput): Counters =>
  countResults(
    countOutputs(counters, outputsIn(round)),
    answersIn(round).filter(({ outcome }) => outcome === 'failed'),
  );

/** Calls after a suspended one keep their turn, each after the one before. If a steer came, they get a result instead. */
export function collectRound({ context, event }: Args): Change {
  const round = roundOf(event);
  const counters = countRound(context.counters, round);
  const slots = round.slots.map(
    (slot): Slot => (isAnswered(slot, round.steered) ? { ...slot, status: 'skipped' } : slot),
  );
  const turns = slots.filter(({ status }) => status !== 'skipped');
  const kept = turns.flatMap(({ call, status }, index) =>
    status === 'queued' ? [{ call, behind: turns[index - 1]?.call.callId ?? '' }] : [],
  );
  return { calls: [], counters, failure: failureInRound(context, round), slots, kept: [...context.kept, ...kept] };
}

export const dropKept = (): Change => ({ kept: [] });

/** The calls and decisions that stay open after an end that is not a cancel. */
export const keepOpenCalls = (args: Args): Change => ({
  ...openCallsAfter(withRound(args.context, args.event), 'stopped', args.context.end.lost),
  counters: countersAtEnd(args),
});

export const closeOpenCalls = (args: Args): Change => ({
  ...openCallsAfter(withRound(args.context, args.event), 'cancelled'),
  counters: countersAtEnd(args),
});

/** Includes the results of calls whose round or gate was interrupted. */
const countersAtEnd = ({ context, event }: Args): Counters =>
  countOutputs(uncounted(context.counters, context.end.lost ?? []), [
    ...outputsIn(roundOf(event)),
    ...unhandledOutcomes(context),
  ]);

/** A failure after several attempts names their number. */
const afterAttempts = ({ attempts: { attempt } }: RunContext, { code, message }: Failure): Failure => ({
  code,
  message: attempt > 1 ? `${message} (after ${attempt} attempts)` : message,
});

/** Returns how an event ends the run early. */
function endOf({ context, event }: Args): End {
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

/** The event decides how the run ends. */
export const endEarly = (args: Args): Change => ({ end: endOf(args) });

export const stopExhausted = (): Change => ({
  end: { termination: 'Stopped', cause: 'context_exhausted' },
});

export const stopAtLength = (): Change => ({ end: { termination: 'Stopped', cause: 'max_tokens' } });

export const suspendRun = (): Change => ({ end: { termination: 'Suspended' } });

/** A tool ends the run. No further gate opens. Calls that the last gate skipped did not start. */
export const failByTool = ({ context: { failure } }: Args): Change => ({
  end: { termination: 'Error', cause: 'tool', ...(failure && { error: failure }) },
  gate: 'closed',
  replaying: [],
  concluded: [],
});

/**
 * The end could not be stored, nor a suspension in the same append. If the store does not answer, a run that was being
 * suspended counts as suspended: the command that abandoned the append ends the cycle.
 */
export function loseEnd({ context, event }: Args): Change {
  const failed = endOf({ context, event });
  const end = { ...failed, ...(!failed.lost?.length && context.end.termination === 'Suspended' && context.end) };
  const { suspended, decisions } = openCallsAfter(context, 'stopped', end.lost);
  return { end, durable: false, suspended, decisions, counters: uncounted(context.counters, end.lost ?? []) };
}

/** Returns how the state Terminate ends the run: by a plugin, or by a limit. */
function terminationOf({ context, event }: Args): End {
  if (context.trigger.kind === 'retry') return context.end;
  const asked = event.type === 'effect.done' && event.value.kind === 'terminate' ? event.value : context.terminate;
  if (asked) return { termination: asked.stopped ? 'Stopped' : 'PluginRequested', cause: asked.by };
  return { termination: 'Stopped', cause: limitOf(context) ?? 'max_tokens' };
}

export const terminateRun = (args: Args): Change => ({ end: terminationOf(args) });
