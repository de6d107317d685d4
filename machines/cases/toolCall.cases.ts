/**
 * Cases of TOOL_CALL: gated or not, refused, replayed, at its last suspension, executed again, with and without
 * AfterToolExecute.
 */

import type { GateValue, ToolValue } from '../ports.ts';
import type { ToolCallContext, ToolCallInput } from '../tools/toolCall.machine.ts';
import type { Cases } from './cases.ts';

const call = { callId: 'a', name: 'read', gated: false, readOnly: true, fingerprint: 'a' };
const plain: ToolCallInput = {
  conversationId: 'c',
  runId: 'r',
  id: 'r/t1/call/0',
  call,
  suspension: 0,
  suspensionsMax: 2,
  retry: false,
  after: false,
};
const gated = { ...call, gated: true };
const refused = { ...gated, refused: { code: 'unknown_tool', text: 'There is no such tool.' } };
const again = { suspension: 1, decision: { callId: 'a', action: 'approve' } } as const;

const retry = { attempts: 3, baseMs: 100, factor: 2, capMs: 150, jitter: 0.1 };

const inputs: readonly ToolCallInput[] = [
  plain,
  { ...plain, after: true },
  { ...plain, call: gated },
  { ...plain, call: gated, after: true },
  { ...plain, call: refused },
  { ...plain, call: refused, after: true },
  { ...plain, call: gated, ...again },
  { ...plain, call: gated, ...again, suspension: 2 },
  { ...plain, call: gated, ...again, suspension: 2, after: true },
  { ...plain, retry },
  { ...plain, call: gated, retry: { ...retry, attempts: 2 }, after: true },
  // Ids are any text. A call that runs once more keeps the key of its first start.
  { ...plain, conversationId: 'c/1%', call: { ...call, callId: 'a/%' } },
  { ...plain, idempotencyKey: 'first' },
];

const content = [{ type: 'text' as const, text: 'done' }];
const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' };
const gate: readonly GateValue[] = [
  { kind: 'allow' },
  { kind: 'allow', by: 'rule', args: { path: 'b' } },
  { kind: 'block', code: 'blocked', text: 'no' },
  { kind: 'refuse', code: 'invalid_arguments', text: 'path is missing' },
  { kind: 'suspend', reason: 'permission' },
  { kind: 'suspend', reason: 'permission', payload: { risk: 'high' }, args: { path: 'b' } },
];
const tool: readonly ToolValue[] = [
  { kind: 'succeeded', content },
  { kind: 'succeeded', content, writes: { mode: 'edit' } },
  { kind: 'erred', content, code: 'error' },
  { kind: 'erred', content, code: 'error', retry: { random: 0.5 } },
  { kind: 'erred', content: [...content, image, { type: 'text', text: 'x'.repeat(1_000) }], code: 'long' },
  { kind: 'pending', reason: 'form', payload: { field: 'name' } },
  { kind: 'pending', reason: 'sub-agent', within: true },
];

export const toolCallCases = {
  inputs,
  cases: {
    'effect.done': [...gate, ...tool, { kind: 'shown' as const, content }].map((value) => ({
      type: 'effect.done',
      id: '',
      value,
    })),
    'timer.elapsed': [2, 3].map((attempt) => ({ type: 'timer.elapsed', id: `r/t1/call/0/wait/${attempt}` })),
  },
  projection: ({ output, attempt }: ToolCallContext) => [output ?? null, attempt],
} satisfies Cases;
