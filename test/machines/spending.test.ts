/** What a log says was spent: replies, and what sub-agents used; nothing of another form. */
import { describe, expect, it } from 'vitest';
import { countUsage, uncounted } from '../../machines/counters.ts';
import {
  applyEntry,
  countersOf,
  emptyLogState,
  freshCounters,
  type LogEntry,
  subAgentUsageOf,
  usageOf,
} from '../../machines/internal.ts';

const usage = { inputTokens: 3, outputTokens: 2, cachedInputTokens: 1, cacheWriteTokens: 0, reasoningTokens: 0 };
const entry = (value: unknown, name = 'runchart.sub-agent-usage'): LogEntry =>
  ({ seq: 0, at: 1, conversationId: 'c', runId: null, type: 'extension', name, value }) as LogEntry;
const counts = { callId: 'p', conversationId: 'k', upTo: 7, usage, costUsd: 0.5 };

describe('what sub-agents used', () => {
  it('counts in the tokens and the cost of their parent, and in none of its turns', () => {
    const logState = emptyLogState();
    applyEntry(logState, entry(counts));
    applyEntry(logState, { ...entry(counts), seq: 1 });
    expect(logState.turns).toBe(0);
    expect(countersOf(logState)).toMatchObject({ tokens: 10, costUsd: 1, turns: 0 });
  });

  it('of unknown price makes the cost unknown', () => {
    const logState = emptyLogState();
    applyEntry(logState, entry({ ...counts, costUsd: null }));
    expect(countersOf(logState)).toMatchObject({ tokens: 5, costUsd: 0, unpriced: 1 });
  });

  it('of unknown price that the store then lost leaves the counts as they were before', () => {
    const lost = entry({ ...counts, costUsd: null });
    const before = { ...freshCounters, tokens: 3, costUsd: 0.5 };
    const after = countUsage(before, usageOf(lost));
    expect(after).toEqual({ ...before, tokens: 8, unpriced: 1 });
    expect(uncounted(after, [lost])).toEqual(before);
  });

  it.each([null, 1, 'x', [], {}, { usage: [], costUsd: '1' }, { usage: { inputTokens: -1, outputTokens: '2' } }])(
    'an entry that holds %j counts no token, and no price is made up',
    (value) => {
      expect(usageOf(entry(value))).toEqual({
        usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
        costUsd: null,
      });
      expect(subAgentUsageOf(entry(value))).toBeUndefined();
    },
  );

  it("an application's own extension counts nothing", () => {
    expect(usageOf(entry(counts, 'usage'))).toBeUndefined();
    expect(subAgentUsageOf(entry(counts, 'usage'))).toBeUndefined();
  });
});
