/** The window for a continuation after a model refused a request as too long, by the words of several servers. */
import { expect, test } from 'vitest';
import { windowAfter } from '../../src/cli/models/contextRecovery.ts';

const windowOf = (message: string, contextWindow?: number, code = 'bad-request') =>
  windowAfter({ code, message }, contextWindow === undefined ? {} : { contextWindow }, []);

test.each([
  ["This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.", 8_192],
  ['prompt is too long: 210,031 tokens > 200,000 maximum', 200_000],
  ['the request exceeds the available context size (4096 tokens), try increasing it', 4_096],
  ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', 1_048_576],
  [
    "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (6000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
    8_192,
  ],
  [
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (120000 of text input, 20000 in the output).",
    131_072,
  ],
  [
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
    200_000,
  ],
  ['the request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it', 8_192],
  ['context limit: 8192 tokens, got 9031 (5000 in the messages, 4031 in the completion)', 8_192],
  ['Prompt is too long: 9031 tokens, the limit is 8192', 8_192],
  ['context_length_exceeded', 1_000],
])('%s', (message, window) => {
  expect(windowOf(message)).toBe(window);
});

test('other errors are none, and the window never grows', () => {
  expect(windowOf('the model server answered 400: unknown field temperature')).toBeUndefined();
  expect(windowOf('maximum context length is 8192 tokens', undefined, 'server')).toBeUndefined();
  expect(windowAfter(undefined, {}, [])).toBeUndefined();
  expect(windowOf('maximum context length is 200000 tokens', 100_000)).toBe(100_000);
});
