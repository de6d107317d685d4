/** The usage in a log: replies and sub-agents count, entries of another form do not. */
import { describe, expect, it } from 'vitest';
import { addUsage, countUsage, uncounted, zeroUsage } from '../../machines/counters.ts';
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

describe('the usage of sub-agents', () => {
  it('counts as tokens and cost of the parent, and not as turns', () => {
    const logState = emptyLogState();
    applyEntry(logState, entry(counts));
    applyEntry(logState, { ...entry(counts), seq: 1 });
    expect(logState.turns).toBe(0);
    expect(countersOf(logState)).toMatchObject({ tokens: 10, costUsd: 1, turns: 0 });
  });

  it('makes the cost unknown if its price is unknown', () => {
    const logState = emptyLogState();
    applyEntry(logState, entry({ ...counts, costUsd: null }));
    expect(countersOf(logState)).toMatchObject({ tokens: 5, costUsd: 0, unpriced: 1 });
  });

  it('does not count if its entry is lost, also with an unknown price', () => {
    const lost = entry({ ...counts, costUsd: null });
    const before = { ...freshCounters, tokens: 3, costUsd: 0.5 };
    const after = countUsage(before, usageOf(lost));
    expect(after).toEqual({ ...before, tokens: 8, unpriced: 1 });
    expect(uncounted(after, [lost])).toEqual(before);
  });

  it.each([null, 1, 'x', [], {}, { usage: [], costUsd: '1' }, { usage: { inputTokens: -1, outputTokens: '2' } }])(
    'counts no token and has no price in an entry with %j',
    (value) => {
      expect(usageOf(entry(value))).toEqual({
        usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
        costUsd: null,
      });
      expect(subAgentUsageOf(entry(value))).toBeUndefined();
    },
  );

  it('does not include extension entries of an application', () => {
    expect(usageOf(entry(counts, 'usage'))).toBeUndefined();
    expect(subAgentUsageOf(entry(counts, 'usage'))).toBeUndefined();
  });
});

it('the usage of no model call is zero in each number', () => {
  const { costUsd, usage: tokens } = zeroUsage;
  expect([costUsd, ...Object.values(tokens)]).toEqual([0, 0, 0, 0, 0, 0]);
  expect(addUsage(zeroUsage, { usage, costUsd: 0.5 })).toEqual({ usage, costUsd: 0.5 });
});
