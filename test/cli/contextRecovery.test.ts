/** The window to go on with after a model refused a request as too long, by the words of several servers. */
import { expect, test } from 'vitest';
import { windowAfter } from '../../src/cli/models/contextRecovery.ts';

const windowOf = (message: string, contextWindow?: number, code = 'bad-request') =>
  windowAfter({ code, message }, contextWindow === undefined ? {} : { contextWindow }, []);

test.each([
  ["This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.", 8_192],
  ['prompt is too long: 210,031 tokens > 200,000 maximum', 200_000],
  ['the request exceeds the available context size (4096 tokens), try increasing it', 4_096],
  ['The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).', 1_048_576],
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
