/** Tests the requests of a model with the Messages API, and its options. */
import { inspect } from 'node:util';
import { afterEach, describe, expect, expectTypeOf, it, vi } from 'vitest';
import { ConfigurationError, type Json, type Message, type Model } from '../../src/index.ts';
import { type AnthropicOptions, anthropic } from '../../src/models/anthropic/anthropic.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { bodyOf, modelOf, plainReply } from './anthropicServer.ts';
import { KEY, play, request, userSays } from './scriptedFetch.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];
const marked = { cache_control: { type: 'ephemeral' } };
const png = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
const wirePng = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
const says = (text: string) => ({ type: 'text', text }) as const;
const history: Message[] = [
  { role: 'user', content: [says('see'), png] },
  {
    role: 'assistant',
    content: [says('I look')],
    toolCalls: [
      { callId: 'toolu_a', name: 'look', args: { at: 'x' } },
      { callId: 'functions.look:0', name: 'look at', args: {} },
    ],
  },
  { role: 'tool', callId: 'toolu_a', content: [says('a cat'), png], isError: false },
  { role: 'tool', callId: 'functions.look:0', content: [says('gone')], isError: true },
  userSays('and?'),
];

describe('the request of a Messages model', () => {
  it('is the whole history: results of a reply in one message after it, and marks for the cache', async () => {
    const { model, sent } = modelOf([plainReply]);
    await play(model, request({ system: 'Be brief.', messages: history, tools, maxOutputTokens: 100 }));
    expect(sent[0]?.url).toBe('http://model.test/v1/messages');
    expect(sent[0]?.headers.get('authorization')).toBe(`Bearer ${KEY}`);
    expect(sent[0]?.headers.get('anthropic-version')).toMatch(/^\d{4}-/);
    expect(sent[0]?.headers.get('content-type')).toBe('application/json');
    expect(sent[0]?.body).toEqual({
      model: 'claude-sonnet-4-6',
      max_tokens: 100,
      system: [{ ...says('Be brief.'), ...marked }],
      messages: [
        { role: 'user', content: [says('see'), { ...wirePng, ...marked }] },
        {
          role: 'assistant',
          content: [
            says('I look'),
            { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 'x' } },
            { type: 'tool_use', id: 'functions_look_0', name: 'look_at', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_a', content: [says('a cat'), wirePng] },
            { type: 'tool_result', tool_use_id: 'functions_look_0', content: [says('gone')], is_error: true },
            { ...says('and?'), ...marked },
          ],
        },
      ],
      tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} }, ...marked }],
      stream: true,
    });
  });

  it('marks the last two messages of the user only, and nothing where the cache is off', async () => {
    const reply: Message = { role: 'assistant', content: [says('yes')], toolCalls: [] };
    const messages = [userSays('a'), reply, userSays('b'), reply, userSays('c')];
    const body = await bodyOf({ system: 's', messages, tools });
    const sent = body.messages as { role: string; content: object[] }[];
    expect(sent.map(({ content }) => 'cache_control' in (content[0] ?? {}))).toEqual([false, false, true, false, true]);
    const off = await bodyOf({ system: 's', messages, tools }, { cache: false });
    expect(off.system).toBe('s');
    expect(JSON.stringify(off)).not.toContain('cache_control');
  });

  it('has no blank text, no empty message, and no two messages of one role in a row', async () => {
    const messages: Message[] = [
      userSays('a'),
      { role: 'assistant', content: [says(' ')], toolCalls: [] },
      userSays(''),
      userSays('b'),
      { role: 'assistant', content: [says('c')], toolCalls: [] },
      { role: 'assistant', content: [says('d')], toolCalls: [{ callId: 't', name: 'look', args: {} }] },
      { role: 'tool', callId: 't', content: [says('')], isError: false },
    ];
    expect((await bodyOf({ messages }, { cache: false })).messages).toEqual([
      { role: 'user', content: [says('a'), says('b')] },
      { role: 'assistant', content: [says('c'), says('d'), { type: 'tool_use', id: 't', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
    ]);
  });

  it('begins and ends with a message of the user, also where that has no visible text', async () => {
    const greeting: Message = { role: 'assistant', content: [says('Welcome.')], toolCalls: [] };
    const empty = { role: 'user', content: [says('[empty message]')] };
    const reply = { role: 'assistant', content: [says('Welcome.')] };
    const sent = async (...messages: Message[]) => (await bodyOf({ system: ' ', messages }, { cache: false })).messages;
    expect(await sent(greeting, userSays('hi'))).toEqual([empty, reply, { role: 'user', content: [says('hi')] }]);
    expect(await sent(userSays('hi'), greeting, userSays(' \n'))).toEqual([
      { role: 'user', content: [says('hi')] },
      ...[reply, empty],
    ]);
    expect(await sent(userSays(' '))).toEqual([empty]);
    expect(await bodyOf({ system: ' ' })).not.toHaveProperty('system');
  });

  it.each<[string, Message['content'], object]>([
    ['with a text is marked', [says('gone')], { content: [says('gone')], is_error: true }],
    [
      'with an image begins with a mark, since the API takes only texts in it',
      [says('gone'), png],
      { content: [says('[tool error]'), says('gone'), wirePng] },
    ],
    ['without a visible text has one', [says(' ')], { content: [says('[tool error]')], is_error: true }],
  ])('a failed result %s', async (_, content, fields) => {
    const messages: Message[] = [
      userSays('a'),
      { role: 'assistant', content: [], toolCalls: [{ callId: 't', name: 'look', args: {} }] },
      { role: 'tool', callId: 't', content, isError: true },
    ];
    const sent = (await bodyOf({ messages }, { cache: false })).messages as object[];
    expect(sent.at(-1)).toEqual({ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', ...fields }] });
  });

  it.each([
    ['https://cats.test/1.png', { type: 'image', source: { type: 'url', url: 'https://cats.test/1.png' } }],
    [
      'data:image/gif;base64,BBBB',
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: 'BBBB' } },
    ],
    ['blob:sha256-1', says('[image image/png: not available]')],
  ])('has the image %s as the API takes it', async (data, block) => {
    const messages: Message[] = [{ role: 'user', content: [{ ...png, data }] }];
    expect((await bodyOf({ messages }, { cache: false })).messages).toEqual([{ role: 'user', content: [block] }]);
  });

  it.each<[NonNullable<ModelRequest['toolChoice']>, object]>([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'any' }],
    [{ tool: 'look' }, { type: 'tool', name: 'look' }],
  ])('has the choice %j of the request in place of the option', async (toolChoice, wire) => {
    const options = { toolChoice: { type: 'auto', disable_parallel_tool_use: true } };
    expect((await bodyOf({ tools, toolChoice }, options)).tool_choice).toEqual(wire);
    expect((await bodyOf({ tools }, options)).tool_choice).toEqual(options.toolChoice);
    expect(await bodyOf({ toolChoice }, options)).not.toHaveProperty('tool_choice');
  });

  it('has the settings of the request in place of the options', async () => {
    const options = { temperature: 0.5, topP: 0.9, maxOutputTokens: 2000 };
    expect(await bodyOf({}, options)).toMatchObject({ temperature: 0.5, top_p: 0.9, max_tokens: 2000 });
    const settings = { temperature: 0, topP: 0.1, maxOutputTokens: 9 };
    expect(await bodyOf(settings, options)).toMatchObject({ temperature: 0, top_p: 0.1, max_tokens: 9 });
  });

  it.each([
    ['claude-3-haiku-20240307', 4096],
    ['claude-3-5-sonnet-latest', 8192],
    ['claude-opus-4-1-20250805', 32_000],
    ['claude-sonnet-4-20250514', 32_000],
    ['claude-sonnet-4-5', 64_000],
    ['claude-opus-5-5', 64_000],
    ['another', 8192],
  ])('has a limit that fits %s where none is set', async (name, limit) => {
    expect((await bodyOf({}, { name })).max_tokens).toBe(limit);
  });

  it('with temperature, top_p or top_k asks for the version of the API that accepts them, unless a header names one', async () => {
    const versionOf = async (options: AnthropicOptions, fields: Partial<ModelRequest> = {}) => {
      const { model, sent } = modelOf([plainReply], options);
      await play(model, request(fields));
      return sent[0]?.headers.get('anthropic-version');
    };
    const old = '2023-06-01';
    const latest = await versionOf({});
    expect(latest).not.toBe(old);
    expect(await versionOf({ temperature: 0 })).toBe(old);
    expect(await versionOf({ extraBody: { top_k: 3 } })).toBe(old);
    expect(await versionOf({}, { topP: 1 })).toBe(old);
    expect(await versionOf({ temperature: 0, thinking: 'adaptive' })).toBe(latest);
    const named = { headers: { 'Anthropic-Version': '2099-01-01' } };
    expect(await versionOf({ ...named, temperature: 0 })).toBe('2099-01-01');
    const { model, sent } = modelOf([plainReply]);
    for (const topP of [1, undefined]) await play(model, request(topP === undefined ? {} : { topP }));
    expect(sent.map(({ headers }) => headers.get('anthropic-version'))).toEqual([old, latest]);
  });

  it('keeps the schema of a final answer, and other fields of the body', async () => {
    const output = { name: 'answer', schema: { type: 'object' } };
    const extraBody = {
      ...{ service_tier: 'auto', stream: false, output_config: { effort: 'low' } },
      tools: [{ type: 'web_search_20260209', name: 'web_search' }],
    };
    expect(await bodyOf({ output, tools }, { extraBody })).toMatchObject({
      ...{ service_tier: 'auto', stream: true },
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
      tools: [{ name: 'look' }, { type: 'web_search_20260209', name: 'web_search', ...marked }],
    });
  });

  it('is a bad request where it is no JSON', async () => {
    const parameters: { [field: string]: Json } = { type: 'object' };
    parameters.self = parameters;
    const cyclic = [{ name: 'look', description: '', parameters }];
    const { error } = await play(modelOf([plainReply]).model, request({ tools: cyclic }));
    expect(error).toMatchObject({ code: 'bad-request', retryable: false });
  });
});

describe('thinking', () => {
  const sampling = { temperature: 0.5, topP: 0.9 };

  it('has a budget, and leaves sampling out', async () => {
    const body = await bodyOf({ ...sampling, reasoningEffort: 'high' }, { thinking: { budgetTokens: 2048 } });
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 2048 });
    for (const field of ['temperature', 'top_p', 'output_config']) expect(body).not.toHaveProperty(field);
  });

  it('is adaptive with the effort of the request', async () => {
    const extraBody = { thinking: { display: 'summarized' } };
    const body = await bodyOf({ ...sampling, reasoningEffort: 'high' }, { thinking: 'adaptive', extraBody });
    expect(body.thinking).toEqual({ type: 'adaptive', display: 'summarized' });
    expect(body.output_config).toEqual({ effort: 'high' });
    expect(body).not.toHaveProperty('temperature');
  });

  it('is switched off with false, and not mentioned without the option', async () => {
    expect(await bodyOf(sampling, { thinking: false })).toMatchObject({ thinking: { type: 'disabled' }, top_p: 0.9 });
    const body = await bodyOf({ reasoningEffort: 'high' });
    expect(body).not.toHaveProperty('thinking');
    expect(body).not.toHaveProperty('output_config');
  });

  it('of a model that binds it is dropped where the conversation before it has changed, in place of an error', async () => {
    const thinkingOf = async (name: string, options: AnthropicOptions = {}) => {
      const { model, sent } = modelOf([plainReply], { name, ...options });
      await play(model, request());
      return [sent[0]?.body.thinking, sent[0]?.headers.get('anthropic-beta')];
    };
    const beta = 'thinking-binding-controls-2026-08-01';
    const dropped = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
    for (const name of [
      'claude-opus-5-5',
      'claude-fable-5.1',
      'eu.anthropic/claude-haiku-5-5-20261001',
      'claude-opus-6',
    ])
      expect([name, await thinkingOf(name)]).toEqual([name, [dropped, beta]]);
    for (const name of [
      'claude-opus-5',
      'claude-opus-5-20260901',
      'claude-sonnet-4-6',
      'claude-3-5-haiku-latest',
      'm-5-5',
    ])
      expect([name, await thinkingOf(name)]).toEqual([name, [undefined, null]]);
    const name = 'claude-opus-5-5';
    expect(await thinkingOf(name, { thinking: 'adaptive' })).toEqual([dropped, beta]);
    expect(await thinkingOf(name, { thinking: false })).toEqual([{ type: 'disabled' }, null]);
    const extraBody = { thinking: { display: 'summarized', block_binding: { prefix_mismatch_behavior: 'error' } } };
    expect(await thinkingOf(name, { extraBody })).toEqual([{ type: 'adaptive', ...extraBody.thinking }, beta]);
    const disabled = { thinking: { type: 'disabled' } };
    expect(await thinkingOf(name, { extraBody: disabled })).toEqual([disabled.thinking, null]);
    const headers = { 'Anthropic-Beta': 'mcp-client-2025-04-04' };
    expect(await thinkingOf(name, { headers })).toEqual([dropped, `mcp-client-2025-04-04, ${beta}`]);
    expect(await thinkingOf(name, { headers: { 'anthropic-beta': beta } })).toEqual([dropped, beta]);
  });

  it('is left out of a request that forces a call, or whose limit does not exceed the budget', async () => {
    const options = { thinking: { budgetTokens: 2048 } } as const;
    const forced = await bodyOf({ ...sampling, tools, toolChoice: 'required' }, options);
    const short = await bodyOf({ ...sampling, maxOutputTokens: 2048 }, options);
    for (const body of [forced, short]) {
      expect(body).not.toHaveProperty('thinking');
      expect(body.temperature).toBe(0.5);
    }
  });
});

describe('a Messages model', () => {
  it.each([
    [{ cach: true }, 'cach'],
    [{ thinking: { budgetTokens: 1000 } }, 'thinking'],
    [{ thinking: { budgetTokens: 2048, more: 1 } }, 'thinking'],
    [{ thinking: true }, 'thinking'],
    [{ toolChoice: 'auto' }, 'toolChoice'],
    [{ thinking: { budgetTokens: 2048 }, maxOutputTokens: 2048 }, 'budgetTokens'],
    [{ baseURL: 'localhost:8080' }, 'ANTHROPIC_BASE_URL'],
    [{ headers: { 'x-a': 'ü€' } }, 'header'],
  ])('is refused by name for %j', (options, word) => {
    const make = () => anthropic('claude-sonnet-4-6', { apiKey: KEY, ...options } as AnthropicOptions);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(word);
  });

  it('is typed: options that do not exist do not compile', () => {
    expectTypeOf(anthropic).returns.toEqualTypeOf<Model>();
    expectTypeOf<'adaptive'>().toExtend<AnthropicOptions['thinking']>();
    expectTypeOf<{ budgetTokens: number }>().toExtend<AnthropicOptions['thinking']>();
    expectTypeOf<'on'>().not.toExtend<AnthropicOptions['thinking']>();
    expectTypeOf<AnthropicOptions>().not.toHaveProperty('reasoningEffort');
  });

  it('needs a name and a key', () => {
    vi.stubEnv('ANTHROPIC_API_KEY', ' ');
    expect(() => anthropic(' ', { apiKey: KEY })).toThrow(ConfigurationError);
    expect(() => anthropic('claude-sonnet-4-6')).toThrow('ANTHROPIC_API_KEY');
  });

  it('reads key and address from the environment, and the key again after a 401', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', 'key-from-the-environment');
    vi.stubEnv('ANTHROPIC_BASE_URL', 'https://llm.test/');
    const sent: [string, string | null][] = [];
    const fetch: typeof globalThis.fetch = async (url, init) => {
      sent.push([String(url), new Headers(init?.headers).get('authorization')]);
      return new Response('{}', { status: 401 });
    };
    const model = anthropic('claude-sonnet-4-6', { fetch });
    await play(model);
    vi.stubEnv('ANTHROPIC_API_KEY', 'the-second-key');
    await play(model);
    const url = 'https://llm.test/v1/messages';
    expect(sent).toEqual([
      [url, 'Bearer key-from-the-environment'],
      [url, 'Bearer the-second-key'],
    ]);
    expect(model.secrets).toEqual(['key-from-the-environment', 'the-second-key']);
  });

  it('sends once, with the headers of the options, and hides its secrets', async () => {
    const headers = { 'anthropic-beta': 'some-beta', 'x-proxy-token': 'proxy-secret' };
    const overloaded = new Response('{}', { status: 529 });
    const { model, sent } = modelOf([overloaded], { headers, contextWindow: 200_000 });
    await play(model);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.headers.get('anthropic-beta')).toBe('some-beta');
    expect(model.secrets).toEqual([KEY, 'proxy-secret']);
    for (const printed of [inspect(model), JSON.stringify(model)]) {
      expect(printed).toContain('200000');
      expect(printed).not.toMatch(/proxy-secret|sk-test/);
    }
  });

  it('names the missing package when it is called', async () => {
    vi.resetModules();
    vi.doMock('@anthropic-ai/sdk', () => {
      throw new Error("Cannot find package '@anthropic-ai/sdk'");
    });
    const module = await import('../../src/models/anthropic/anthropic.ts');
    const { error } = await play(module.anthropic('claude-sonnet-4-6', { apiKey: KEY }));
    vi.doUnmock('@anthropic-ai/sdk');
    expect(error).toMatchObject({ code: 'configuration', retryable: false });
    expect(error?.message).toContain('npm install @anthropic-ai/sdk');
  });
});
