/**
 * The requests of a run, the inputs of its child charts, and its messages to them and to its conversation. Invariant: a
 * function that returns undefined or an empty list asks, spawns and tells nothing.
 */

import type { Replay } from '../calls.ts';
import type { CompactionInput } from '../compaction/compaction.machine.ts';
import type { EffectRequest, RunPhase } from '../ports.ts';
import { dueReplays } from '../tools/openCalls.ts';
import type { ResumeToolCallInput } from '../tools/resumeToolCall.machine.ts';
import type { ToolRoundInput } from '../tools/toolRound.machine.ts';
import type { Message, SpawnRequest } from '../verbs.ts';
import type { QueuedMessage } from '../vocabulary.ts';
import { deadlineId, dueSteers, measured, type RunArgs, type RunContext } from './runContext.ts';

type Args = RunArgs;
type WithContext = { context: RunContext };

/** The prefix of the ids of a run's requests. */
export const effectsOfRun = ({ context }: { context: { runId: string } }): string => `${context.runId}/`;

export function askDeadline({ context }: Args): EffectRequest | undefined {
  const ms = context.settings.policies.limits.runMs;
  return ms === false || context.trigger.kind === 'retry'
    ? undefined
    : { kind: 'timer', id: deadlineId(context), ms, ofCycle: true };
}

/** One effect runs the phases of a state in order. Without a plugin in them there is no effect. */
function askPhases(context: RunContext, at: string, wanted: RunPhase[]): EffectRequest | undefined {
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

/** Plugins receive a reply that ends the run. After them a final answer is checked against its schema. */
export const askNaturalEnd = ({ context: { runId, turn } }: Args): EffectRequest => ({
  kind: 'phase',
  id: `${runId}/t${turn}/natural-end`,
  runId,
  turn,
  phases: ['naturalEnd'],
});

/** Plugins receive a model call that failed for good. */
export function askErrorPhases({ context }: { context: RunContext }): EffectRequest | undefined {
  const { end } = context;
  const request = end.cause === 'model' ? askPhases(context, 'error', ['afterInference', 'stepEnd']) : undefined;
  return request?.kind === 'phase' && end.error ? { ...request, failure: end.error } : request;
}

const RUN_END_MS = 5000;
const CANCELLED_RUN_END_MS = 30;

/** A run that fails and is cancelled before its end still ends as failed, and as fast as a cancelled one. */
export function askEndPhase({ context, event }: Args): EffectRequest | undefined {
  const { termination } = context.end;
  const isCancelled = termination === 'Cancelled' || event.type === 'run.cancelled';
  const request = askPhases(context, 'end', ['runEnd']);
  if (request?.kind !== 'phase') return undefined;
  return { ...request, termination, limitMs: isCancelled ? CANCELLED_RUN_END_MS : RUN_END_MS };
}

/** Requested only where the window of the model is known and some policy needs it. */
const askUse =
  (at: string) =>
  ({ context: { runId, turn, settings } }: Args): EffectRequest | undefined => {
    if (!settings.context) return undefined;
    const { prune, compact } = settings.context;
    return {
      kind: 'context',
      id: `${runId}/t${turn}/${at}`,
      ...(prune !== undefined && { pruneAbove: prune }),
      ...(compact !== undefined && { compactAbove: compact }),
    };
  };
export const askContext = askUse('context');
/** After a compaction and after a cut reply, the size is requested again. */
export const askContextAgain = askUse('context-again');
export const askContextOfCut = askUse('context-of-cut');

export function compactionInput({ context, event }: Args): CompactionInput {
  const { runId, turn, models, retry, settings } = context;
  const range = measured(event)?.compactable ?? { upToSeq: -1 };
  return { runId, turn: turn + 1, models, retry, ...range, heard: settings.phases.preCompact };
}

export function askCommit(boundary: 'UserMessage' | 'AssistantTurnCommitted' | 'ToolResultsCommitted') {
  return ({ context }: { context: RunContext }): EffectRequest => ({
    kind: 'commit',
    id: `${context.runId}/t${context.turn}/${boundary}`,
    boundary,
  });
}

export const askFinish = ({ context }: { context: RunContext }): EffectRequest => ({
  kind: 'commit',
  id: `${context.runId}/RunFinished`,
  boundary: 'RunFinished',
});

export function roundInput({ context }: { context: RunContext }): ToolRoundInput {
  const { runId, turn, calls, settings } = context;
  const { conversationId, policies, phases } = settings;
  const { toolExecution, toolRetry: retry } = policies;
  const together =
    toolExecution === 'parallel' || (toolExecution === 'parallelIfReadOnly' && calls.every((call) => call.readOnly));
  const [sequential, window] = together ? [false, policies.maxParallelTools] : [true, 1];
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  const id = `${runId}/t${turn}/call`;
  return { conversationId, runId, id, calls, window, sequential, suspensionsMax, retry, phases };
}

export type GateSpawn = SpawnRequest<'resumeToolCall', ResumeToolCallInput>;

/** The calls that a gate would process if it opened now. */
export const dueReplaysOf = (context: RunContext): Replay[] =>
  context.gate === 'open' || context.failure ? [] : dueReplays(context);

export const isImmediate = (context: RunContext): boolean =>
  context.settings.policies.decisionsDuringRound === 'immediate';

export function spawnGate({ context }: WithContext): GateSpawn[] {
  const replays = dueReplaysOf(context);
  if (replays.length === 0) return [];
  const { runId, gates, settings } = context;
  const { conversationId, policies, phases } = settings;
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  const { toolRetry: retry } = policies;
  const input = { conversationId, runId, id: `${runId}/gate${gates}`, replays, suspensionsMax, retry, phases };
  return [{ src: 'resumeToolCall', id: 'gate', input }];
}

/** While a model or a round is active, a gate opens only if decisions apply immediately. */
export const spawnGateInWindow = (args: WithContext): GateSpawn[] => (isImmediate(args.context) ? spawnGate(args) : []);

type SteersDelivered = Message<'parent', { type: 'steers.delivered'; messages: readonly QueuedMessage[] }>;

export function tellSteersDelivered({ context }: Args): SteersDelivered | undefined {
  const messages = dueSteers(context);
  return messages.length === 0 ? undefined : { to: 'parent', event: { type: 'steers.delivered', messages } };
}

type RoundSteered = Message<'round', { type: 'round.steered'; messageId: string }>;

/** A message is delivered before the calls that the round has not started. */
export const tellRoundSteered = ({ event }: Args): RoundSteered | undefined =>
  event.type === 'message.steered'
    ? { to: 'round', event: { type: 'round.steered', messageId: event.message.messageId } }
    : undefined;
