/**
 * Values of work in a trace. Invariant: none shows a secret, also one that another process recorded before the secret was
 * configured, which arrives raw.
 */
import { expect, it } from 'vitest';
import { redactor } from '../../src/log/redact.ts';
import { workAttributes, workOutcome } from '../../src/otel/attributes.ts';
import type { Work, WorkValue } from '../../src/plugins/workObserver.ts';

const SECRET = 'sk-live-0123456789abcdef';
const content = [{ type: 'text', text: `a ${SECRET} b` }] as const;
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

const redact = redactor([SECRET]);

const values: readonly (readonly [kind: string, work: 'tool' | 'model', value: object])[] = [
  ['a result', 'tool', { kind: 'succeeded', content }],
  ['an error result', 'tool', { kind: 'erred', code: 'x', content }],
  ['the code of an error result', 'tool', { kind: 'erred', code: SECRET, content }],
  ['the code of an error of a model', 'model', { kind: 'failed', code: SECRET, message: SECRET, retryable: true }],
  [
    'the text of a reply',
    'model',
    { kind: 'reply', items: [{ type: 'assistant', text: `a ${SECRET} b` }], finish: 'stop', usage },
  ],
  [
    'the arguments of a reply',
    'model',
    {
      kind: 'reply',
      items: [{ type: 'call', call: { callId: 'c', name: 't', args: { [SECRET]: SECRET } } }],
      finish: 'stop',
      usage,
    },
  ],
];

it.each(values)('%s shows no secret, and where contents are shown the mark of one', (kind, of, value) => {
  const work = { kind: of, runId: 'r', isCancelled: () => false, costOf: () => null } as unknown as Work;
  for (const contents of [true, false]) {
    const outcome = workOutcome(work, value as WorkValue, { contents, redact });
    expect(JSON.stringify(outcome)).not.toContain(SECRET);
    expect(JSON.stringify(outcome).includes('[redacted]')).toBe(contents || kind.startsWith('the code'));
  }
});

it.each<[kind: string, work: object]>([
  ['instructions', { kind: 'model', request: { system: `a ${SECRET}`, messages: [], tools: [] } }],
  ['a message', { kind: 'model', request: { system: '', messages: [{ role: 'user', content }], tools: [] } }],
  [
    'the definition of a tool',
    {
      kind: 'model',
      request: { system: '', messages: [], tools: [{ name: 't', description: SECRET, parameters: { title: SECRET } }] },
    },
  ],
  ['arguments', { kind: 'tool', call: { callId: 'c', name: 't', args: { key: SECRET } } }],
])('%s show no secret, and where contents are shown the mark of one', (_, about) => {
  const work = { runId: 'r', model: { id: 'm' }, ...about } as unknown as Work;
  for (const contents of [true, false]) {
    const shown = JSON.stringify(workAttributes(work, { contents, redact }));
    expect([shown.includes(SECRET), shown.includes('[redacted]')]).toEqual([false, contents]);
  }
});

it('the description of a tool shows no secret', () => {
  const work = { kind: 'tool', runId: 'r', call: { callId: 'c', name: 't', args: {} } } as unknown as Work;
  const attributes = workAttributes(work, { contents: false, redact }, `uses ${SECRET}`);
  expect(attributes['gen_ai.tool.description']).toBe('uses [redacted]');
});
