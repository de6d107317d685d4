import { describe, expect, it } from 'vitest';
import { createAgent, ModelError, type ModelPart, type ModelRequest } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';

const request: ModelRequest = {
  system: '',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
  tools: [],
};
const context = (signal = new AbortController().signal) => ({ signal, attempt: 1 });
async function parts(stream: AsyncIterable<ModelPart>): Promise<ModelPart[]> {
  const all: ModelPart[] = [];
  for await (const part of stream) all.push(part);
  return all;
}
const finish = { type: 'finish', reason: 'stop' } as const;

describe('scriptedModel', () => {
  it('streams one reply a call, in order, and keeps the requests', async () => {
    const model = scriptedModel(['one', { parts: [finish] }, ({ messages }) => `${messages.length} so far`]);
    expect(model.remaining).toBe(3);
    expect(await parts(model.stream(request, context()))).toEqual([{ type: 'text-delta', text: 'one' }, finish]);
    expect(await parts(model.stream(request, context()))).toEqual([finish]);
    expect(await parts(model.stream(request, context()))).toEqual([{ type: 'text-delta', text: '1 so far' }, finish]);
    expect([model.remaining, model.calls.length]).toEqual([0, 3]);
    expect(model.calls[0]).toBe(request);
  });

  it('throws a ModelError where the script holds one', async () => {
    const error = new ModelError({ code: 'rate-limit' });
    await expect(parts(scriptedModel([error]).stream(request, context()))).rejects.toBe(error);
  });

  it('throws on a call that nobody wrote a reply for, with the last message', () => {
    const model = scriptedModel([]);
    expect(() => model.stream(request, context())).toThrow(
      /the script has 0 replies and this is call 1; .*"text":"hi"/,
    );
    expect(model.calls).toHaveLength(1);
  });

  it('shows the beginning of a long last message, never with half a character', () => {
    const before = JSON.stringify({ role: 'user', content: [{ type: 'text', text: '' }] }).indexOf('""') + 1;
    for (const length of [199, 200, 201]) {
      const text = 'x'.repeat(length - 1 - before) + '😀'.repeat(9);
      const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text }] }];
      let message = '';
      try {
        scriptedModel([]).stream({ ...request, messages }, context());
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toContain('"text":"xxx');
      expect(message).toMatch(/^\P{Surrogate}*$/u);
    }
  });

  it('ends a run at once on an unexpected call: no retry hides it', async () => {
    const model = scriptedModel([]);
    const result = await createAgent({ model }).run('hi');
    expect(result).toMatchObject({ termination: 'Error', error: { code: 'unexpected-call' } });
    expect(model.calls).toHaveLength(1);
  });

  it('waits before each part and stops waiting when it is aborted', async () => {
    const model = scriptedModel([{ parts: [{ type: 'text-delta', text: 'a' }, finish], delayMs: 60_000 }]);
    const abort = new AbortController();
    const reading = parts(model.stream(request, context(abort.signal)));
    abort.abort(new Error('no longer wanted'));
    await expect(reading).rejects.toThrow('no longer wanted');
  });

  it('carries prices and the context window', () => {
    const prices = { input: 1, output: 2 };
    expect(scriptedModel([], { prices, contextWindow: 1000 })).toMatchObject({ prices, contextWindow: 1000 });
  });
});

it('scriptedModel refuses a finish of an unknown reason, which a run would report as a second call', () => {
  const parts = [{ type: 'finish', reason: 'end_turn' }] as never;
  expect(() => scriptedModel([{ parts }])).toThrow(
    'scriptedModel: reply 1: parts[0].reason must be one of "stop", "tool-calls", "length", "content-filter", "pause", got "end_turn"',
  );
});
