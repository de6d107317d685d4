/** The attributes of spans and metrics for each option of a request, each form of content, and each end of a run. */
import { describe, expect, it } from 'vitest';
import { METRICS, runOutcome, workAttributes, workOutcome } from '../../src/otel/attributes.ts';
import type { EndedRun, Work, WorkValue } from '../../src/plugins/workObserver.ts';

const usage = { inputTokens: 5, outputTokens: 4, cachedInputTokens: 3, cacheWriteTokens: 2, reasoningTokens: 0 };
const plain = { contents: true, redact: <T>(value: T): T => value };
const hidden = { ...plain, contents: false };
const modelWork = (request: object = {}, cost: number | null = null): Work =>
  ({
    ...{ kind: 'model', runId: 'r', isCancelled: () => false, model: { id: 'm' }, costOf: () => cost },
    request: { system: '', messages: [], tools: [], ...request },
  }) as unknown as Work;
const partsOf = (message: object): unknown => {
  const text = workAttributes(modelWork({ messages: [message] }), plain)['gen_ai.input.messages'];
  return JSON.parse(String(text))[0];
};
const replyOf = (items: object[], finish = 'stop') =>
  workOutcome(modelWork(), { kind: 'reply', items, finish, usage } as unknown as WorkValue, plain).attributes;

describe('the attributes of a request', () => {
  const settings: readonly (readonly [setting: object, attribute: string, value: unknown])[] = [
    [{ temperature: 0 }, 'gen_ai.request.temperature', 0],
    [{ temperature: 0.5 }, 'gen_ai.request.temperature', 0.5],
    [{ topP: 0 }, 'gen_ai.request.top_p', 0],
    [{ maxOutputTokens: 9 }, 'gen_ai.request.max_tokens', 9],
    [{ output: { name: 'o', schema: {} } }, 'gen_ai.output.type', 'json'],
  ];
  it.each(settings)('are those of its settings, and absent without them: %j', (setting, attribute, value) => {
    expect(workAttributes(modelWork(setting), hidden)[attribute]).toBe(value);
    expect(Object.keys(workAttributes(modelWork(), hidden))).not.toContain(attribute);
  });

  it('contain its system text, messages and tools only if contents are wanted, and none that is empty', () => {
    const tool = { name: 'read', description: 'Reads', parameters: {} };
    const request = { system: 'Be brief', messages: [{ role: 'user', content: [] }], tools: [tool] };
    const added = (fields: object, contents: boolean) =>
      Object.keys(workAttributes(modelWork(fields), { ...plain, contents })).filter((name) =>
        /system|messages|tool/.test(name),
      );
    expect(added(request, false)).toEqual([]);
    const all = ['gen_ai.input.messages', 'gen_ai.system_instructions', 'gen_ai.tool.definitions'];
    expect(added(request, true).sort()).toEqual(all);
    expect(added({}, true)).toEqual(['gen_ai.input.messages']);
    const { 'gen_ai.tool.definitions': definitions } = workAttributes(modelWork(request), plain);
    expect(JSON.parse(String(definitions))).toEqual([{ type: 'function', ...tool }]);
  });
});

describe('a message of a request', () => {
  it.each([
    ['image/png', 'image'],
    ['video/mp4', 'video'],
    ['audio/wav', 'audio'],
    ['application/pdf', 'document'],
    ['text/image/plain', 'document'],
    ['imagery/x', 'document'],
  ])('names the modality of an attachment without its bytes: %s is %s', (mediaType, modality) => {
    const content = [{ type: mediaType.startsWith('image/') ? 'image' : 'file', mediaType, data: 'QUJD' }];
    const parts = [{ type: 'blob', modality, mime_type: mediaType }];
    expect(partsOf({ role: 'user', content })).toEqual({ role: 'user', parts });
  });

  it('contains the calls of the model after its text, and the results of tools by their calls', () => {
    const content = [{ type: 'text', text: 'hm' }];
    const toolCalls = [{ callId: 'c1', name: 'read', args: { path: 'a' } }];
    expect(partsOf({ role: 'assistant', content, toolCalls })).toEqual({
      role: 'assistant',
      parts: [
        { type: 'text', content: 'hm' },
        { type: 'tool_call', id: 'c1', name: 'read', arguments: { path: 'a' } },
      ],
    });
    expect(partsOf({ role: 'tool', callId: 'c1', content })).toEqual({
      role: 'tool',
      parts: [{ type: 'tool_call_response', id: 'c1', response: 'hm' }],
    });
  });
});

describe('the attributes of a reply', () => {
  it.each([
    [
      { type: 'assistant', text: 'hm' },
      { type: 'text', content: 'hm' },
    ],
    [
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning', content: 'hm' },
    ],
    [
      { type: 'tool-call', callId: 'c1', name: 'read', args: { a: 1 } },
      { type: 'tool_call', id: 'c1', name: 'read', arguments: { a: 1 } },
    ],
    [
      { type: 'call', call: { callId: 'c1', name: 'read', args: '{"a":1}' } },
      { type: 'tool_call', id: 'c1', name: 'read', arguments: '{"a":1}' },
    ],
    [
      { type: 'call', call: { name: 'read', args: '' } },
      { type: 'tool_call', id: '', name: 'read', arguments: '' },
    ],
  ])('contain each item: %j', (item, part) => {
    const text = replyOf([item])['gen_ai.output.messages'];
    expect(JSON.parse(String(text))).toEqual([{ role: 'assistant', parts: [part], finish_reason: 'stop' }]);
  });

  it.each([
    ['stop', 'stop'],
    ['length', 'length'],
    ['pause', 'pause'],
    ['tool-calls', 'tool_call'],
    ['content-filter', 'content_filter'],
  ])('have the reason %s, which a message writes as %s', (finish, written) => {
    const attributes = replyOf([], finish);
    expect(attributes['gen_ai.response.finish_reasons']).toEqual([finish]);
    expect(JSON.parse(String(attributes['gen_ai.output.messages']))[0].finish_reason).toBe(written);
  });

  it.each([null, 0, 0.25])('have each count of tokens under its name, and the cost unless it is null: %s', (cost) => {
    const value = { kind: 'reply', items: [], finish: 'stop', usage } as unknown as WorkValue;
    const { attributes } = workOutcome(modelWork({}, cost), value, { ...plain, contents: false });
    expect(attributes).toEqual({
      'gen_ai.usage.input_tokens': 5,
      'gen_ai.usage.output_tokens': 4,
      'gen_ai.usage.cache_read.input_tokens': 3,
      'gen_ai.usage.cache_creation.input_tokens': 2,
      'gen_ai.response.finish_reasons': ['stop'],
      ...(cost !== null && { 'runchart.cost_usd': cost }),
    });
  });

  it.each([0, 1, 2])('have the tokens of reasoning if there are any: %s', (reasoningTokens) => {
    const run = { usage: { ...usage, reasoningTokens }, costUsd: null, termination: 'NaturalEnd' } as EndedRun;
    const { 'gen_ai.usage.reasoning.output_tokens': shown } = runOutcome(run).attributes;
    expect(shown).toBe(reasoningTokens === 0 ? undefined : reasoningTokens);
  });
});

describe('the attributes of a run', () => {
  const outcome = (more: object) => runOutcome({ runId: 'r', usage, costUsd: null, ...more } as EndedRun);

  it.each([
    ['NaturalEnd', undefined],
    ['PluginRequested', undefined],
    ['Suspended', undefined],
    ['Stopped', 'Stopped'],
    ['Cancelled', 'Cancelled'],
    ['Error', 'Error'],
  ])('have its termination, and an error unless it went well: %s', (termination, error) => {
    const { attributes, error: shown } = outcome({ termination });
    expect([attributes['runchart.termination'], shown]).toEqual([termination, error]);
    expect(Object.keys(attributes)).not.toContain('runchart.cause');
  });

  it('have the cause, and the code of the error before the termination', () => {
    const { attributes, error } = outcome({ termination: 'Error', cause: 'model', error: { code: 'rate-limit' } });
    expect([attributes['runchart.cause'], error]).toEqual(['model', 'rate-limit']);
    expect(outcome({ termination: 'NaturalEnd', error: { code: 'x' } }).error).toBeUndefined();
  });
});

it('the boundaries of the histograms are those of the conventions: tokens by powers of 4, seconds by doubling', () => {
  const tokens = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];
  const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
  const boundariesOf = (of: 'tokens' | 'duration') => METRICS[of][1].advice.explicitBucketBoundaries;
  expect([boundariesOf('tokens'), boundariesOf('duration')]).toEqual([tokens, seconds]);
});
