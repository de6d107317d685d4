/** Cases of TOOL_ROUND: one call and several, in a window, one by one, and sequential. */

import type { ToolCallOutput } from '../calls.ts';
import type { Phases } from '../ports.ts';
import type { ToolRoundContext, ToolRoundInput } from '../tools/toolRound.machine.ts';
import type { Cases } from './cases.ts';

export const noPhases: Phases = {
  runStart: false,
  stepStart: false,
  beforeInference: false,
  afterInference: false,
  beforeToolExecute: false,
  afterToolExecute: false,
  stepEnd: false,
  naturalEnd: false,
  preCompact: false,
  runEnd: false,
};
const callOf = (callId: string) => ({ callId, name: 'read', gated: false, readOnly: true, fingerprint: callId });
const round = (calls: string, window: number, sequential = false): ToolRoundInput => ({
  conversationId: 'c',
  runId: 'r',
  id: 'r/t1/call',
  calls: [...calls].map(callOf),
  window,
  sequential,
  suspensionsMax: 2,
  retry: false,
  phases: noPhases,
});

const inputs: readonly ToolRoundInput[] = [
  round('a', 8),
  round('abc', 8),
  round('abc', 2),
  round('abc', 1),
  round('abc', 8, true),
];

const outputsOf = (callId: string): ToolCallOutput[] => {
  const base = { callId, name: 'read', fingerprint: callId, suspension: 0 };
  return [
    { ...base, outcome: 'succeeded' },
    { ...base, outcome: 'failed', code: 'error' },
    { ...base, outcome: 'suspended', suspension: 1, reason: 'permission' },
  ];
};
const done = [...'abc'].flatMap((callId, index) => {
  const actorId = `call-${index}`;
  return outputsOf(callId).map((output) => ({ type: `xstate.done.actor.${actorId}`, actorId, output }));
});

export const toolRoundCases = {
  inputs,
  cases: {
    'xstate.done.actor.*': done,
    'round.stopped': [{ type: 'round.stopped' }],
    'call.concluded': [
      {
        type: 'call.concluded',
        output: outputsOf('a')[0],
      },
    ],
    'round.steered': ['m1', 'm2'].map((messageId) => ({ type: 'round.steered', messageId })),
  },
  projection: ({ slots, next, live, steered }: ToolRoundContext) => ({
    slots: slots.map(({ status, output }) => [status, status === 'running' ? undefined : output?.outcome]),
    next,
    live,
    steered,
  }),
} satisfies Cases;
