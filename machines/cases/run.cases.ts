/** Cases of RUN: one event for each outcome of its guards. Its inputs and its surroundings have files of their own. */

import type { HeldDecision, RoundCall, Slot, ToolCallOutput } from '../calls.ts';
import type { EffectValue } from '../ports.ts';
import type { RunContext } from '../run/runContext.ts';
import type { ToolRoundOutput } from '../tools/toolRound.machine.ts';
import type { NewEntry } from '../vocabulary.ts';
import { type Cases, surroundings } from './cases.ts';
import { failedAttempt, noUsage, textReply } from './modelCall.cases.ts';
import { callOf, runInputs, steer, subAgentEnds } from './run.inputs.ts';
import { runSurroundings } from './run.surroundings.ts';

const reply = (calls: string): EffectValue => {
  const made: RoundCall[] = [...calls].map(callOf);
  const items = made.map(({ callId, name }) => ({ type: 'tool-call' as const, callId, name, args: {} }));
  return { ...textReply, items: [...textReply.items, ...items], calls: made, finish: 'tool-calls' };
};
const values: readonly EffectValue[] = [
  { kind: 'committed' },
  { kind: 'context', used: 10, limit: 100, warned: false },
  { kind: 'context', used: 90, limit: 100, warned: false },
  { kind: 'context', used: 96, limit: 100, warned: true },
  { kind: 'context', used: 96, limit: 100, warned: true, prunable: { callIds: ['o'], used: 50 } },
  { kind: 'context', used: 97, limit: 100, warned: true, compactable: { upToSeq: 7 } },
  { kind: 'done' },
  { kind: 'done', writes: { mode: 'plan' } },
  { kind: 'terminate', by: 'budget', reason: 'enough' },
  { kind: 'continue', text: 'Run the tests.', why: 'stop_hook' },
  { kind: 'answer', value: { sum: 3 } },
  textReply,
  { ...textReply, items: [], empty: true },
  { ...textReply, finish: 'pause' },
  { ...textReply, finish: 'length' },
  reply('a'),
  reply('ab'),
  reply('abc'),
  reply('c'),
  failedAttempt,
  { ...failedAttempt, code: 'auth', retryable: false },
];

const outputOf = (callId: string, outcome: ToolCallOutput['outcome'], suspension: number): ToolCallOutput => ({
  callId,
  name: 'write',
  outcome,
  fingerprint: `${callId}:${outcome}`,
  suspension,
});
const failedOf = (callId: string, suspension = 0): ToolCallOutput => ({
  ...outputOf(callId, 'failed', suspension),
  code: 'error',
  failure: { code: 'error', message: `${callId} broke` },
});
/** A letter for each call's outcome: done, failed, suspended, running, waiting while plugins handle it, queued. */
const STATUS: Record<string, Slot['status']> = {
  ...{ d: 'done', f: 'done', s: 'suspended', r: 'running', h: 'running', q: 'queued' },
};
const slotsOf = (calls: string, how: string, writes: readonly number[] = []): Slot[] =>
  [...calls].map((callId, index) => {
    const status = STATUS[how[index] ?? ''] ?? 'queued';
    const call = callOf(callId);
    if (how[index] === 'r' || status === 'queued') return { call, status };
    const suspended = how[index] === 's' || how[index] === 'h';
    const output = outputOf(callId, suspended ? 'suspended' : 'succeeded', suspended ? 1 : 0);
    if (how[index] === 'f') return { call, status, output: failedOf(callId) };
    const write = writes[index];
    return { call, status, output: write === undefined ? output : { ...output, writes: { mode: write } } };
  });
const round = (kind: ToolRoundOutput['kind'], slots: Slot[], steered?: string) => ({
  type: 'xstate.done.actor.round',
  actorId: 'round',
  output: { kind, slots, ...(steered !== undefined && { steered }) },
});
const rounds = [
  ...['d', 's'].flatMap((how) => [round('collected', slotsOf('a', how)), round('collected', slotsOf('c', how))]),
  ...['dd', 'ds', 'sd', 'ss', 'sq'].map((how) => round('collected', slotsOf('ab', how))),
  round('collected', slotsOf('ab', 'dd', [1, 1])),
  round('collected', slotsOf('ab', 'dd', [1, 2])),
  ...['r', 's'].flatMap((how) => [round('stopped', slotsOf('a', how)), round('stopped', slotsOf('c', how))]),
  ...['rr', 'dr', 'sr', 'rs', 'ss', 'sq', 'rq', 'hr', 'dh'].map((how) => round('stopped', slotsOf('ab', how))),
  ...['ddd', 'dds', 'dsq', 'sqq'].map((how) => round('collected', slotsOf('abc', how))),
  ...['ddr', 'dsq', 'rqq'].map((how) => round('stopped', slotsOf('abc', how))),
  round('collected', slotsOf('a', 'f')),
  ...['fd', 'df', 'fs', 'ff', 'sf'].map((how) => round('collected', slotsOf('ab', how))),
  round('collected', slotsOf('ab', 'fd', [0, 1])),
  ...['d', 's'].map((how) => round('collected', slotsOf('a', how), 'm1')),
  ...['dd', 'ds', 'dq', 'sq'].map((how) => round('collected', slotsOf('ab', how), 'm1')),
];

const spent = { usage: { ...noUsage, inputTokens: 3 }, costUsd: 0.25 };
const compactions = [
  { kind: 'compacted', spent },
  { kind: 'blocked', spent: undefined },
].map((output) => ({ type: 'xstate.done.actor.compaction', actorId: 'compaction', output }));

const held = (callId: string, suspension: number): HeldDecision => ({
  callId,
  suspension,
  decision: { callId, action: 'approve' },
});
const error = { code: 'disk', message: 'no space left' };
/** An abandoned append; an act of the host during the run's end; a decision too late for the run; the end itself. */
const lost: readonly NewEntry[][] = [
  [],
  [{ runId: 'r', type: 'message-queued', messageId: 'f1', kind: 'followUp', content: [] }],
  [{ runId: 'r', type: 'decision', ...held('s', 1) }],
  [
    { runId: 'r', type: 'run-stop', reason: 'completed' },
    { runId: 'r', type: 'checkpoint', boundary: 'RunFinished' },
  ],
];
const settled = ['a', 'b', 'c', 'k', 's', 't', 'x'].flatMap((callId) => [
  outputOf(callId, 'succeeded', 0),
  outputOf(callId, 'suspended', 1),
  outputOf(callId, 'suspended', 2),
  failedOf(callId, 1),
]);
const waits = ['t1', 't2'].flatMap((turn) => [2, 3, 4].map((attempt) => `r/${turn}/wait/${attempt}`));

/**
 * The parts of the context that guards and the surroundings read. Values of an earlier turn are not read again and are left
 * out, as is everything that the run does not report in its last states.
 */
function projection(context: RunContext): unknown {
  const { end, steers, suspended, kept, reruns, decisions, replaying, calls, turn, counters, failure } = context;
  const waiting = suspended.map(({ call, suspension }) => `${call.callId}#${suspension}`);
  const held = decisions.map(({ callId, suspension }) => `${callId}#${suspension}`);
  const shared = { end: [end.termination, end.cause], calls: calls.map(({ callId }) => callId) };
  const messages = steers.map(({ messageId }) => messageId);
  if (end.termination !== 'NaturalEnd') {
    return { ...shared, messages, undecided: waiting.filter((id) => !held.includes(id)) };
  }
  const { attempts, slots, reply: last, gate, replayed, settled: done, terminate } = context;
  const modelCall = turn > counters.turns ? attempts : null;
  const round = modelCall ? [] : slots.map(({ call, status }) => [call.callId, status]);
  const decided = modelCall || calls.length + round.length > 0 ? null : last;
  return {
    ...shared,
    waiting,
    held,
    messages,
    kept: kept.map(({ call, behind }) => [call.callId, behind]),
    reruns: reruns.map(({ call }) => call.callId),
    replaying,
    counters: [counters.turns, counters.emptyReplies],
    modelCall,
    round,
    decided,
    terminate: !modelCall && terminate !== undefined,
    failure,
    gate: [gate, replayed > 0, done > 0],
  };
}

export const runCases = {
  inputs: runInputs,
  cases: {
    [surroundings]: runSurroundings,
    'effect.done': values.map((value) => ({ type: 'effect.done', id: '', value })),
    'timer.elapsed': ['r/deadline', ...waits].map((id) => ({ type: 'timer.elapsed', id })),
    'effect.failed': [{ type: 'effect.failed', id: 'r/', cause: 'executor', error }],
    'append.failed': lost.map((entries) => ({ type: 'append.failed', error, lost: entries })),
    'run.cancelled': [{ type: 'run.cancelled' }, { type: 'run.cancelled', partial: 'so f' }],
    'decision.arrived': [held('a', 1), held('a', 2), held('b', 1), held('s', 1), held('s', 2), held('t', 1)].map(
      (decision) => ({
        type: 'decision.arrived',
        held: decision,
      }),
    ),
    'message.steered': ['m1', 'm2'].map((id) => ({ type: 'message.steered', message: steer(id) })),
    'message.returned': ['m1', 'm2'].map((messageId) => ({ type: 'message.returned', messageId })),
    'call.suspended': ['a', 'b', 'c'].map((id) => ({ type: 'call.suspended', output: outputOf(id, 'suspended', 1) })),
    'call.concluded': [...'abckst'].map((callId) => ({
      type: 'call.concluded',
      output: {
        ...outputOf(callId, 'succeeded', 0),
        result: { runId: 'r', type: 'tool-result', callId, outcome: 'succeeded', content: [] },
      },
    })),
    'call.settled': settled.map((output) => ({ type: 'call.settled', output })),
    'sub-agent.changed': [subAgentEnds],
    'xstate.done.actor.compaction': compactions,
    'xstate.done.actor.round': rounds,
    'xstate.done.actor.gate': [{ type: 'xstate.done.actor.gate', actorId: 'gate', output: { outputs: [] } }],
  },
  projection,
} satisfies Cases;
