/** Tests that the schemas refuse the same values as the tolerant reader, and accept the runtime's entries. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleEntries } from '../machines/log/entryKinds.ts';
import type { LogEntry, RuntimeEntry, WireEvent } from '../machines/vocabulary.ts';
import { readEntry } from '../src/projector/readEntry.ts';
import { logEntrySchema, wireEventSchema } from '../src/schema.ts';
import { anyEvent, wild, wireEvent } from './projector/arbitraries.ts';
import { A, C, R, reply, S, T, U } from './projector/events.ts';

const WIRE = new Set(['user-message', 'agent-output', 'tool-result', 'run-stop']);
const readerTakes = (value: unknown): boolean => WIRE.has(readEntry(value).reading.type);
const schemaTakes = (value: unknown): boolean => wireEventSchema.safeParse(value).success;

/** Wire events in which one field is replaced by a field of another event, because a reader and a schema could differ there. */
const mutated = fc
  .tuple(
    wireEvent,
    fc.constantFrom('messageId', 'kind', 'content', 'item', 'items', 'callId', 'outcome', 'code', 'reason', 'cause'),
    fc.constantFrom('type', 'text', 'flag', 'name', 'args', 'argsText', 'group', 'extra', 'mediaType', 'data'),
    fc.oneof(fc.anything(), fc.constantFrom('image', 'refusal', 'steer', 'error', undefined, null, [], {})),
    fc.nat(3),
  )
  .map(([event, outer, inner, value, depth]): unknown => {
    if (depth === 0) return { ...event, [outer]: value };
    const copy = structuredClone(event) as Record<string, unknown>;
    const nested =
      depth === 1 ? copy.item : depth === 2 ? (copy.items as unknown[])?.[0] : (copy.content as unknown[])?.[0];
    if (typeof nested === 'object' && nested !== null) Object.assign(nested, { [inner]: value });
    return copy;
  });

/** A stop with an unknown reason ends a cycle too: the reader reads it as an error. */
const isOddStop = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (value as { type?: unknown }).type === 'run-stop' &&
  schemaTakes({ ...value, reason: 'error' });

describe('wire events', () => {
  it('CYC-1 the reader takes exactly what the schema takes, and a stop whatever its reason', () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.oneof(mutated, wild, anyEvent, fc.jsonValue()), (value) => {
        const takes = schemaTakes(value);
        if (takes) taken++;
        expect(readerTakes(value)).toBe(takes || isOddStop(value));
      }),
      { numRuns: 3_000 },
    );
    expect(taken).toBeGreaterThan(300);
  });

  it.each([
    ['a message without kind', { type: 'user-message', messageId: 'm', content: [] }, true],
    [
      'an image by reference',
      { ...U('m'), content: [{ type: 'image', mediaType: 'image/png', data: 'blob:1' }] },
      true,
    ],
    ['several items', { type: 'agent-output', items: [A('x').item, C('c').item] }, true],
    ['several items under item', { type: 'agent-output', item: [A('x').item] }, true],
    ['items where item is wrong', { type: 'agent-output', item: 1, items: [A('x').item] }, true],
    ['a group of a later version', { type: 'agent-output', item: { ...C('c').item, group: 'web-group' } }, true],
    [
      'arguments that do not parse',
      { type: 'agent-output', item: { ...C('c').item, args: null, argsText: '{' } },
      true,
    ],
    [
      'arguments that are missing',
      { type: 'agent-output', item: { type: 'tool-call', callId: 'c', name: 'x' } },
      false,
    ],
    ['arguments in a circle', { type: 'agent-output', item: { ...C('c').item, args: circle() } }, false],
    ['an extra that is not JSON', { type: 'agent-output', item: { ...C('c').item, extra: 1n } }, false],
    ['an array', [U('m')], false],
    ['a string of content', { ...U('m'), content: 'text' }, false],
  ])('%s: both say the same', (_, value, takes) => {
    expect([schemaTakes(value), readerTakes(value)]).toEqual([takes, takes]);
  });

  it('arguments 100,000 levels deep are refused without a throw', () => {
    const args = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(schemaTakes({ type: 'agent-output', item: { ...C('c').item, args } })).toBe(false);
  });
});

const callId = 'c1';
const content = [{ type: 'text' as const, text: 'x' }];
/** Further samples, beside the one that each kind declares. */
const ENTRIES = {
  'user-message': { type: 'user-message', messageId: 'm', kind: 'direct', content },
  'agent-output': R('x'),
  'tool-result': { ...T(callId), code: 'denied' },
  'run-stop': S('error', 'crash'),
  conversation: { type: 'conversation', schema: 1, cwd: '/', createdAt: 0, parent: { conversationId: 'p', callId } },
  history: {
    type: 'history',
    messages: [
      { role: 'user', content },
      { role: 'tool', callId, content, isError: true },
    ],
  },
  'run-started': { type: 'run-started' },
  'run-resumed': { type: 'run-resumed', of: 'r0' },
  'run-suspended': { type: 'run-suspended', waiting: [callId] },
  'message-queued': { type: 'message-queued', messageId: 'm', kind: 'steer', content },
  'message-returned': { type: 'message-returned', messageId: 'm', why: 'closed' },
  'tool-allowed': { type: 'tool-allowed', callId, by: 'rule' },
  'tool-started': { type: 'tool-started', callId, idempotencyKey: 'k', args: { a: 1 } },
  'tool-suspended': { type: 'tool-suspended', callId, suspension: 1, reason: 'permission', payload: null },
  decision: { type: 'decision', callId, suspension: 1, decision: { callId, action: 'answer', payload: false } },
  'decision-consumed': { type: 'decision-consumed', callId, suspension: 1 },
  'call-settled': { type: 'call-settled', callId, how: { ran: null } },
  'state-changed': { type: 'state-changed', writes: { a: [1] } },
  continuation: { type: 'continuation', text: 'Go on.', why: 'pause' },
  'model-reply': reply(),
  'model-retry': { type: 'model-retry', turn: 1, attempt: 2, waitMs: 5, model: 'm', reason: 'server' },
  compaction: { type: 'compaction', upToSeq: 3, summary: 's' },
  'context-warning': { type: 'context-warning', used: 8, limit: 10 },
  'sub-agent': { type: 'sub-agent', callId, child: 'k', phase: 'started' },
  checkpoint: { type: 'checkpoint', boundary: 'RunFinished' },
  notice: { type: 'notice', code: 'n', text: 't' },
  diagnostic: { type: 'diagnostic', code: 'late_result', detail: { callId } },
  extension: { type: 'extension', name: 'e', value: null },
} satisfies { [K in (WireEvent | RuntimeEntry)['type']]?: Extract<WireEvent | RuntimeEntry, { type: K }> };
const entry = (event: WireEvent | RuntimeEntry): LogEntry => ({
  seq: 0,
  at: 0,
  conversationId: 'c',
  runId: null,
  ...event,
});

describe('log entries', () => {
  const samples = [...sampleEntries('c'), ...Object.values(ENTRIES).map(entry)].map((one) => [one.type, one] as const);

  it.each(samples)('%s is taken as it is', (_, sample) => {
    expect(logEntrySchema.parse(sample)).toEqual(sample);
  });

  it.each(samples)('the projector reads %s', (_, sample) => {
    expect(readEntry(sample).reading.type).not.toBe('odd');
  });

  it.each([
    ['without seq', { ...entry(S()), seq: undefined }],
    ['with a negative seq', { ...entry(S()), seq: -1 }],
    ['without a conversation', { ...entry(S()), conversationId: undefined }],
    ['without a kind', { ...entry(S()), ...U('m') }],
    ['with several items', { ...entry(S()), type: 'agent-output', items: [] }],
    ['of an unknown type', { ...entry(S()), type: 'x' }],
    ['with a decision of no kind', { ...entry(ENTRIES.decision), decision: { callId, action: 'maybe' } }],
    ['with two settlements', { ...entry(ENTRIES['call-settled']), how: { ran: 1, retry: true } }],
  ])('an entry %s is refused', (_, value) => {
    expect(logEntrySchema.safeParse(value).success).toBe(false);
  });
});

function circle(): unknown {
  const list: unknown[] = [];
  list.push(list);
  return list;
}
