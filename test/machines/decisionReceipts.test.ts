/** The effect of a decision on a call, for each state of the call and each suspension (docs/approvals.md, Receipts). */
import { describe, expect, it } from 'vitest';
import { applyEntry, type Decision, emptyLogState, judgeDecision, type LogEntry } from '../../machines/internal.ts';

const approve: Decision = { callId: 'a', action: 'approve' };
const started = { type: 'tool-started', callId: 'a', idempotencyKey: 'c/a/1' };
const ended = { type: 'tool-result', callId: 'a', outcome: 'succeeded', content: [] };
const suspended = (suspension: number) => ({ type: 'tool-suspended', callId: 'a', suspension, reason: 'form' });
const decided = (suspension: number, decision: Decision = approve) => ({
  type: 'decision',
  callId: 'a',
  suspension,
  decision,
});

function receiptOf(entries: readonly object[], decision: Decision): string {
  const logState = emptyLogState();
  const item = { type: 'tool-call', callId: 'a', name: 'write', args: {} };
  for (const [seq, entry] of [{ type: 'run-started' }, { type: 'agent-output', item }, ...entries].entries())
    applyEntry(logState, { seq, at: seq, conversationId: 'c', runId: 'r', ...entry } as unknown as LogEntry);
  const { receipt, suspension } = judgeDecision(logState.calls.get(decision.callId), decision);
  return `${receipt} ${suspension}`;
}

/** The entries of a call, then the receipts of a decision for no suspension by number, then for the first three. */
const rows: readonly [string, readonly object[], readonly string[]][] = [
  ['was called', [], ['held 1', 'held 1', 'unknown 2', 'unknown 3']],
  ['runs', [started], ['held 1', 'held 1', 'unknown 2', 'unknown 3']],
  ['waits', [suspended(1)], ['applied 1', 'applied 1', 'unknown 2', 'unknown 3']],
  [
    'waits again',
    [suspended(1), decided(1), started, suspended(2)],
    ['applied 2', 'stale 1', 'applied 2', 'unknown 3'],
  ],
  ['waits with a decision', [suspended(1), decided(1)], ['duplicate 1', 'duplicate 1', 'unknown 2', 'unknown 3']],
  ['runs after a decision', [suspended(1), decided(1), started], ['duplicate 1', 'duplicate 1', 'held 2', 'unknown 3']],
  ['runs with an early decision', [started, decided(1)], ['duplicate 1', 'duplicate 1', 'unknown 2', 'unknown 3']],
  [
    'waits, and an early decision for its suspension came before',
    [started, decided(1), suspended(1)],
    ['duplicate 1', 'duplicate 1', 'unknown 2', 'unknown 3'],
  ],
  ['ended without a suspension', [started, ended], ['stale 1', 'stale 1', 'unknown 2', 'unknown 3']],
  ['ended in its suspension', [suspended(1), ended], ['stale 1', 'stale 1', 'unknown 2', 'unknown 3']],
  [
    'ended after its decision was used',
    [suspended(1), decided(1), started, ended],
    ['duplicate 1', 'duplicate 1', 'unknown 2', 'unknown 3'],
  ],
  [
    'ended before its decision was used',
    [suspended(1), decided(1), ended],
    ['stale 1', 'stale 1', 'unknown 2', 'unknown 3'],
  ],
  [
    'ended after two suspensions',
    [suspended(1), decided(1), started, suspended(2), decided(2), started, ended],
    ['duplicate 2', 'stale 1', 'duplicate 2', 'unknown 3'],
  ],
];

describe('a decision for a call that', () => {
  it.each(rows)('%s', (_, entries, receipts) => {
    const asked = [undefined, 1, 2, 3].map((suspension) => ({ ...approve, ...(suspension && { suspension }) }));
    expect(asked.map((decision) => receiptOf(entries, decision))).toEqual(receipts);
  });

  it('does not exist is unknown', () => {
    expect(receiptOf([], { callId: 'b', action: 'approve' })).toBe('unknown 1');
    expect(receiptOf([], { callId: 'b', action: 'approve', suspension: 2 })).toBe('unknown 2');
  });
});

describe('two decisions for one suspension', () => {
  const different: readonly Decision[] = [
    approve,
    { callId: 'a', action: 'deny' },
    { callId: 'a', action: 'deny', reason: 'no' },
    { callId: 'a', action: 'deny', reason: 'never' },
    { callId: 'a', action: 'edit', args: { path: 'a' } },
    { callId: 'a', action: 'edit', args: { path: 'b' } },
    { callId: 'a', action: 'answer', payload: 1 },
    { callId: 'a', action: 'answer', payload: { path: 'a' } },
  ];

  it('are a duplicate if action and content are equal, and a conflict otherwise', () => {
    for (const [index, first] of different.entries())
      for (const [otherIndex, second] of different.entries()) {
        const receipt = receiptOf([suspended(1), decided(1, first)], second);
        expect(receipt, JSON.stringify([first, second])).toBe(index === otherIndex ? 'duplicate 1' : 'conflict 1');
      }
  });

  it('are a duplicate whatever the order of the keys', () => {
    const first: Decision = { callId: 'a', action: 'edit', args: { path: 'a', text: 'b' } };
    const second: Decision = { callId: 'a', action: 'edit', args: { text: 'b', path: 'a' } };
    expect(receiptOf([suspended(1), decided(1, first)], second)).toBe('duplicate 1');
  });
});
