/**
 * One entry of every type a log may hold. Rule: the type below fails to compile when a type of entry is missing.
 */
import type { LogEntry, NewEntry } from '../../../machines/vocabulary.ts';

type Bodies = { [T in NewEntry['type']]: Omit<Extract<NewEntry, { type: T }>, 'type' | 'runId'> };

const content = [{ type: 'text', text: 'hello' } as const];
const usage = { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

const bodies: Bodies = {
  conversation: { schema: 1, cwd: '/home/case', createdAt: 1, parent: { conversationId: 'p', callId: 'c0' } },
  'user-message': { messageId: 'm1', kind: 'direct', content },
  'agent-output': {
    item: { type: 'tool-call', callId: 'c1', name: 'read', args: { a: [1, null, false, ''] }, group: 'read-group' },
    extra: { signed: ['c2ln', 1, null] },
  },
  'tool-result': { callId: 'c1', outcome: 'failed', content, code: 'denied' },
  'run-stop': { reason: 'interrupted', cause: 'cancelled' },
  'run-started': {},
  'run-resumed': { of: 'run-0' },
  'run-suspended': { waiting: ['c1', 'c2'] },
  'message-queued': { messageId: 'm2', kind: 'steer', content },
  'message-returned': { messageId: 'm2', why: 'closed' },
  'tool-allowed': { callId: 'c1', by: 'rule' },
  'tool-started': { callId: 'c1', idempotencyKey: 'k', args: { b: 0 } },
  'tool-suspended': { callId: 'c1', suspension: 1, reason: 'approval', payload: null, args: { b: 1 } },
  decision: { callId: 'c1', suspension: 1, decision: { callId: 'c1', action: 'answer', payload: false } },
  'decision-consumed': { callId: 'c1', suspension: 1 },
  'call-settled': { callId: 'c1', how: { ran: 'done' } },
  'state-changed': { callId: 'c1', writes: { key: { nested: [] } } },
  history: { messages: [{ role: 'user', content: [{ type: 'text', text: 'before' }] }] },
  continuation: { text: 'go on', why: 'empty' },
  'model-reply': { turn: 1, model: 'm', finish: 'tool-calls', usage, costUsd: null },
  'model-retry': { turn: 1, attempt: 2, waitMs: 500, model: 'm', reason: '503' },
  compaction: { upToSeq: 3, summary: 'short' },
  'context-warning': { used: 80, limit: 100 },
  'sub-agent': { callId: 'c1', child: 's', phase: 'ended' },
  checkpoint: { boundary: 'RunFinished' },
  notice: { code: 'n', text: 't' },
  diagnostic: { code: 'd', detail: [0.1, -3, 1e21] },
  extension: { name: 'x', value: null },
};

/** Numbered from 0; every second one belongs to a run. */
export function everyEntry(conversationId: string): LogEntry[] {
  return Object.entries(bodies).map(([type, body], seq) => {
    const stamp = { seq, at: 1_700_000_000_000 + seq, conversationId, runId: seq % 2 === 0 ? null : 'run-1' };
    return { ...stamp, type, ...body } as LogEntry;
  });
}
