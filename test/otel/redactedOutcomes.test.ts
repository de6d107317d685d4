/**
 * Values of work in a trace. Invariant: none shows a secret, also one that another process recorded before the secret was
 * configured, which arrives raw.
 */
import { expect, it } from 'vitest';
import { redactor } from '../../src/log/redact.ts';
import { workOutcome } from '../../src/otel/attributes.ts';
import type { Work, WorkValue } from '../../src/plugins/workObserver.ts';

const SECRET = 'sk-live-0123456789abcdef';
const content = [{ type: 'text', text: `a ${SECRET} b` }] as const;
const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };

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
    const outcome = workOutcome(work, value as WorkValue, { contents, redact: redactor([SECRET]) });
    expect(JSON.stringify(outcome)).not.toContain(SECRET);
    expect(JSON.stringify(outcome).includes('[redacted]')).toBe(contents || kind.startsWith('the code'));
  }
});
