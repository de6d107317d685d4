/**
 * What comes to a run while it works: decisions, steers, and what its calls report. Rule: each takes context and event
 * and returns what changes; nothing that comes is lost because of where the run stands.
 */

import type { HeldDecision } from './calls.ts';
import { counted, countOutputs } from './counters.ts';
import { afterReplay } from './gateWork.ts';
import { failureOf } from './roundSteps.ts';
import type { RunContext, RunEvent } from './runContext.ts';
import type { Message } from './verbs.ts';

type Args = { context: RunContext; event: RunEvent };
type Change = Partial<RunContext>;

export const hold = ({ context, event }: Args): Change =>
  event.type === 'decision.arrived' ? { decisions: [...context.decisions, event.held] } : {};

/** A decision that could not be stored was not taken. */
export const unhold = ({ context, event }: Args): Change => {
  if (event.type !== 'append.failed') return {};
  const isLost = ({ callId, suspension }: HeldDecision): boolean =>
    event.lost.some((entry) => entry.type === 'decision' && entry.callId === callId && entry.suspension === suspension);
  return { decisions: context.decisions.filter((held) => !isLost(held)) };
};

export const queueSteer = ({ context, event }: Args): Change =>
  event.type === 'message.steered' ? { steers: [...context.steers, event.message] } : {};

export const takeBack = ({ context, event }: Args): Change =>
  event.type === 'message.returned'
    ? { steers: context.steers.filter(({ messageId }) => messageId !== event.messageId) }
    : {};

export function suspendCall({ context, event }: Args): Change {
  if (event.type !== 'call.suspended') return {};
  const { callId, suspension } = event.output;
  const call = context.calls.find((candidate) => candidate.callId === callId);
  return call ? { suspended: [...context.suspended, { call: { ...call, gated: true }, suspension }] } : {};
}

/** A replayed call has come to something, and a plugin hears of it: should the run be cut meanwhile, it is known. */
export const noteResult = ({ context, event }: Args): Change =>
  event.type === 'call.concluded' ? { concluded: [...context.concluded, event.output] } : {};

export function settleCall({ context, event }: Args): Change {
  if (event.type !== 'call.settled') return {};
  const { output } = event;
  const settled = context.settled + (output.outcome === 'suspended' ? 0 : 1);
  const replaying = context.replaying.filter((callId) => callId !== output.callId);
  const replayed = context.replayed + 1;
  const concluded = [...context.concluded.filter(({ callId }) => callId !== output.callId), output];
  const failure = failureOf(context, [output]);
  const counters = countOutputs(context.counters, [output]);
  return { ...afterReplay(context, [output]), replayed, settled, replaying, concluded, failure, counters };
}

export const countSpent = ({ context, event }: Args): Change =>
  event.type === 'sub-agent.changed' ? { counters: counted(context.counters, event.spent) } : {};

type RoundSteered = Message<'round', { type: 'round.steered'; messageId: string }>;
/** A message goes before the calls that the round has not started. */
export const roundSteered = ({ event }: Args): RoundSteered | undefined =>
  event.type === 'message.steered'
    ? { to: 'round', event: { type: 'round.steered', messageId: event.message.messageId } }
    : undefined;
