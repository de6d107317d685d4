/** What a run has heard and the store then refused. */
import { describe, expect, it } from 'vitest';
import { freshCounters, SUB_AGENT_USAGE } from '../../machines/counters.ts';
import { releaseLost } from '../../machines/run/assigns.ts';

type Given = Parameters<typeof releaseLost>[0];
const held = (callId: string, suspension: number) => ({
  callId,
  suspension,
  decision: { callId, action: 'approve' as const },
});
const decisions = [held('c1', 1), held('c1', 2), held('c2', 1)];
const counters = { ...freshCounters, tokens: 150, costUsd: 3 };
const release = (lost: readonly object[]) => {
  const event = { type: 'append.failed', lost, error: { code: 'store', message: 'full' } };
  return releaseLost({ context: { decisions, counters }, event } as unknown as Given);
};

describe('behind an append that failed', () => {
  it('a decision in it was not taken, and the others stay', () => {
    const lost = [{ runId: 'r', type: 'decision', callId: 'c1', suspension: 2, decision: decisions[1]?.decision }];
    expect(release(lost)).toEqual({ decisions: [decisions[0], decisions[2]], counters });
  });

  it('what a sub-agent used is not counted until it is told', () => {
    const usage = { inputTokens: 100, outputTokens: 20 };
    const value = { callId: 'c1', conversationId: 's', upTo: 4, usage, costUsd: 2 };
    const lost = [{ runId: 'r', type: 'extension', name: SUB_AGENT_USAGE, value }];
    expect(release(lost)).toEqual({ decisions, counters: { ...counters, tokens: 30, costUsd: 1 } });
  });
});
