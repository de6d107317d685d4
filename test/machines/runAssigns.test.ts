/** What a run has heard and the store then refused. */
import { expect, it } from 'vitest';
import { releaseLostDecisions } from '../../machines/run/assigns.ts';

type Given = Parameters<typeof releaseLostDecisions>[0];

it('a decision whose append failed was not taken, and the others stay', () => {
  const held = (callId: string, suspension: number) => ({
    callId,
    suspension,
    decision: { callId, action: 'approve' as const },
  });
  const decisions = [held('c1', 1), held('c1', 2), held('c2', 1)];
  const lost = [{ runId: 'r', type: 'decision', callId: 'c1', suspension: 2, decision: decisions[1]?.decision }];
  const event = { type: 'append.failed', lost, error: { code: 'store', message: 'full' } };
  const { decisions: left } = releaseLostDecisions({ context: { decisions }, event } as unknown as Given);
  expect(left).toEqual([decisions[0], decisions[2]]);
});
