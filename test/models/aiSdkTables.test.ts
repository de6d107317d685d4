/**
 * Tests the adapter of AI SDK providers in tables: settings, requests, image URLs, invalid streams and errors by
 * name.
 */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../machines/vocabulary.ts';
import { type AiSdkSettings, aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { finishIn, play, request } from './scriptedFetch.ts';
import { end, type Part, provider, textParts } from './sdkProvider.ts';

const asked = async (settings: AiSdkSettings, fields: Partial<ModelRequest> = {}, model: object = {}) => {
  const { model: sdk, asked: calls } = provider([], model);
  await play(aiSdkModel(sdk, settings), request(fields));
  return calls[0] ?? { prompt: [] };
};
const partsOf = async (...reply: Part[]) => (await play(aiSdkModel(provider([reply]).model))).parts;

describe('a setting', () => {
  it.each<[keyof AiSdkSettings, number[], boolean]>([
    ['temperature', [0, 0.5, 2], true],
    ['maxOutputTokens', [1, 9], true],
    ['contextWindow', [1, 9], false],
  ])(
    '%s of any value that it may have is kept, and sent only where the request names none',
    async (name, values, isSent) => {
      for (const value of values) {
        expect((await asked({ [name]: value }))[name]).toBe(isSent ? value : undefined);
        if (isSent) expect((await asked({ [name]: value }, { [name]: 7 }))[name]).toBe(7);
        if (isSent) expect((await asked({ [name]: 7 }, { [name]: value }))[name]).toBe(value);
        if (name !== 'temperature')
          expect(aiSdkModel(provider([]).model, { [name]: value })).toMatchObject({ [name]: value });
      }
      expect(await asked({})).not.toHaveProperty(name);
    },
  );

  it('with impossible limits of images is refused when the model is made', () => {
    for (const imageLimits of [{ maxPixels: 0 }, { maxBytes: -1 }, { mediaTypes: ['image/tiff'] }])
      expect(() => aiSdkModel(provider([]).model, { imageLimits })).toThrow('imageLimits of m-1');
    expect(aiSdkModel(provider([]).model, { imageLimits: { maxPixels: 9 } }).imageLimits).toEqual({ maxPixels: 9 });
  });

  it('with secrets is copied: the list of the caller does not grow', async () => {
    const secrets = ['another-secret'];
    const model = aiSdkModel(provider([], { config: { headers: { 'x-api-key': 'key-of-header' } } }).model, {
      secrets,
    });
    await play(model);
    expect([secrets, model.secrets]).toEqual([['another-secret'], ['another-secret', 'key-of-header']]);
  });
});

describe('an image by its address', () => {
  const image: Message = {
    role: 'user',
    content: [{ type: 'image', mediaType: 'image/png', data: 'https://Pictures.test/A.png' }],
  };
  const ours = [/^https:\/\/pictures\.test\//];
  it.each<[string, Record<string, RegExp[]>, boolean]>([
    ['of its type', { 'image/png': ours }, true],
    ['of its type in capitals', { 'IMAGE/PNG': ours }, true],
    ['of its kind', { 'image/*': ours }, true],
    ['of every kind', { '*/*': ours }, true],
    ['of everything', { '*': ours }, true],
    ['of several kinds', { 'audio/*': [/./], 'image/*': [/^http:/, ...ours] }, true],
    ['of another type', { 'image/jpeg': [/./] }, false],
    ['of another kind', { 'video/*': [/./] }, false],
    ['of another place', { 'image/*': [/^https:\/\/other\.test\//] }, false],
    ['of no place', { 'image/*': [] }, false],
    ['of nothing', {}, false],
  ])('is sent as it is where the provider fetches addresses %s', async (_, supportedUrls, isSent) => {
    for (const urls of [supportedUrls, Promise.resolve(supportedUrls)]) {
      const { prompt } = await asked({}, { messages: [image] }, { supportedUrls: urls });
      const part = isSent
        ? { type: 'file', mediaType: 'image/png', data: new URL('https://Pictures.test/A.png') }
        : { type: 'text', text: expect.stringContaining('at https://Pictures.test/A.png: not sent') };
      expect(prompt[0]?.content).toEqual([part]);
    }
  });

  it('is not sent if the provider lists no URLs that it fetches', async () => {
    const { prompt } = await asked({}, { messages: [image] }, { supportedUrls: undefined });
    expect(prompt[0]?.content[0]?.type).toBe('text');
  });
});

describe('blocks of a stream', () => {
  const start = (id: string, more: object = {}): Part => ({ type: 'reasoning-start', id, ...more });
  const delta = (id: string, words: string, more: object = {}): Part => ({
    type: 'reasoning-delta',
    id,
    delta: words,
    ...more,
  });
  const signed = (signature: string) => ({ providerMetadata: { acme: { signature } } });
  const block = (text: string, signature?: string) => ({
    ...{ type: 'reasoning', text },
    ...(signature !== undefined && { options: { acme: { signature } } }),
  });
  it.each<[string, Part[], object[]]>([
    [
      'an id that begins again is another block',
      [start('1'), delta('1', 'a'), start('1'), delta('1', 'b')],
      [block('a'), block('b')],
    ],
    [
      'two ids may grow by turns',
      [start('1'), start('2'), delta('1', 'a'), delta('2', 'b'), delta('1', 'c')],
      [block('ac'), block('b')],
    ],
    ['one that was never begun begins with its first piece', [delta('1', 'a'), delta('1', 'b')], [block('ab')]],
    ['the last attachment counts', [start('1', signed('s')), delta('1', 'a', signed('t'))], [block('a', 't')]],
    ['a piece without one takes none away', [start('1', signed('s')), delta('1', 'a')], [block('a', 's')]],
    [
      'text and thoughts of one id are two',
      [start('1'), delta('1', 'a'), ...textParts('b', '1')],
      [block('a'), { type: 'text' }],
    ],
  ])('%s', async (_, parts, blocks) => {
    const finish = finishIn(await partsOf(...parts, end()));
    expect(finish?.type === 'finish' && finish.extra).toEqual({ provider: 'acme.chat', blocks });
  });

  it('a call that the provider executes is neither a call nor streamed input', async () => {
    const parts = await partsOf(
      { type: 'tool-input-start', id: 'p', toolName: 'search', providerExecuted: true },
      { type: 'tool-input-delta', id: 'p', delta: '{"q":1}' },
      { type: 'tool-input-start', id: 'c', toolName: 'look' },
      { type: 'tool-input-delta', id: 'unknown', delta: 'x' },
      { type: 'tool-input-delta', id: 'c', delta: '{}' },
      { type: 'tool-input-delta', id: 'c', delta: '' },
      { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: '{"q":1}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'p', toolName: 'search', result: null },
      end(),
    );
    expect(parts.filter(({ type }) => type === 'tool-call-delta' || type === 'tool-call')).toEqual([
      { type: 'tool-call-delta', index: 1, callId: 'c', name: 'look', text: '' },
      { type: 'tool-call-delta', index: 1, text: '{}' },
    ]);
    const finish = finishIn(parts);
    expect(finish?.type === 'finish' && [finish.reason, finish.extra]).toEqual([
      'stop',
      {
        provider: 'acme.chat',
        blocks: [
          {
            type: 'executed',
            part: { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: { q: 1 }, providerExecuted: true },
          },
          {
            type: 'executed',
            part: { type: 'tool-result', toolCallId: 'p', toolName: 'search', output: { type: 'json', value: null } },
          },
        ],
      },
    ]);
  });
});

it('a call that the provider executes is left out of a paused or cut reply that ends before its result', async () => {
  const called = (id: string): Part[] => [
    { type: 'tool-call', toolCallId: id, toolName: 'search', input: '{}', providerExecuted: true },
  ];
  const result: Part = { type: 'tool-result', toolCallId: 'a', toolName: 'search', result: 1 };
  const idsOf = async (reason: Part) => {
    const finish = finishIn(await partsOf(...called('a'), result, ...called('b'), reason));
    const extra =
      finish?.type === 'finish' ? (finish.extra as { blocks: { part: { toolCallId: string } }[] }) : undefined;
    return extra?.blocks.map(({ part }) => part.toolCallId);
  };
  expect(await idsOf(end('stop', 'pause_turn'))).toEqual(['a', 'a']);
  expect(await idsOf(end('length'))).toEqual(['a', 'a']);
  expect(await idsOf(end())).toEqual(['a', 'a', 'b']);
});

describe('the result of a call that the provider executed', () => {
  const result = (fields: object): Part => ({ type: 'tool-result', toolCallId: 'p', toolName: 'search', ...fields });
  const keptOf = async (...parts: readonly Part[]): Promise<unknown> => {
    const finish = finishIn(await partsOf(...parts, end()));
    return finish?.type === 'finish' ? finish.extra : undefined;
  };
  const kept = (output: object): object => ({
    provider: 'acme.chat',
    blocks: [{ type: 'executed', part: { type: 'tool-result', toolCallId: 'p', toolName: 'search', output } }],
  });

  it('goes back as an error if the tool failed', async () => {
    const value = { type: 'web_fetch_tool_result_error', errorCode: 'unavailable' };
    expect(await keptOf(result({ result: value, isError: true }))).toEqual(kept({ type: 'error-json', value }));
  });

  it('replaces its previews, which are not sent back', async () => {
    const preview = result({ result: { image: 'half' }, preliminary: true });
    const whole = result({ result: { image: 'whole' } });
    expect(await keptOf(preview, preview, whole)).toEqual(kept({ type: 'json', value: { image: 'whole' } }));
  });
});

describe('an error by its name', () => {
  const CODES = {
    auth: ['AI_LoadAPIKeyError', 'AI_LoadSettingError'],
    'not-found': ['AI_NoSuchModelError', 'AI_NoSuchProviderError'],
    'bad-request': ['AI_InvalidArgumentError', 'AI_InvalidPromptError', 'AI_UnsupportedFunctionalityError'],
    'bad-frame': ['AI_JSONParseError', 'AI_TypeValidationError', 'AI_InvalidResponseDataError'],
    'stream-incomplete': ['AI_EmptyResponseBodyError', 'AI_NoContentGeneratedError'],
    network: ['AI_SomethingNew', 'Error', 'TypeError'],
  };
  const key = 'sk-acme-0123456789';
  const named = (name: string) => Object.assign(new Error(`no ${key}\n${'x'.repeat(9_000)}`), { name });
  const failed = async (error: unknown) => {
    const doStream = () => Promise.reject(error);
    return (await play(aiSdkModel(provider([], { doStream }).model, { secrets: [key] }))).error;
  };

  it.each(Object.entries(CODES).flatMap(([code, names]) => names.map((name) => [name, code])))(
    '%s is %s, also in a RetryError of the SDK, and quotes no secret',
    async (name = '', code) => {
      for (const error of [
        named(name),
        Object.assign(new Error('gave up'), { name: 'AI_RetryError', cause: named(name) }),
      ]) {
        const { code: errorCode, message } = (await failed(error)) ?? {};
        expect(errorCode).toBe(code);
        expect(message).toContain('no [redacted] xxx');
        expect(message?.length).toBeLessThan(900);
      }
    },
  );

  it('a retry error of the SDK without a cause is a network error', async () => {
    expect(await failed(Object.assign(new Error('gave up'), { name: 'AI_RetryError' }))).toMatchObject({
      code: 'network',
    });
  });
});

it('a stream that comes after the abort is cancelled', async () => {
  const controller = new AbortController();
  let arrive = (_: object): void => undefined;
  const late = new Promise<object>((resolve) => {
    arrive = resolve;
  });
  const cancelled: string[] = [];
  const model = aiSdkModel(provider([], { doStream: () => late }).model);
  const call = play(model, request(), controller.signal);
  await new Promise((resolve) => setImmediate(resolve));
  controller.abort(new Error('enough'));
  expect((await call).error?.message).toBe('enough');
  arrive({ stream: new ReadableStream({ cancel: () => void cancelled.push('cancelled') }) });
  await new Promise((resolve) => setImmediate(resolve));
  expect(cancelled).toEqual(['cancelled']);
});
