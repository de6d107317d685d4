/**
 * The gate of a run: whether one opens now, what it is given, and what of it the run remembers. Rule: one gate at a time;
 * a run that a tool has failed decides no more.
 */

import type { Replay } from './calls.ts';
import { gateWork } from './gateWork.ts';
import type { ResumeToolCallInput } from './resumeToolCall.machine.ts';
import type { RunContext } from './runContext.ts';
import type { SpawnRequest } from './verbs.ts';

export type GateSpawn = SpawnRequest<'resumeToolCall', ResumeToolCallInput>;
type WithContext = { context: RunContext };

/** What a gate that opened now would do. */
const due = (context: RunContext): Replay[] => (context.gate === 'open' || context.failure ? [] : gateWork(context));

const isImmediate = (context: RunContext): boolean => context.settings.policies.decisionsDuringRound === 'immediate';

export function gateOfRun({ context }: WithContext): GateSpawn[] {
  const replays = due(context);
  if (replays.length === 0) return [];
  const { runId, gates, settings } = context;
  const { conversationId, policies, phases } = settings;
  const { suspensionsPerCall: suspensionsMax } = policies.limits;
  const { toolRetry: retry } = policies;
  const input = { conversationId, runId, id: `${runId}/gate${gates}`, replays, suspensionsMax, retry, phases };
  return [{ src: 'resumeToolCall', id: 'gate', input }];
}

export function gateOpened({ context }: WithContext): Partial<RunContext> {
  const replays = due(context);
  if (replays.length === 0) return {};
  return { gates: context.gates + 1, gate: 'open', replaying: replays.map(({ call }) => call.callId) };
}

/** While a model or a round is under way a gate opens only where decisions count at once. */
export const gateInWindow = (args: WithContext): GateSpawn[] => (isImmediate(args.context) ? gateOfRun(args) : []);
export const gateOpenedInWindow = (args: WithContext): Partial<RunContext> =>
  isImmediate(args.context) ? gateOpened(args) : {};

export const gateClosed = (): Partial<RunContext> => ({ gate: 'closed', replaying: [], concluded: [] });
