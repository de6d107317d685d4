/** Cases of RESUME_TOOL_CALL: nothing to do, one call, several, and calls that wait for the call before them. */

import type { Replay, ToolCallOutput } from '../calls.ts';
import type { EffectValue } from '../ports.ts';
import type { ResumeToolCallContext, ResumeToolCallInput } from '../tools/resumeToolCall.machine.ts';
import { type Cases, type Surroundings, surroundings } from './cases.ts';
import { noPhases } from './toolRound.cases.ts';

const callOf = (callId: string) => ({ callId, name: 'write', gated: true, readOnly: false, fingerprint: callId });
const approved = (callId: string): Replay => ({
  call: callOf(callId),
  suspension: 1,
  decision: { callId, action: 'approve' },
});
const denied = (callId: string, reason: string): Replay => ({
  call: callOf(callId),
  suspension: 1,
  decision: { callId, action: 'deny', reason },
});
const after = (callId: string, before: string): Replay => ({ call: callOf(callId), suspension: 0, behind: before });
const again = (callId: string): Replay => ({ call: callOf(callId), suspension: 0 });

const gate = (replays: readonly Replay[], afterToolExecute = false): ResumeToolCallInput => ({
  conversationId: 'c',
  runId: 'r',
  id: 'r/gate0',
  replays,
  suspensionsMax: 4,
  retry: false,
  phases: { ...noPhases, afterToolExecute },
});

const inputs: readonly ResumeToolCallInput[] = [
  gate([]),
  gate([approved('a')]),
  gate([denied('a', '')]),
  gate([denied('a', 'too risky'), approved('b')], true),
  gate([approved('a'), after('b', 'a'), after('c', 'b')]),
  gate([again('a'), approved('b'), denied('c', 'no')]),
];

const outputsOf = (callId: string): ToolCallOutput[] => {
  const base = { callId, name: 'write', fingerprint: callId, suspension: 1 };
  return [
    { ...base, outcome: 'succeeded', writes: { [callId]: true } },
    { ...base, outcome: 'failed', code: 'error' },
    { ...base, outcome: 'suspended', suspension: 2, reason: 'form' },
  ];
};
const values: readonly EffectValue[] = [
  { kind: 'shown', content: [{ type: 'text', text: 'as a plugin shows it' }] },
  { kind: 'committed' },
];

/** Only the child that replays the first of the remaining calls can end. */
const replaysInOrder: Surroundings = {
  start: () => null,
  can: (_, event, state) => {
    const { rest } = state.context as ResumeToolCallContext;
    return !('output' in event) || (event.output as ToolCallOutput).callId === rest[0]?.call.callId;
  },
  after: (world) => world,
};

export const resumeToolCallCases = {
  inputs,
  cases: {
    [surroundings]: replaysInOrder,
    'effect.done': values.map((value) => ({ type: 'effect.done', id: '', value })),
    'call.concluded': [...'abc'].map((callId) => ({
      type: 'call.concluded',
      output: outputsOf(callId)[0],
    })),
    'xstate.done.actor.replay': [...'abc'].flatMap((callId) =>
      outputsOf(callId).map((output) => ({ type: 'xstate.done.actor.replay', actorId: 'replay', output })),
    ),
  },
  projection: ({ rest, outputs }: ResumeToolCallContext) => ({
    rest: rest.map(({ call }) => call.callId),
    outputs: outputs.map(({ callId, outcome }) => [callId, outcome]),
  }),
} satisfies Cases;
