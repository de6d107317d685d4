/**
 * The entries, requests and context changes of the run, one small pure function a step. Rule: each takes context and
 * event and returns data; nothing here decides where the run goes next.
 */
import { closeCalls, closed } from './closing.ts';
import { countReply, countRound, limitReached } from './limits.ts';
import { failureOf, firstAttempt } from './modelCall.machine.ts';
import type { EffectRequest, Phase } from './ports.ts';
import type { RunEvent } from './run.machine.ts';
import type { End, RunChartOutput, RunContext, RunInput } from './runContext.ts';
import type { Slot, ToolRoundInput } from './toolRound.machine.ts';
import type { Json, NewEntry, QueuedMessage, StopReason, Termination } from './vocabulary.ts';

type Args = { context: RunContext; event: RunEvent };

export const contextOf = (input: RunInput): RunContext => ({
  ...input,
  turn: input.counters.turns,
  attempts: firstAttempt,
  models: input.settings.models,
  retry: input.settings.policies.modelRetry,
  calls: [],
  slots: [],
  reply: { finish: 'stop', empty: false },
  terminate: undefined,
  gates: 0,
  gate: 'closed',
  replaying: [],
  replayed: 0,
  settled: 0,
  end: { termination: 'NaturalEnd', cause: 'end_turn' },
  durable: true,
});

export function openingEntries({ context: { runId, trigger } }: Args): NewEntry[] {
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

/** One effect runs the phases of a state that somebody takes part in, in order; none asks nothing. */
export function askPhases(context: RunContext, at: string, wanted: Phase[]): EffectRequest | undefined {
  const { runId, turn, settings } = context;
  const phases = wanted.filter((phase) => settings.phases[phase]);
  return phases.length === 0 ? undefined : { kind: 'phase', id: `${runId}/t${turn}/${at}`, runId, turn, phases };
}

export function askDeadline({ context }: Args): EffectRequest | undefined {
  const ms = context.settings.policies.limits.runMs;
  return ms === false ? undefined : { kind: 'timer', id: deadlineId(context), ms };
}
export const deadlineId = ({ runId }: { runId: string }): string => `${runId}/deadline`;

export function checkpoint(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  return ({ context }: { context: RunContext }): NewEntry[] =>
    boundary === 'UserMessage' && context.trigger.kind === 'resume'
      ? []
      : [{ runId: context.runId, type: 'checkpoint', boundary }];
}
export function askCommit(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  return ({ context }: { context: RunContext }): EffectRequest | undefined =>
    boundary === 'UserMessage' && context.trigger.kind === 'resume'
      ? undefined
      : { kind: 'commit', id: `${context.runId}/t${context.turn}/${boundary}`, boundary };
}

const writesEntry = (runId: string, writes: { [key: string]: Json }): NewEntry[] => [
  { runId, type: 'state-changed', writes },
];
export const phaseWrites = ({ context, event }: Args): NewEntry[] =>
  event.type === 'effect.done' && event.value.kind === 'done' && event.value.writes
    ? writesEntry(context.runId, event.value.writes)
    : [];

/** The steers taken at this opportunity. */
export const dueSteers = ({ steers, settings }: RunContext) =>
  settings.policies.queueDrain === 'all' ? steers : steers.slice(0, 1);
export const steerEntries = (runId: string, due: readonly QueuedMessage[]): NewEntry[] =>
  due.map(({ messageId, content }) => ({ runId, type: 'user-message', messageId, kind: 'steer', content }));

export const turnStarts = ({ context }: Args): Partial<RunContext> => ({
  turn: context.counters.turns + 1,
  attempts: firstAttempt,
  replayed: 0,
  settled: 0,
});

export function replyEntries({ context, event }: Args): NewEntry[] {
  if (event.type !== 'effect.done' || event.value.kind !== 'reply') return [];
  const { runId, turn } = context;
  const { items, model, finish, usage, costUsd } = event.value;
  const output = items.map((item): NewEntry => ({ runId, type: 'agent-output', item }));
  return [...output, { runId, type: 'model-reply', turn, model, finish, usage, costUsd }];
}
export function replyArrives({ context, event }: Args): Partial<RunContext> {
  if (event.type !== 'effect.done' || event.value.kind !== 'reply') return {};
  const { calls, finish, empty } = event.value;
  const counters = countReply(context.counters, event.value, context.turn);
  return { calls, slots: [], reply: { finish, empty }, terminate: undefined, counters };
}

/** Why the model is called again though the reply has no calls, as the model must be told. */
export function continuationEntries({ context }: Args): NewEntry[] {
  const { runId, reply, settings } = context;
  if (reply.finish === 'pause') return [{ runId, type: 'continuation', text: 'Go on.', why: 'pause' }];
  if (!reply.empty || settings.policies.onEmptyReply !== 'notice') return [];
  const text = 'Your last reply was empty. Answer the user, or call a tool.';
  return [
    { runId, type: 'notice', code: 'empty_reply', text: 'The model sent an empty reply; it is asked again.' },
    { runId, type: 'continuation', text, why: 'empty_reply' },
  ];
}

export function roundInput({ context }: { context: RunContext }): ToolRoundInput {
  const { runId, turn, calls, settings } = context;
  const { conversationId, policies, phases } = settings;
  const sequential = policies.toolExecution === 'sequential';
  const together = policies.toolExecution === 'parallel' || calls.every((call) => call.readOnly);
  const window = sequential || !together ? 1 : policies.maxParallelTools;
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  return { conversationId, runId, id: `${runId}/t${turn}/call`, calls, window, sequential, suspensionsMax, phases };
}

/** Two calls of a round may not write one key differently. */
export function conflicts(slots: readonly Slot[]): boolean {
  const written = new Map<string, string>();
  for (const { output } of slots) {
    for (const [key, value] of Object.entries(output?.writes ?? {})) {
      const form = JSON.stringify(value);
      if ((written.get(key) ?? form) !== form) return true;
      written.set(key, form);
    }
  }
  return false;
}

const slotsOf = (event: RunEvent): readonly Slot[] =>
  event.type === 'xstate.done.actor.round' ? event.output.slots : [];

export const roundWrites = ({ context, event }: Args): NewEntry[] =>
  slotsOf(event).flatMap(({ call, output }) =>
    output?.writes
      ? [{ runId: context.runId, type: 'state-changed' as const, callId: call.callId, writes: output.writes }]
      : [],
  );

/** Calls behind a suspended one keep their turn, each behind the one before. */
export function roundCollected({ context, event }: Args): Partial<RunContext> {
  const slots = slotsOf(event);
  const first = slots.findIndex((slot) => slot.status === 'queued');
  const left = first < 0 ? [] : slots.slice(first);
  const behind = left.map(({ call }, index) => ({ call, behind: slots[first + index - 1]?.call.callId ?? '' }));
  return { slots, calls: [], kept: [...context.kept, ...behind], counters: countRound(context.counters, slots) };
}

/** The run goes on without the calls that kept their turn. */
export const leaveKept = ({ context }: Args): NewEntry[] =>
  closed(
    context.runId,
    context.kept.map(({ call }) => call.callId),
    'not_started',
  );

export const cancelEntries = ({ context, event }: Args): NewEntry[] => {
  const { runId, settings } = context;
  const text = event.type === 'run.cancelled' ? event.partial : undefined;
  const kept: NewEntry[] =
    text && settings.policies.partialReply === 'keep'
      ? [{ runId, type: 'agent-output', item: { type: 'assistant', text, flag: 'interrupted' } }]
      : [];
  return [...kept, ...closeCalls(withRound(context, event), 'cancelled')];
};
/** What a failed append may not take with it: what was said, and where the run began. */
const SAID: ReadonlySet<NewEntry['type']> = new Set<NewEntry['type']>([
  'run-started',
  'run-resumed',
  'user-message',
  'message-queued',
  'continuation',
]);
export const errorEntries = ({ context, event }: Args): NewEntry[] => {
  const lost = event.type === 'append.failed' ? event.lost : (context.end.lost ?? []);
  return [...lost.filter(({ type }) => SAID.has(type)), ...closeCalls(withRound(context, event), 'kept', lost)];
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
      return { termination: 'Error', cause: 'model', error: failureOf(event) };
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

/** How the Terminate state ends the run: by a plugin, or by a limit. */
export function terminationOf({ context, event }: Args): End {
  const asked = event.type === 'effect.done' && event.value.kind === 'terminate' ? event.value : context.terminate;
  if (asked) return { termination: 'PluginRequested', cause: asked.by };
  return { termination: 'Stopped', cause: limitReached(context) ?? 'max_tokens' };
}

/** Plugins hear of a model call that failed for good. */
export function askErrorPhases({ context }: { context: RunContext }): EffectRequest | undefined {
  const { end } = context;
  const request = end.cause === 'model' ? askPhases(context, 'error', ['afterInference', 'stepEnd']) : undefined;
  return request?.kind === 'phase' && end.error ? { ...request, failure: end.error } : request;
}

const RUN_END_MS = 5000;
const CANCELLED_RUN_END_MS = 30;
export function askEndPhase({ context }: { context: RunContext }): EffectRequest | undefined {
  const { termination } = context.end;
  const request = askPhases(context, 'end', ['runEnd']);
  if (request?.kind !== 'phase') return undefined;
  return { ...request, termination, limitMs: termination === 'Cancelled' ? CANCELLED_RUN_END_MS : RUN_END_MS };
}

export const askFinish = ({ context }: { context: RunContext }): EffectRequest => ({
  kind: 'commit',
  id: `${context.runId}/RunFinished`,
  boundary: 'RunFinished',
});

/** What could not be stored is written again with what follows. */
export const lostEntries = ({ event }: Args): NewEntry[] => (event.type === 'append.failed' ? [...event.lost] : []);

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

/** Early decisions whose call never suspended. */
const expiredDecisions = ({ decisions, suspended }: RunContext) =>
  decisions.filter(({ callId }) => !suspended.some(({ call }) => call.callId === callId));

/** What outlives the run. */
export function outputOf(context: RunContext): RunChartOutput {
  const { end, durable, counters, suspended, kept, reruns } = context;
  const expired = new Set(expiredDecisions(context));
  const decisions = context.decisions.filter((held) => !expired.has(held));
  return { end, durable, counters, suspended, kept, reruns, decisions };
}

export function closingEntries({ context }: { context: RunContext }): NewEntry[] {
  const { runId, end, suspended } = context;
  const reason = stopReason(end);
  const boundary: NewEntry = { runId, type: 'checkpoint', boundary: 'RunFinished' };
  const expired = expiredDecisions(context).map(({ callId }): NewEntry => {
    return { runId, type: 'diagnostic', code: 'decision_expired', detail: { callId } };
  });
  if (reason === null) {
    return [...expired, { runId, type: 'run-suspended', waiting: suspended.map(({ call }) => call.callId) }, boundary];
  }
  const { cause } = end;
  return [...expired, { runId, type: 'run-stop', reason, ...(cause !== undefined && { cause }) }, boundary];
}
