/** The context of a run after the store refused an append. */
import { describe, expect, it } from 'vitest';
import { freshCounters, SUB_AGENT_USAGE } from '../../machines/counters.ts';
import { loseEnd, releaseLost } from '../../machines/run/assigns.ts';

type ArgsOfReleaseLost = Parameters<typeof releaseLost>[0];
const held = (callId: string, suspension: number) => ({
  callId,
  suspension,
  decision: { callId, action: 'approve' as const },
});
const decisions = [held('c1', 1), held('c1', 2), held('c2', 1)];
const counters = { ...freshCounters, tokens: 150, costUsd: 3 };
const usage = { inputTokens: 100, outputTokens: 20 };
const value = { callId: 'c1', conversationId: 's', upTo: 4, usage, costUsd: 2 };
const usageOfSubAgent = { runId: 'r', type: 'extension', name: SUB_AGENT_USAGE, value };
const release = (lost: readonly object[]) => {
  const event = { type: 'append.failed', lost, error: { code: 'store', message: 'full' } };
  return releaseLost({ context: { decisions, counters }, event } as unknown as ArgsOfReleaseLost);
};

describe('after a failed append', () => {
  it('a lost decision is removed, and the others stay', () => {
    const lost = [{ runId: 'r', type: 'decision', callId: 'c1', suspension: 2, decision: decisions[1]?.decision }];
    expect(release(lost)).toEqual({ decisions: [decisions[0], decisions[2]], counters });
  });

  it('lost usage of a sub-agent is not counted', () => {
    expect(release([usageOfSubAgent])).toEqual({ decisions, counters: { ...counters, tokens: 30, costUsd: 1 } });
  });

  it('usage of a sub-agent that was lost with the end of the run is not counted', () => {
    const event = {
      type: 'append.failed',
      lost: [usageOfSubAgent, { runId: 'r', type: 'run-stop', reason: 'completed' }],
      error: { code: 'store', message: 'full' },
    };
    const open = { suspended: [], kept: [], reruns: [], calls: [], slots: [], concluded: [], replaying: [] };
    const context = { ...open, decisions: [], counters, end: { termination: 'NaturalEnd' } };
    const after = loseEnd({ context, event } as unknown as Parameters<typeof loseEnd>[0]);
    expect(after).toMatchObject({ durable: false, counters: { ...counters, tokens: 30, costUsd: 1 } });
  });

  it.each([
    ['whose suspension was lost with the end does not wait', 'tool-suspended', []],
    ['whose suspension was stored waits', 'tool-result', ['c1']],
  ])('a call %s', (_, type, waiting) => {
    const event = {
      type: 'append.failed',
      lost: [
        { runId: 'r', type, callId: 'c1' },
        { runId: 'r', type: 'run-stop', reason: 'error' },
      ],
      error: { code: 'store', message: 'full' },
    };
    const suspended = [{ call: { callId: 'c1', name: 'ask', args: {} }, suspension: 1 }];
    const open = { suspended, kept: [], reruns: [], calls: [], slots: [], concluded: [], replaying: [] };
    const context = { ...open, decisions: [], counters, end: { termination: 'Stopped' } };
    const after = loseEnd({ context, event } as unknown as Parameters<typeof loseEnd>[0]);
    expect(after.suspended?.map(({ call }) => call.callId)).toEqual(waiting);
  });
});
