/**
 * The inputs with which a RUN may start. Invariant: each input switches a few policies, phases or open calls, and its limits bound the
 * events that can come, so that its graph stays small.
 */

import { type HeldDecision, noOpenCalls, type OpenCalls, type RoundCall } from '../calls.ts';
import { freshCounters, type SubAgentChange } from '../counters.ts';
import { type ChartPolicies, defaultPolicies, type Limits } from '../policies.ts';
import type { Phases } from '../ports.ts';
import type { RunInput, Settings } from '../run/runContext.ts';
import type { QueuedMessage } from '../vocabulary.ts';
import { noPhases } from './toolRound.cases.ts';

export const callOf = (callId: string): RoundCall => ({
  callId,
  name: 'write',
  gated: true,
  readOnly: false,
  fingerprint: callId,
});
export const steer = (messageId: string): QueuedMessage => ({ messageId, kind: 'steer', content: [] });

const allPhases = Object.fromEntries(Object.keys(noPhases).map((phase) => [phase, true])) as Record<keyof Phases, true>;
const once = { ...defaultPolicies.modelRetry, attempts: 1 };
/** No event comes from outside unless an input allows it. */
const bare: Limits = { ...defaultPolicies.limits, turns: 2, queue: 0, decisions: 0, toolCallsPerTurn: 1 };

interface Change extends Partial<Omit<ChartPolicies, 'limits'>> {
  limits?: Partial<Limits>;
  phases?: Phases;
  models?: string[];
  context?: NonNullable<Settings['context']>;
}
function run(change: Change, start: Partial<RunInput> = {}): RunInput {
  const { limits, phases = noPhases, models = ['m'], context, ...policies } = change;
  return {
    ...noOpenCalls,
    runId: 'r',
    settings: {
      conversationId: 'c',
      policies: { ...defaultPolicies, modelRetry: once, ...policies, limits: { ...bare, ...limits } },
      phases,
      models,
      ...(context && { context }),
    },
    trigger: { kind: 'message', message: { messageId: 'u', kind: 'direct', content: [] } },
    counters: freshCounters,
    steers: [],
    ...start,
  };
}

const resumed = { trigger: { kind: 'resume', of: 'q' } } as const;
const waiting = (...ids: string[]) => ids.map((id) => ({ call: callOf(id), suspension: 1 }));
const approved = (callId: string): HeldDecision => ({
  callId,
  suspension: 1,
  decision: { callId, action: 'approve' },
});
const open = (calls: Partial<OpenCalls>): OpenCalls => ({ ...noOpenCalls, ...calls });

const window = { warn: 0.8, prune: 0.8, exhaust: 0.95 };
const alone: Partial<Limits> = { toolCallsPerTurn: 0 };
const pair: Partial<Limits> = { toolCallsPerTurn: 2, turns: 1 };

export const runInputs: readonly RunInput[] = [
  // A request alone: retries, a fallback, every kind of reply.
  run({ modelRetry: { ...once, attempts: 2 }, models: ['m', 'n'], partialReply: 'keep' }),
  // A plugin takes part in every phase, and the run has a deadline.
  run({ phases: allPhases, modelRetry: { ...once, attempts: 2 }, limits: { runMs: 1000 } }),
  run({ phases: { ...noPhases, runEnd: true }, limits: alone }),
  run({ phases: { ...noPhases, stepStart: true }, limits: { ...alone, turns: 1 } }),
  run({ phases: { ...noPhases, stepEnd: true }, limits: alone }),
  // A plugin continues where the run would end, and a steer arrives meanwhile.
  run({ phases: { ...noPhases, naturalEnd: true }, limits: { ...alone, queue: 1, turns: 3 } }),
  // Decisions, taken at once or at the gate.
  run({ limits: { ...pair, decisions: 2 } }),
  run({ decisionsDuringRound: 'atGate', onPartialSuspend: 'wait', limits: { ...pair, decisions: 1 } }),
  run({ onPartialSuspend: 'wait', limits: { ...pair, decisions: 1 } }),
  run({ toolExecution: 'sequential', limits: { ...pair, decisions: 1 } }),
  run({ toolExecution: 'sequential', limits: { toolCallsPerTurn: 3, turns: 1 } }),
  run({ toolExecution: 'sequential', limits: { toolCallsPerTurn: 3, decisions: 1, turns: 1 } }),
  // A tool's failure ends the run: in the round, at the gate beside it, at the first gate, while the model answers.
  run({ onToolFailure: 'failRun', limits: { ...pair, decisions: 1 } }),
  run({ onToolFailure: 'failRun', limits: { ...alone, decisions: 1, turns: 1 } }, open({ suspended: waiting('s') })),
  run(
    { onToolFailure: 'failRun', limits: { ...alone, turns: 1 } },
    {
      ...open({ suspended: waiting('s', 't'), decisions: [approved('s')], kept: [{ call: callOf('k'), behind: 's' }] }),
      ...resumed,
    },
  ),
  // Steers that arrive in a round and are delivered after the running calls.
  run({ steerAt: 'afterTool', limits: { ...pair, queue: 1 } }),
  run({ steerAt: 'afterTool', toolExecution: 'sequential', limits: { ...pair, queue: 1 } }),
  // Steers.
  run({ limits: { queue: 1, turns: 1 } }),
  run({ limits: { ...alone, queue: 1 } }),
  run({ limits: { ...alone, queue: 2, turns: 3 } }, { steers: [steer('m1'), steer('m2')] }),
  run({ queueDrain: 'all', limits: { ...alone, queue: 2 } }, { steers: [steer('m1'), steer('m2')] }),
  // Replies without content, and limits.
  run({ onEmptyReply: 'accept', limits: alone }),
  run({ onEmptyReply: 'retry', limits: { ...alone, emptyReplies: 1 } }),
  run({ limits: { turns: 0 } }),
  // The size of the context window is known, and its policies apply; then a request in which a steer arrives.
  run({ context: window, limits: { ...alone, turns: 1 } }),
  run({ context: window, phases: { ...noPhases, beforeInference: true }, limits: { turns: 1, queue: 1 } }),
  // Earlier messages become a summary, before a call and after a cut reply, within a budget.
  run({ context: { ...window, compact: 0.8 }, limits: { ...alone, turns: 3 } }),
  run({ context: { compact: 0.8 }, limits: { ...alone, turns: 1, tokens: 2 } }),
  // A plugin ends a run while a call of an earlier one is replayed.
  run(
    { phases: { ...noPhases, afterInference: true }, limits: { ...alone, decisions: 1, turns: 1 } },
    open({ suspended: waiting('s') }),
  ),
  // A new request while calls of an earlier one still wait.
  run({ limits: { ...alone, decisions: 2, turns: 1 } }, open({ suspended: waiting('s') })),
  run({ decisionsDuringRound: 'atGate', limits: { decisions: 1, turns: 1 } }, open({ suspended: waiting('s') })),
  // Resumed: nothing decided, something decided, kept calls, calls to run again, nothing open.
  run({}, { ...open({ suspended: waiting('s') }), ...resumed }),
  run({ limits: { queue: 1 } }, { ...open({ suspended: waiting('s') }), ...resumed, steers: [steer('m1')] }),
  run(
    { limits: { ...alone, decisions: 2 } },
    { ...open({ suspended: waiting('s', 't'), decisions: [approved('s')] }), ...resumed },
  ),
  run(
    { limits: alone },
    {
      ...open({ suspended: waiting('s'), decisions: [approved('s')], kept: [{ call: callOf('k'), behind: 's' }] }),
      ...resumed,
    },
  ),
  run({ limits: alone }, { ...open({ reruns: [{ call: callOf('x'), suspension: 0 }] }), ...resumed }),
  run({ limits: alone }, { trigger: { kind: 'resume', of: 'q', continuation: 'Go on.' } }),
  // A call of an ended cycle runs again, alone.
  run(
    { limits: alone },
    { ...open({ reruns: [{ call: callOf('x'), suspension: 0 }] }), trigger: { kind: 'retry', of: 'q' } },
  ),
  // The window is full after a cut reply, and a gate that was open at the same time has closed.
  run({ context: { compact: 0.8 }, limits: { ...alone, decisions: 1, turns: 1 } }, open({ suspended: waiting('s') })),
  // A decision arrives while plugins handle the suspension of the run.
  run({ phases: { ...noPhases, runEnd: true }, limits: alone }, { ...open({ suspended: waiting('s') }), ...resumed }),
];

/** A sub-agent ends, and its usage counts. */
export const subAgentEnds: SubAgentChange = {
  type: 'sub-agent.changed',
  callId: 'a',
  conversationId: 'child',
  phase: 'ended',
  spent: {
    usage: { inputTokens: 2, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
    costUsd: 0.5,
    upTo: 9,
  },
};
