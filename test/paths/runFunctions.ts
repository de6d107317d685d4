/**
 * The results of a run's functions for many drawn moments: entries, requests, context and output. Invariant: moments
 * are drawn from one seed, likely and unlikely ones. Every exported function is called, none by its name.
 */

import type {
  HeldDecision,
  KeptCall,
  Rerun,
  RoundCall,
  Slot,
  SuspendedCall,
  ToolCallOutput,
} from '../../machines/calls.ts';
import * as counters from '../../machines/counters.ts';
import type { EffectValue, NewEntry, Usage } from '../../machines/index.ts';
import * as modelCall from '../../machines/modelCall.machine.ts';
import { backoffMs, defaultPolicies } from '../../machines/policies.ts';
import * as assigns from '../../machines/run/assigns.ts';
import { runGuards } from '../../machines/run/guards.ts';
import * as requests from '../../machines/run/requests.ts';
import { runChart } from '../../machines/run/run.machine.ts';
import {
  contextOf,
  isAnswered,
  outputOf,
  type RunArgs,
  type RunContext,
  type RunEvent,
  type RunInput,
} from '../../machines/run/runContext.ts';
import * as entries from '../../machines/run/runEntries.ts';
import { afterReplay, dueReplays } from '../../machines/tools/openCalls.ts';
import * as toolRetry from '../../machines/tools/toolCall.machine.ts';
import { type Chance, chance } from '../support/seededChance.ts';
import { answered, answersOf, type Clause, drawn, type Fold, functionsOf, json, unnamed } from './drawnResults.ts';
import { hold } from './invariants.ts';
import { asStored, lostEntries } from './lostEntries.ts';

export const text = (words: string) => [{ type: 'text' as const, text: words }];
const PHASES = [
  ...['runStart', 'stepStart', 'beforeInference', 'afterInference', 'stepEnd'],
  ...['beforeToolExecute', 'afterToolExecute', 'naturalEnd', 'runEnd'],
];

export function callOf(draw: Chance, callId: string): RoundCall {
  const refused = draw.odds(0.2) && { refused: { code: 'unknown_tool', text: `no tool for ${callId}` } };
  return {
    callId,
    name: 'write',
    gated: draw.odds(0.6),
    readOnly: draw.odds(0.5),
    fingerprint: `p${draw.below(2)}`,
    ...refused,
  };
}
export function outputOfCall(
  draw: Chance,
  callId: string,
  outcome = draw.one(['succeeded', 'failed', 'suspended', 'cancelled']),
) {
  const suspended = outcome === 'suspended';
  const output = {
    callId,
    name: 'write',
    outcome,
    fingerprint: `${callId}:${draw.below(2)}`,
    suspension: suspended ? 1 + draw.below(2) : draw.below(3),
    ...(outcome === 'failed' && draw.odds(0.6) && { failure: { code: 'error', message: `${callId} broke` } }),
    ...(!suspended && draw.odds(0.4) && { writes: { mode: draw.below(2), [callId]: 1 } }),
    ...(!suspended &&
      draw.odds(0.4) && { result: { runId: 'r', type: 'tool-result', callId, outcome, content: text('own words') } }),
  };
  return output as ToolCallOutput;
}
/** Returns an outcome that plugins still handle: the next suspension of the call, or its result. */
function unhandledOutput(draw: Chance, callId: string, suspension: number): ToolCallOutput {
  const output = outputOfCall(draw, callId);
  const { outcome } = output;
  if (outcome === 'suspended') return { ...output, suspension: suspension + 1 };
  if (output.result) return output;
  return { ...output, result: { runId: 'r', type: 'tool-result', callId, outcome, content: text('own words') } };
}
export const some = <T>(draw: Chance, share: number, all: readonly T[]): T[] => all.filter(() => draw.odds(share));

export function decisionsOf(draw: Chance, ids: readonly string[]): HeldDecision[] {
  return some(draw, 0.5, ids).map((callId) => ({
    callId,
    suspension: 1 + draw.below(2),
    decision: draw.odds(0.5) ? { callId, action: 'approve' } : { callId, action: 'deny', reason: callId },
  }));
}

export function slotOf(draw: Chance, call: RoundCall): Slot {
  // A refused call never starts.
  if (call.refused) return { call, status: 'queued' };
  const status = draw.one(['queued', 'running', 'done', 'suspended', 'running', 'done'] as const);
  if (status === 'queued') return { call, status };
  if (status === 'running' && draw.odds(0.5)) return { call, status };
  // Plugins still handle a running call, so the ending run writes its result.
  if (status === 'running') return { call, status, output: unhandledOutput(draw, call.callId, 0) };
  const outcome = status === 'suspended' ? 'suspended' : draw.one(['succeeded', 'failed']);
  const { result: _, ...output } = outputOfCall(draw, call.callId, outcome);
  return { call, status, output };
}

function countersOf(draw: Chance) {
  const fingerprint = () => `${draw.one(['a', 'b'])}:${draw.below(2)}`;
  return {
    turns: draw.below(4),
    emptyReplies: draw.below(4),
    streaks: some(draw, 0.5, ['a:0', 'b:1']).map((each) => ({ fingerprint: each, count: 1 + draw.below(4) })),
    rounds: Array.from({ length: draw.odds(0.1) ? 66 : draw.below(4) }, () => ({
      open: some(draw, 0.4, ['a', 'b', 's']),
      fingerprints: [fingerprint(), fingerprint()].slice(draw.below(2)),
    })),
    tokens: draw.below(100),
    costUsd: draw.one([0, 0.5, 1]),
    unpriced: draw.odds(0.25) ? 1 + draw.below(2) : 0,
  };
}

export function inputOf(draw: Chance): RunInput {
  const suspended = some(draw, 0.5, ['t', 's', 'u']).map(
    (id): SuspendedCall => ({ call: callOf(draw, id), suspension: 1 + draw.below(2) }),
  );
  const behind = suspended[0]?.call.callId ?? draw.one(['', 'gone']);
  const kept = some(draw, 0.4, ['k', 'l']).map(
    (id, index): KeptCall => ({ call: callOf(draw, id), behind: index > 0 ? 'k' : behind }),
  );
  const reruns = some(draw, 0.3, ['x', 'q']).map(
    (id): Rerun => ({
      call: callOf(draw, id),
      suspension: draw.below(2),
      ...(draw.odds(0.5) && { idempotencyKey: `o/${id}` }),
      ...(draw.odds(0.4) && { decision: { callId: id, action: 'approve' } }),
    }),
  );
  const limit = <T>(value: T) => draw.one<T | false>([false, value]);
  return {
    runId: 'r',
    settings: {
      conversationId: 'c',
      policies: {
        ...defaultPolicies,
        toolExecution: draw.one(['parallel', 'sequential', 'parallelIfReadOnly']),
        queueDrain: draw.one(['one', 'all']),
        steerAt: draw.one(['afterRound', 'afterTool']),
        onPartialSuspend: draw.one(['continue', 'wait']),
        decisionsDuringRound: draw.one(['immediate', 'atGate']),
        onToolFailure: draw.one(['tellModel', 'failRun']),
        partialReply: draw.one(['discard', 'keep']),
        whileSuspended: draw.one(['followUp', 'denyAndRun']),
        promoteFollowUpOn: some(draw, 0.6, ['completed', 'interrupted', 'error']),
        onEmptyReply: draw.one(['notice', 'retry', 'accept']),
        modelRetry: { ...defaultPolicies.modelRetry, attempts: 1 + draw.below(3), respectRetryAfter: draw.odds(0.7) },
        limits: {
          ...defaultPolicies.limits,
          turns: draw.one([3, 100]),
          costUsd: limit(0.5),
          tokens: limit(50),
          emptyReplies: 3,
          identicalCalls: 3,
          runMs: limit(1000),
        },
      },
      phases: Object.fromEntries(PHASES.map((phase) => [phase, draw.odds(0.5)])) as never,
      models: draw.one([['m'], ['m', 'n']]),
      ...(draw.odds(0.7) && {
        context: draw.one<object>([
          { warn: 0.8, prune: 0.8, exhaust: 0.95 },
          { warn: 0.8 },
          { exhaust: 0.95, compact: 0.9 },
          { prune: 0.5 },
        ]),
      }),
    },
    trigger: draw.one<RunInput['trigger']>([
      { kind: 'message', message: { messageId: 'u', kind: 'direct', content: text('hi') } },
      { kind: 'resume', of: 'q' },
      { kind: 'resume', of: 'q', continuation: 'Go on.' },
      { kind: 'retry', of: 'q' },
    ]),
    counters: countersOf(draw),
    steers: some(draw, 0.4, ['m1', 'm2']).map((messageId) => ({ messageId, kind: 'steer', content: text(messageId) })),
    suspended,
    kept,
    reruns,
    decisions: decisionsOf(draw, ['s', 't', 'u', 'k', 'early']),
  };
}

const terminationOf = (draw: Chance) => ({
  by: 'budget',
  reason: 'enough',
  ...(draw.odds(0.4) && { stopped: true as const }),
});

/** Returns a moment before, during or after a round. After it suspended calls wait and queued calls are kept. */
export function momentOf(draw: Chance): RunContext {
  const input = inputOf(draw);
  const start = contextOf(input);
  const made = ['a', 'b', 'c'].slice(0, draw.below(4)).map((id) => callOf(draw, id));
  const over = draw.odds(0.4);
  const ended = over ? made.map((call) => slotOf(draw, call)).filter(({ status }) => status !== 'running') : [];
  const slots = ended.map((slot): Slot => (isAnswered(slot, undefined) ? { ...slot, status: 'skipped' } : slot));
  const here = slots.filter(({ status }) => status === 'suspended');
  const suspended = [
    ...start.suspended,
    ...here.map(({ call, output }) => ({ call, suspension: output?.suspension ?? 1 })),
  ];
  const queued = slots.filter(({ status }) => status === 'queued');
  const kept = [...start.kept, ...queued.map(({ call }) => ({ call, behind: here[0]?.call.callId ?? '' }))];
  const work = dueReplays({ ...start, suspended, kept });
  const open = work.length > 0 && draw.odds(0.5);
  const replaying = open ? work.slice(draw.below(work.length + 1)) : [];
  const first = replaying[0];
  const heard =
    first !== undefined && draw.odds(0.6) ? [unhandledOutput(draw, first.call.callId, first.suspension)] : [];
  return {
    ...start,
    suspended,
    kept,
    turn: draw.below(4),
    attempts: { attempt: 1 + draw.below(3), model: draw.below(2), ofModel: 1 + draw.below(2) },
    calls: over ? [] : made,
    slots,
    reply: { finish: draw.one(['stop', 'tool-calls', 'length', 'pause']), empty: draw.odds(0.3) },
    terminate: draw.odds(0.2) ? terminationOf(draw) : undefined,
    gates: draw.below(3),
    gate: open ? 'open' : 'closed',
    replaying: replaying.map(({ call }) => call.callId),
    concluded: [...(open && draw.odds(0.4) ? [outputOfCall(draw, 'z')] : []), ...heard],
    replayed: draw.below(2),
    settled: draw.below(2),
    settledDuringReply: draw.below(2),
    failure: draw.odds(0.15) ? { code: 'error', message: 'it broke' } : undefined,
    end: draw.one<() => RunContext['end']>([
      () => start.end,
      () => ({ termination: 'Cancelled', cause: draw.one(['cancelled', 'timeout']) }),
      () => ({ termination: 'Error', cause: 'model', error: { code: 'network', message: 'gone' } }),
      () => ({ termination: 'Error', cause: 'model' }),
      () => ({
        termination: 'Error',
        cause: 'store',
        error: { code: 'disk', message: 'full' },
        lost: lostEntries(draw),
      }),
      () => ({ termination: 'Suspended' }),
      () => ({ termination: 'Stopped', cause: 'max_turns' }),
    ])(),
    durable: draw.odds(0.9),
  };
}

const usageOf = (draw: Chance): Usage => ({
  inputTokens: draw.below(40),
  outputTokens: 3,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
});

function answerOf(draw: Chance): EffectValue {
  const usage = usageOf(draw);
  const calls = ['d', 'e'].slice(0, draw.below(3)).map((id) => callOf(draw, id));
  const used = draw.one([10, 79, 80, 81, 94, 95, 96]);
  return draw.one<() => EffectValue>([
    () => ({ kind: 'committed' }),
    () => ({ kind: 'done', ...(draw.odds(0.5) && { writes: { mode: 1 } }) }),
    () => ({ kind: 'terminate', ...terminationOf(draw) }),
    () => ({ kind: 'continue', text: 'Once more.', why: draw.one(['stop_hook', 'output']) }),
    () => ({ kind: 'answer', value: { sum: draw.below(3) } }),
    () => ({
      kind: 'context',
      used,
      limit: draw.one([100, 0]),
      warned: draw.odds(0.5),
      ...(draw.odds(0.5) && { prunable: { callIds: ['o'], used: used - draw.below(4) } }),
      ...(draw.odds(0.3) && { compactable: { upToSeq: draw.below(9) } }),
    }),
    () => ({
      kind: 'reply',
      items: ['so', 'and'].slice(draw.below(3)).map((words) => ({ type: 'assistant', text: words })),
      ...(draw.odds(0.4) && { extra: { id: 'x' } }),
      calls,
      finish: draw.one(['stop', 'tool-calls']),
      empty: draw.odds(0.4),
      model: 'm',
      usage,
      costUsd: draw.one([0, 0.25, null]),
    }),
    () => ({
      kind: 'failed',
      model: 'm',
      code: 'network',
      message: 'gone',
      retryable: draw.odds(0.7),
      random: draw.below(3) / 2,
      ...(draw.odds(0.5) && { retryAfterMs: draw.one([0, 10, 60_000, 60_001]) }),
    }),
  ])() as EffectValue;
}

function eventOf(draw: Chance, { calls, replaying, runId, turn, attempts }: RunContext): RunEvent {
  const error = { code: 'disk', message: 'no space left' };
  const callId = replaying[0] ?? draw.one(['a', 's']);
  const wait = `${runId}/t${turn}/wait/${attempts.attempt}`;
  const done = (): object => ({ type: 'effect.done', id: 'r/', value: answerOf(draw) });
  return draw.one<() => object>([
    done,
    done,
    done,
    () => ({ type: 'timer.elapsed', id: draw.one(['r/deadline', wait, `${wait}0`]) }),
    () => ({ type: 'effect.failed', id: 'r/', cause: 'executor', error }),
    () => ({ type: 'append.failed', error, lost: lostEntries(draw) }),
    () => ({ type: 'append.failed', error, lost: lostEntries(draw) }),
    () => ({ type: 'run.cancelled', ...(draw.odds(0.6) && { partial: draw.one(['so f', ' ', '']) }) }),
    () => ({ type: 'decision.arrived', held: decisionsOf(draw, ['s', 's', 's'])[0] ?? { callId: 's', suspension: 1 } }),
    () => ({ type: 'message.steered', message: { messageId: 'm3', kind: 'steer', content: [] } }),
    () => ({ type: 'message.returned', messageId: draw.one(['m1', 'm2', 'm9']), why: 'host' }),
    () => ({ type: 'call.suspended', output: outputOfCall(draw, draw.one(['a', 'b', 'z']), 'suspended') }),
    () => ({ type: 'call.settled', output: outputOfCall(draw, callId) }),
    () => ({ type: 'call.concluded', output: outputOfCall(draw, callId) }),
    () => ({
      type: 'xstate.done.actor.compaction',
      actorId: 'compaction',
      output: {
        kind: 'compacted',
        spent: draw.one([undefined, { usage: usageOf(draw), costUsd: draw.one([0.5, null]) }]),
      },
    }),
    () => ({
      type: 'sub-agent.changed',
      callId: 'a',
      conversationId: 'k',
      ...(draw.odds(0.5) && { spent: spentOf(draw) }),
    }),
    () => ({
      type: 'xstate.done.actor.round',
      actorId: 'round',
      output: {
        kind: draw.one(['stopped', 'collected']),
        slots: calls.map((call) => slotOf(draw, call)),
        ...(draw.odds(0.3) && { steered: 'm1' }),
      },
    }),
    () => ({ type: 'xstate.done.actor.gate', actorId: 'gate', output: { outputs: [] } }),
  ])() as RunEvent;
}
export const spentOf = (draw: Chance) => ({
  upTo: 3,
  costUsd: draw.one([0.25, null]),
  usage: { inputTokens: 5, outputTokens: draw.below(5), cachedInputTokens: 1, cacheWriteTokens: 1, reasoningTokens: 1 },
});

const chartFunctions = functionsOf(runChart);
const FOLDS: Record<string, Fold<RunArgs>> = {
  acts: (moment) => chartFunctions.map((one) => json(answered(one, moment))),
  changes: (moment) => unnamed(answersOf(assigns, moment)),
  entries: (moment) => unnamed(answersOf(entries, moment)),
  guards: (moment) => answersOf(runGuards, moment),
  requests: (moment) => unnamed(answersOf(requests, moment)),
  model: (moment) => unnamed(answersOf(modelCall, moment)),
  output: ({ context }) => outputOf(context),
  gate: ({ context }, draw) => {
    const work = dueReplays(context);
    const outputs = some(draw, 0.6, work).map(({ call }) => outputOfCall(draw, call.callId));
    return [work, afterReplay(context, outputs)];
  },
  counts: ({ context: { counters: before, settings } }, draw) => {
    const results = some(draw, 0.6, ['a', 'b', 's']).map((callId) => outputOfCall(draw, callId));
    const { usage, costUsd } = spentOf(draw);
    const reply = { usage, costUsd, empty: draw.odds(0.5), calls: some(draw, 0.5, [{ callId: 'n' }]) };
    const after = counters.countReply(counters.countOutputs(before, results), reply);
    const limits = [before, after, counters.countResults(after, [{ callId: 'n', fingerprint: 'n:0' }])].map((each) =>
      counters.limitReached(each, settings.policies.limits),
    );
    return [after, limits, counters.newCycle(after), counters.countResults(before, [])];
  },
  tools: ({ event }, draw) => {
    const retry = draw.one<false | toolRetry.ToolAttempts['retry']>([
      false,
      { ...defaultPolicies.modelRetry, attempts: 2, jitter: 0.5 },
    ]);
    const erred = {
      kind: 'erred',
      content: [],
      code: 'error',
      ...(draw.odds(0.7) && { retry: { random: draw.below(3) / 2 } }),
    };
    const happens = draw.odds(0.8) ? { type: 'effect.done', id: 'r/', value: erred } : event;
    const context = { runId: 'r', id: 'r/t1/call/a', call: callOf(draw, 'a'), retry, attempt: 1 + draw.below(3) };
    return [
      ...unnamed(answersOf(toolRetry, { context, event: happens })),
      retry && backoffMs(retry, 1 + draw.below(9), draw.below(3) / 2),
    ];
  },
};

export const resultsIn = (all: readonly NewEntry[]): string[] =>
  all.flatMap((entry) => (entry.type === 'tool-result' ? [entry.callId] : []));
export const idsOf = (calls: readonly { call: { callId: string } }[]): string[] => calls.map(({ call }) => call.callId);

/** Returns for each kind of end the results that the run writes, and the calls that stay open. */
function endsOf({ context, event }: RunArgs) {
  const moment = { context: { ...context, ...assigns.endEarly({ context, event }) }, event };
  const openByEnd = { cancelled: assigns.closeOpenCalls(moment), failed: assigns.keepOpenCalls(moment) };
  return [
    { written: resultsIn(entries.cancelEntries(moment)), open: idsOf(openByEnd.cancelled.suspended ?? []) },
    { written: resultsIn(entries.errorEntries(moment)), open: idsOf(openByEnd.failed.suspended ?? []) },
  ];
}

/** The clauses for every moment. */
export const endClauses: readonly Clause<RunArgs>[] = [
  {
    says: 'run-lifecycle, CancellationToken Impact: if a run ends early, no call gets two results',
    holds: (moment) => {
      for (const { written } of endsOf(moment))
        hold(new Set(written).size === written.length, `two results: ${written}`);
    },
  },
  {
    says: 'semantics 6: a call that waits after the end has no result, and after a cancel no call waits',
    holds: (moment) => {
      const [cancelled, failed] = endsOf(moment);
      hold(cancelled?.open.length === 0, `${cancelled?.open} waits`);
      // A call with a result does not wait.
      const over = resultsIn(
        moment.event.type === 'append.failed' ? moment.event.lost : (moment.context.end.lost ?? []),
      );
      const both = failed?.open.filter((callId) => failed.written.includes(callId) && !over.includes(callId)) ?? [];
      hold(both.length === 0, `${both} waits and has a result`);
    },
  },
];
const clauses: readonly Clause<RunArgs>[] = [
  ...endClauses,
  {
    says: 'run-lifecycle, RESUME_TOOL_CALL: a gate handles each call once, with the decision for its suspension',
    holds: ({ context }) => {
      const work = dueReplays(context);
      const ids = idsOf(work);
      hold(new Set(ids).size === ids.length, `twice: ${ids}`);
      for (const { call, suspension, decision } of work) {
        const suspended = context.suspended.find((each) => each.call.callId === call.callId);
        hold(
          !suspended || (suspended.suspension === suspension && decision?.callId === call.callId),
          `${call.callId} is not decided`,
        );
      }
    },
  },
];

function momentAt(seed: number): RunArgs {
  const draw = chance(seed * 7919);
  const context = momentOf(draw);
  return asStored({ context, event: eventOf(draw, context) });
}
export const runs = drawn('RUNS', momentAt, FOLDS, clauses);
