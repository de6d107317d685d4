/**
 * The entries, requests and context changes of the run, one small pure function a step. Rule: each takes context and
 * event and returns data; nothing here decides where the run goes next.
 */
import { countReply } from './counters.ts';
import { firstAttempt } from './modelCall.machine.ts';
import type { EffectRequest, Phase } from './ports.ts';
import type { RunContext, RunEvent, RunInput } from './runContext.ts';
import { limitOf } from './runGuards.ts';
import type { Message } from './verbs.ts';
import type { Json, NewEntry, QueuedMessage } from './vocabulary.ts';

type Args = { context: RunContext; event: RunEvent };
type SteersDelivered = Message<'parent', { type: 'steers.delivered'; messages: readonly QueuedMessage[] }>;

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
  concluded: [],
  replayed: 0,
  settled: 0,
  untold: 0,
  failure: undefined,
  end: { termination: 'NaturalEnd', cause: 'end_turn' },
  durable: true,
});

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

/** One effect runs the phases of a state that somebody takes part in, in order; none asks nothing. */
export function askPhases(context: RunContext, at: string, wanted: Phase[]): EffectRequest | undefined {
  const { runId, turn, settings } = context;
  const phases = wanted.filter((phase) => settings.phases[phase]);
  return phases.length === 0 ? undefined : { kind: 'phase', id: `${runId}/t${turn}/${at}`, runId, turn, phases };
}

export const askStartPhase = ({ context }: Args): EffectRequest | undefined =>
  askPhases(context, 'start', ['runStart']);
export const askPreparePhases = ({ context }: Args): EffectRequest | undefined =>
  askPhases(context, 'prepare', ['stepStart', 'beforeInference']);
export const askAfterPhases = ({ context }: Args): EffectRequest | undefined =>
  askPhases(context, 'after', ['afterInference', 'stepEnd']);

/** The prefix of everything that a run asks for. */
export const effectsOfRun = ({ context }: { context: RunContext }): string => `${context.runId}/`;

export function askDeadline({ context }: Args): EffectRequest | undefined {
  const ms = context.settings.policies.limits.runMs;
  return ms === false || context.trigger.kind === 'retry'
    ? undefined
    : { kind: 'timer', id: deadlineId(context), ms, ofCycle: true };
}
export const deadlineId = ({ runId }: { runId: string }): string => `${runId}/deadline`;

export function checkpoint(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  return ({ context }: { context: RunContext }): NewEntry[] =>
    boundary === 'UserMessage' && context.trigger.kind !== 'message'
      ? []
      : [{ runId: context.runId, type: 'checkpoint', boundary }];
}
export function askCommit(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  return ({ context }: { context: RunContext }): EffectRequest => ({
    kind: 'commit',
    id: `${context.runId}/t${context.turn}/${boundary}`,
    boundary,
  });
}

const writesEntry = (runId: string, writes: { [key: string]: Json }): NewEntry[] => [
  { runId, type: 'state-changed', writes },
];
export const phaseWrites = ({ context, event }: Args): NewEntry[] =>
  event.type === 'effect.done' && event.value.kind === 'done' && event.value.writes
    ? writesEntry(context.runId, event.value.writes)
    : [];

/** The steers taken at this opportunity. */
const dueSteers = ({ steers, settings }: RunContext): readonly QueuedMessage[] =>
  settings.policies.queueDrain === 'all' ? steers : steers.slice(0, 1);
export const steerEntries = ({ context }: Args): NewEntry[] =>
  dueSteers(context).map(({ messageId, content }) => {
    return { runId: context.runId, type: 'user-message', messageId, kind: 'steer', content };
  });
export function steersDelivered({ context }: Args): SteersDelivered | undefined {
  const messages = dueSteers(context);
  return messages.length === 0 ? undefined : { to: 'parent', event: { type: 'steers.delivered', messages } };
}
export function steersTaken({ context }: Args): Partial<RunContext> {
  const due = dueSteers(context);
  return due.length === 0 ? {} : { steers: context.steers.slice(due.length) };
}

export const keptDropped = (): Partial<RunContext> => ({ kept: [] });
export const terminationAsked = ({ event }: Args): Partial<RunContext> =>
  event.type === 'effect.done' && event.value.kind === 'terminate' ? { terminate: event.value } : {};

export const turnStarts = ({ context }: Args): Partial<RunContext> => ({
  turn: context.counters.turns + 1,
  attempts: firstAttempt,
  replayed: 0,
  settled: 0,
  untold: 0,
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
  const counters = countReply(context.counters, event.value);
  return { calls, slots: [], reply: { finish, empty }, terminate: undefined, counters, untold: context.settled };
}

/** Why the model is called again though the reply has no calls, as the model must be told; at a limit it is not. */
export function continuationEntries({ context }: Args): NewEntry[] {
  const { runId, reply, settings, settled, untold, steers } = context;
  if (limitOf(context) !== undefined) return [];
  if (reply.finish === 'pause') return [{ runId, type: 'continuation', text: 'Go on.', why: 'pause' }];
  if (!reply.empty && settled > 0 && settled === untold && steers.length === 0) {
    const words = 'Results of earlier calls came in while you answered; they stand in their place. Go on with them.';
    return [{ runId, type: 'continuation', text: words, why: 'results' }];
  }
  if (!reply.empty || settings.policies.onEmptyReply !== 'notice') return [];
  const text = 'Your last reply was empty. Answer the user, or call a tool.';
  return [
    { runId, type: 'notice', code: 'empty_reply', text: 'The model sent an empty reply; it is asked again.' },
    { runId, type: 'continuation', text, why: 'empty_reply' },
  ];
}
