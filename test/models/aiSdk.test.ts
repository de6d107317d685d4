import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../machines/vocabulary.ts';
import { createAgent } from '../../src/index.ts';
import { type AiSdkLanguageModel, aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import type { Model, ModelPart } from '../../src/models/model.ts';
import { finishIn, play, request, userSays } from './scriptedFetch.ts';
import { end, type Part, provider, streamOf, textParts } from './sdkProvider.ts';

const parts = async (reply: readonly Part[], fields: object = {}): Promise<ModelPart[]> =>
  (await play(aiSdkModel(provider([reply], fields).model))).parts;

describe('a model of the AI SDK', () => {
  it('streams text, reasoning and calls, with usage and the finish reason', async () => {
    const reply = [
      { type: 'stream-start', warnings: [{ type: 'other', message: 'mind the gap' }] },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: { acme: { signature: 's' } } },
      ...textParts('hi'),
      { type: 'tool-input-start', id: 'c', toolName: 'look' },
      { type: 'tool-input-delta', id: 'c', delta: '{"a":1}' },
      { type: 'tool-input-end', id: 'c' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: '{"a":1}', providerMetadata: { acme: { t: 1 } } },
      end('tool-calls'),
    ];
    expect(await parts(reply)).toEqual([
      { type: 'diagnostic', code: 'provider_warning', detail: { type: 'other', message: 'mind the gap' } },
      { type: 'reasoning-delta', text: 'hm' },
      { type: 'text-delta', text: 'hi' },
      { type: 'tool-call-delta', index: 0, callId: 'c', name: 'look', text: '' },
      { type: 'tool-call-delta', index: 0, text: '{"a":1}' },
      {
        ...{ type: 'tool-call', callId: 'c', name: 'look', args: '{"a":1}' },
        extra: { provider: 'acme.chat', options: { acme: { t: 1 } } },
      },
      {
        type: 'finish',
        reason: 'tool-calls',
        usage: { inputTokens: 20, outputTokens: 9, cachedInputTokens: 7, cacheWriteTokens: 3, reasoningTokens: 4 },
        extra: {
          provider: 'acme.chat',
          blocks: [
            { type: 'reasoning', text: 'hm', options: { acme: { signature: 's' } } },
            { type: 'text' },
            { type: 'call' },
          ],
        },
      },
    ]);
  });

  it('reads finish reasons in both versions, and a missing one is an incomplete reply', async () => {
    const reasonOf = async (finishReason: unknown, fields = {}) => {
      const { parts, error } = await play(aiSdkModel(provider([[{ ...end(), finishReason }]], fields).model));
      const finish = finishIn(parts);
      return error?.code ?? (finish?.type === 'finish' ? finish.reason : undefined);
    };
    expect(await reasonOf({ unified: 'stop', raw: 'pause_turn' })).toBe('pause');
    expect(await reasonOf({ unified: 'length', raw: 'max_tokens' })).toBe('length');
    expect(await reasonOf({ unified: 'content-filter', raw: 'refusal' })).toBe('content-filter');
    expect(await reasonOf({ unified: 'error', raw: 'x' })).toBe('provider');
    expect(await reasonOf({ unified: 'other', raw: 'novel' })).toBe('stop');
    expect(await reasonOf({ unified: 'other', raw: undefined })).toBe('stream-incomplete');
    expect(await reasonOf('tool-calls', { specificationVersion: 'v2' })).toBe('tool-calls');
    expect(await reasonOf('unknown', { specificationVersion: 'v2' })).toBe('stream-incomplete');
    expect((await play(aiSdkModel(provider([textParts('cut')]).model))).error).toMatchObject({
      code: 'stream-incomplete',
      retryable: true,
    });
  });

  it('H-012: a part that is null or of unknown type is skipped with a diagnostic', async () => {
    const odd = [null as never, { type: 'x-new' } as Part];
    expect(await parts([...odd, ...textParts('a'), end()])).toMatchObject([
      { type: 'diagnostic', code: 'part_ignored', detail: { type: '' } },
      { type: 'diagnostic', code: 'part_ignored', detail: { type: 'x-new' } },
      { type: 'text-delta', text: 'a' },
      { type: 'finish', reason: 'stop' },
    ]);
  });

  it('H-012: a reply has at most four diagnostics of one kind', async () => {
    const odd = Array.from({ length: 50 }, () => ({ type: 'newly-invented' }));
    const diagnostics = (await parts([...odd, ...textParts('hi'), end()])).filter(({ type }) => type === 'diagnostic');
    expect(diagnostics.length).toBe(4);
  });

  it('counts cached tokens as input in version 2 too, which one provider counts separately', async () => {
    const usage = { inputTokens: 10, outputTokens: 4, totalTokens: 14, cachedInputTokens: 6 };
    const used = async (providerMetadata: object) => {
      const finish = finishIn(await parts([{ type: 'finish', finishReason: 'stop', usage, providerMetadata }]));
      return finish?.type === 'finish' ? finish.usage : undefined;
    };
    expect(await used({})).toMatchObject({ inputTokens: 10, cachedInputTokens: 6, cacheWriteTokens: 0 });
    const apart = await used({ anthropic: { cacheCreationInputTokens: 5 } });
    expect(apart).toMatchObject({ inputTokens: 21, cachedInputTokens: 6, cacheWriteTokens: 5 });
  });
});

describe('the request to the provider', () => {
  const call = { callId: 'c', name: 'look', args: { a: 1 } };
  const promptFor = async (messages: Message[], fields = {}, settings = {}) => {
    const { model, asked } = provider([], fields);
    await play(
      aiSdkModel(model, settings),
      request({
        system: 'be brief',
        messages,
        tools: [{ name: 'look', description: 'd', parameters: { type: 'object' } }],
      }),
    );
    return asked[0];
  };

  it('has the form of the specification, with the settings', async () => {
    const asked = await promptFor(
      [
        userSays('a'),
        { role: 'assistant', content: [{ type: 'text', text: 'b' }], toolCalls: [call] },
        { role: 'tool', callId: 'c', content: [{ type: 'text', text: 'no' }], isError: true },
      ],
      {},
      { temperature: 0.5, maxOutputTokens: 9, providerOptions: { acme: { effort: 'low' } } },
    );
    expect(asked).toMatchObject({ temperature: 0.5, maxOutputTokens: 9, providerOptions: { acme: { effort: 'low' } } });
    expect(asked?.tools).toEqual([
      { type: 'function', name: 'look', description: 'd', inputSchema: { type: 'object', properties: {} } },
    ]);
    expect(asked?.prompt).toEqual([
      { role: 'system', content: 'be brief' },
      { role: 'user', content: [{ type: 'text', text: 'a' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'b' },
          { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { a: 1 } },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c', toolName: 'look', output: { type: 'error-text', value: 'no' } },
        ],
      },
    ]);
  });

  it('has a text in a failed result without one, which Anthropic refuses', async () => {
    const asked = await promptFor([
      userSays('a'),
      { role: 'assistant', content: [], toolCalls: [call] },
      { role: 'tool', callId: 'c', content: [], isError: true },
    ]);
    const output = { type: 'error-text', value: '[tool error]' };
    expect(asked?.prompt.at(-1)?.content).toMatchObject([{ toolCallId: 'c', output }]);
  });

  it('contains images as bytes, or as URLs that the provider fetches; images of a result follow all results of the round', async () => {
    const image = (data: string) => ({ type: 'image' as const, mediaType: 'image/png', data });
    const asked = await promptFor(
      [
        {
          role: 'user',
          content: [
            image('AAAA'),
            image('data:image/png;base64,BBBB'),
            image('https://ok.test/a.png'),
            image('https://no.test/a.png'),
            image('blob:x'),
          ],
        },
        { role: 'assistant', content: [], toolCalls: [call, { ...call, callId: 'd' }] },
        { role: 'tool', callId: 'c', content: [image('CCCC')], isError: false },
        { role: 'tool', callId: 'd', content: [{ type: 'text', text: 'two' }], isError: false },
      ],
      { supportedUrls: { 'image/*': [/^https:\/\/ok\.test\//] } },
    );
    const [, user, , results, images] = asked?.prompt ?? [];
    expect(user?.content).toMatchObject([
      { data: 'AAAA' },
      { data: 'BBBB' },
      { data: new URL('https://ok.test/a.png') },
      { type: 'text' },
      { type: 'text' },
    ]);
    expect(results?.content.map(({ toolCallId }) => toolCallId)).toEqual(['c', 'd']);
    expect(images).toMatchObject({ role: 'user', content: [{ type: 'text' }, { type: 'file', data: 'CCCC' }] });
  });

  it('contains the attachments of the provider, in order and unchanged, over the turns of an agent', async () => {
    const signed = { acme: { signature: 's'.repeat(40) } };
    const { model, asked } = provider([
      [
        { type: 'reasoning-start', id: '0' },
        { type: 'reasoning-delta', id: '0', delta: 'first' },
        { type: 'reasoning-delta', id: '0', delta: '', providerMetadata: signed },
        { type: 'reasoning-end', id: '0' },
        { type: 'reasoning-start', id: '1', providerMetadata: { acme: { redacted: 'r' } } },
        { type: 'reasoning-end', id: '1' },
        ...textParts('saying', '2'),
        { type: 'tool-call', toolCallId: 'c', toolName: 'gone', input: '{}', providerMetadata: { acme: { t: 1 } } },
        ...textParts('after', '3'),
        end('tool-calls'),
      ],
      [...textParts('done'), end()],
    ]);
    const conversation = await createAgent({ model: aiSdkModel(model) }).open('c');
    expect((await conversation.send('go').result).text).toBe('done');
    const back = asked[1]?.prompt.find(({ role }) => role === 'assistant');
    expect(back?.content).toEqual([
      { type: 'reasoning', text: 'first', providerOptions: signed },
      { type: 'reasoning', text: '', providerOptions: { acme: { redacted: 'r' } } },
      { type: 'text', text: 'saying' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'gone', input: {}, providerOptions: { acme: { t: 1 } } },
      { type: 'text', text: 'after' },
    ]);
    // Another provider receives the message's content, without data that it does not support.
    const other = provider([], { provider: 'other' });
    await play(aiSdkModel(other.model), request({ messages: conversation.messages() }));
    expect(other.asked[0]?.prompt.find(({ role }) => role === 'assistant')?.content).toEqual([
      { type: 'text', text: 'saying' },
      { type: 'text', text: 'after' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'gone', input: {} },
    ]);
  });

  it('blank texts are not sent back, and a blank message is an empty one, because Anthropic refuses blank texts', async () => {
    const signed = { anthropic: { signature: 's' } };
    const thinking = [
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r', providerMetadata: signed },
    ];
    const { model, asked } = provider([
      [...thinking, ...textParts(''), ...textParts('so', '2'), end()],
      [...textParts('ok'), end()],
    ]);
    const conversation = await createAgent({ model: aiSdkModel(model) }).open();
    await conversation.send('go').result;
    await conversation.send(' ').result;
    expect(asked[1]?.prompt.slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: signed },
          { type: 'text', text: 'so' },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: '[empty message]' }] },
    ]);
    const image = { type: 'image' as const, mediaType: 'image/png', data: 'AAAA' };
    await play(
      aiSdkModel(model),
      request({ messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }, image] }] }),
    );
    expect(asked.at(-1)?.prompt[0]?.content).toEqual([{ type: 'file', mediaType: 'image/png', data: 'AAAA' }]);
  });

  it('adjacent texts with attachments are sent separately, and attachments that do not match the message are ignored', async () => {
    const item = (id: string) => ({ acme: { itemId: id } });
    const reply = [
      { type: 'text-start', id: '0', providerMetadata: item('i0') },
      { type: 'text-delta', id: '0', delta: 'one ' },
      { type: 'text-start', id: '1', providerMetadata: item('i1') },
      { type: 'text-delta', id: '1', delta: 'two' },
      end(),
    ];
    const { model, asked } = provider([reply]);
    const conversation = await createAgent({ model: aiSdkModel(model) }).open('c');
    await conversation.send('go').result;
    await conversation.send('more').result;
    const back = asked[1]?.prompt.find(({ role }) => role === 'assistant')?.content;
    expect(back).toEqual([
      { type: 'text', text: 'one ', providerOptions: item('i0') },
      { type: 'text', text: 'two', providerOptions: item('i1') },
    ]);
    const changed = conversation
      .messages()
      .map((message) =>
        message.role === 'assistant' ? { ...message, content: [{ type: 'text' as const, text: 'edited' }] } : message,
      );
    const again = provider([]);
    await play(aiSdkModel(again.model), request({ messages: changed }));
    expect(again.asked[0]?.prompt.find(({ role }) => role === 'assistant')?.content).toEqual([
      { type: 'text', text: 'edited' },
    ]);
  });
});

describe('a failure of a provider', () => {
  const apiError = (fields: object) =>
    Object.assign(new Error('refused'), { name: 'AI_APICallError', url: 'https://api.acme.test/v1?key=k', ...fields });
  const failing = (error: unknown): Model =>
    aiSdkModel(provider([], { doStream: async () => Promise.reject(error) }).model);

  it.each([
    [401, {}, 'auth', false],
    [429, { 'retry-after': '7' }, 'rate-limit', true],
    [404, {}, 'not-found', false],
    [400, {}, 'bad-request', false],
    [529, {}, 'server', true],
  ] as const)('with status %i has its own code', async (statusCode, responseHeaders, code, retryable) => {
    const { error } = await play(
      failing(apiError({ statusCode, responseHeaders, responseBody: '{"error":{"message":"because"}}' })),
    );
    expect(error).toMatchObject({ code, retryable, status: statusCode });
    expect(error?.message).toContain('because');
    if (statusCode === 429) expect(error?.retryAfterMs).toBe(7000);
  });

  it('is recognized by its name, and any other error is a network error', async () => {
    const named = (name: string) => Object.assign(new Error('x'), { name });
    const codeOf = async (error: unknown) => (await play(failing(error))).error?.code;
    expect(await codeOf(apiError({}))).toBe('network');
    expect(await codeOf(apiError({ statusCode: 200 }))).toBe('bad-frame');
    expect(await codeOf(named('AI_LoadAPIKeyError'))).toBe('auth');
    expect(await codeOf(named('AI_UnsupportedFunctionalityError'))).toBe('bad-request');
    expect(await codeOf(new TypeError('terminated'))).toBe('network');
    for (const odd of [undefined, null, 7, 'text', {}]) expect(await codeOf(odd)).toBe('network');
  });

  it('in the stream fails the attempt after the parts before it', async () => {
    const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } };
    const { parts, error } = await play(aiSdkModel(provider([[...textParts('a'), overloaded, end()]]).model));
    expect(parts).toEqual([{ type: 'text-delta', text: 'a' }]);
    expect(error).toMatchObject({ code: 'provider', retryable: true });
    const refused = { type: 'error', error: { type: 'authentication_error', message: 'no' } };
    expect((await play(aiSdkModel(provider([[refused]]).model))).error).toMatchObject({
      code: 'auth',
      retryable: false,
    });
  });

  it('quotes no key from the headers of the provider, and printing the model shows none', async () => {
    const key = 'sk-acme-0123456789';
    const error = apiError({ statusCode: 401, responseBody: `bad key ${key}`, requestBodyValues: { key } });
    const config = { headers: () => ({ authorization: `Bearer ${key}` }) };
    const model = aiSdkModel(provider([], { config, doStream: () => Promise.reject(error) }).model, {
      secrets: ['another-secret'],
    });
    const failed = await play(model);
    expect(inspect(failed.error, { depth: 9 })).not.toContain(key);
    expect(model.secrets).toEqual(['another-secret', key]);
    for (const shown of [inspect(model, { depth: 9 }), JSON.stringify(model)]) {
      expect(shown).not.toMatch(/sk-acme|another-secret|acme\.chat/);
    }
  });
});

describe('an abort', () => {
  const REASON = new Error('the user pressed stop');

  it('before the call sends nothing, and ends a call at once even if the provider ignores it', async () => {
    const { model, asked } = provider([]);
    expect((await play(aiSdkModel(model), request(), AbortSignal.abort(REASON))).error).toBe(REASON);
    expect(asked).toEqual([]);
    const controller = new AbortController();
    const deaf = aiSdkModel(provider([], { doStream: () => new Promise(() => {}) }).model);
    const call = play(deaf, request(), controller.signal);
    await Promise.resolve();
    controller.abort(REASON);
    expect((await call).error).toBe(REASON);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('while the stream is silent cancels it, and reaches the provider', async () => {
    const controller = new AbortController();
    let cancelled = 0;
    let providerSignal: AbortSignal | undefined;
    const doStream = async ({ abortSignal }: { abortSignal: AbortSignal }) => {
      providerSignal = abortSignal;
      const stream = new ReadableStream({
        start: (to) => to.enqueue({ type: 'text-delta', id: '1', delta: 'a' }),
        cancel: () => {
          cancelled += 1;
        },
      });
      return { stream };
    };
    const all = aiSdkModel(provider([], { doStream }).model).stream(request(), {
      signal: controller.signal,
      attempt: 1,
    });
    const iterator = all[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({ type: 'text-delta', text: 'a' });
    const next = iterator.next();
    controller.abort(REASON);
    await expect(next).rejects.toBe(REASON);
    expect([cancelled, providerSignal?.aborted]).toEqual([1, true]);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('after the finish changes nothing', async () => {
    const stream = streamOf([...textParts('a'), end()], false);
    const { parts, error } = await play(aiSdkModel(provider([], { doStream: async () => ({ stream }) }).model));
    expect([parts.length, error]).toEqual([2, undefined]);
  });
});

describe('a provider of specification version 4', () => {
  const version = { specificationVersion: 'v4' as const };

  it('has its own content and files of its reasoning sent back in their places', async () => {
    const custom = { type: 'custom', kind: 'acme.canvas', providerMetadata: { acme: { id: 'cv_1' } } };
    const file = {
      type: 'reasoning-file',
      mediaType: 'image/png',
      data: { type: 'data', data: new Uint8Array([1, 2]) },
    };
    const source = provider([[custom, file, ...textParts('so'), end()], [end()]], version);
    const agent = createAgent({ model: aiSdkModel(source.model) });
    const conversation = await agent.open();
    await conversation.send('draw').result;
    await conversation.send('again').result;
    expect(source.asked[1]?.prompt[1]?.content).toEqual([
      { type: 'custom', kind: 'acme.canvas', providerOptions: { acme: { id: 'cv_1' } } },
      { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'AQI=' } },
      { type: 'text', text: 'so' },
    ]);
  });

  it('has not ended its reply where the stream was interrupted', async () => {
    const { model } = provider([[...textParts('half'), end('interrupted')]], version);
    expect((await play(aiSdkModel(model))).error).toMatchObject({ code: 'stream-incomplete' });
  });
});

describe('invalid arguments', () => {
  it.each([
    ['nothing', undefined],
    ['a name', 'gpt'],
    ['an object without doStream', {}],
    ['another version', { ...provider([]).model, specificationVersion: 'v1' }],
    ['a model without an id', { ...provider([]).model, modelId: '' }],
  ])('%s is no language model', (_, value) => {
    expect(() => aiSdkModel(value as AiSdkLanguageModel)).toThrow(expect.objectContaining({ code: 'configuration' }));
  });

  it('a value that is no language model does not compile', () => {
    // @ts-expect-error a provider is not a model
    const ofProvider = () => aiSdkModel({ languageModel: () => provider([]).model });
    expect(ofProvider).toThrow('doStream');
  });

  it.each([
    { topp: 1 },
    { temperature: -1 },
    { maxOutputTokens: 1.5 },
    { contextWindow: 'big' },
    { providerOptions: { acme: 1 } },
    { secrets: 'x' },
    { imageLimits: 7 },
  ])('the settings %j are refused by name', (settings) => {
    expect(() => aiSdkModel(provider([]).model, settings as object)).toThrow(
      new RegExp(Object.keys(settings)[0] ?? ''),
    );
  });
});
