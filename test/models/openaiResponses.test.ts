/** Tests the Responses API of OpenAI: the requests, the results of events, and the data in the next request. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, createAgent, defineTool, type Message, memoryStore } from '../../src/index.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { type OpenAIResponsesOptions, openaiResponses } from '../../src/models/openai/responses.ts';
import {
  callsIn,
  codesIn,
  finishIn,
  KEY,
  type Played,
  play,
  request,
  served,
  textIn,
  userSays,
} from './scriptedFetch.ts';

interface Event {
  type: string;
  [field: string]: unknown;
}
const sse = (...events: readonly Event[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

const usage = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 8 },
  output_tokens: 10,
  output_tokens_details: { reasoning_tokens: 6 },
  total_tokens: 30,
};
const completed = (output: readonly object[] = []): Event => ({
  type: 'response.completed',
  response: { object: 'response', status: 'completed', output, usage },
});
const done = (output_index: number, item: object): Event => ({ type: 'response.output_item.done', output_index, item });
const added = (output_index: number, item: object): Event => ({
  type: 'response.output_item.added',
  output_index,
  item,
});
const text = (output_index: number, delta: string): Event => ({
  type: 'response.output_text.delta',
  output_index,
  delta,
});
const args = (output_index: number, delta: string): Event => ({
  type: 'response.function_call_arguments.delta',
  output_index,
  delta,
});

const message = (words: string, fields: object = {}) => ({
  ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
  ...fields,
  content: [{ type: 'output_text', text: words, annotations: [] }],
});
const reasoning = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [{ type: 'summary_text', text: 'I look.' }],
  encrypted_content: 'gAAAA-sealed',
};
const functionCall = { type: 'function_call', id: 'fc_1', call_id: 'call_a', name: 'look', arguments: '{"at":"x"}' };

/** Returns the server's requests, and the model with its scripted answers. */
function modelOf(replies: readonly (string | Response)[], options: OpenAIResponsesOptions & { name?: string } = {}) {
  const sent: { url: string; body: Record<string, unknown> }[] = [];
  const { name = 'gpt-5', ...rest } = options;
  const model = openaiResponses(name, {
    apiKey: KEY,
    baseURL: 'http://model.test/v1',
    fetch: async (url, init) => {
      const reply = replies[Math.min(sent.length, replies.length - 1)] ?? '';
      sent.push({ url: String(url), body: JSON.parse(String(init?.body)) });
      return typeof reply === 'string' ? served([reply]) : reply;
    },
    ...rest,
  });
  return { model, sent };
}
const playEvents = (...events: readonly Event[]): Promise<Played> => play(modelOf([sse(...events)]).model);
async function bodyOf(fields: Partial<ModelRequest>, options: OpenAIResponsesOptions & { name?: string } = {}) {
  const { model, sent } = modelOf([sse(completed())], options);
  await play(model, request(fields));
  return sent[0]?.body ?? {};
}

describe('a reply of the Responses API', () => {
  it('is its text as it streams, with the counts of tokens', async () => {
    const { parts, error } = await playEvents(
      { type: 'response.created', response: {} },
      added(0, { type: 'message', id: 'msg_1', content: [] }),
      text(0, 'hel'),
      text(0, 'lo'),
      done(0, message('hello')),
      completed([message('hello')]),
    );
    expect(error).toBeUndefined();
    expect(parts.filter(({ type }) => type === 'text-delta')).toHaveLength(2);
    expect(textIn(parts)).toBe('hello');
    expect(finishIn(parts)).toEqual({
      type: 'finish',
      reason: 'stop',
      usage: { inputTokens: 20, outputTokens: 10, cachedInputTokens: 8, cacheWriteTokens: 0, reasoningTokens: 6 },
    });
  });

  it('has its calls under the ids that results are sent back with, and streams their arguments', async () => {
    const second = { ...functionCall, id: 'fc_2', call_id: 'call_b', arguments: '{}' };
    const { parts } = await playEvents(
      added(0, { ...functionCall, arguments: '' }),
      args(0, '{"at":'),
      added(1, { ...second, arguments: '' }),
      args(0, '"x"}'),
      done(0, functionCall),
      done(1, second),
      completed([functionCall, second]),
    );
    expect(callsIn(parts)).toEqual([
      { id: 'call_a', name: 'look', args: '{"at":"x"}' },
      { id: 'call_b', name: 'look', args: '{}' },
    ]);
    const deltas = parts.filter((part) => part.type === 'tool-call-delta');
    expect(deltas.map(({ index, name, text }) => [index, name, text])).toEqual([
      [0, 'look', ''],
      [0, undefined, '{"at":'],
      [1, 'look', ''],
      [0, undefined, '"x"}'],
      [1, undefined, '{}'],
    ]);
    expect(finishIn(parts)).toMatchObject({ reason: 'tool-calls' });
  });

  it('shows the summary of its reasoning, each part as a paragraph', async () => {
    const delta = (words: string): Event => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: 0,
      delta: words,
    });
    const part: Event = { type: 'response.reasoning_summary_part.added', output_index: 0 };
    const { parts } = await playEvents(
      part,
      delta('I '),
      delta('look.'),
      part,
      delta('I see.'),
      done(0, reasoning),
      completed(),
    );
    const shown = parts.map((each) => (each.type === 'reasoning-delta' ? each.text : '')).join('');
    expect(shown).toBe('I look.\n\nI see.');
  });

  it('is the same from a server that sends whole items, or only the end, or no stream at all', async () => {
    const output = [reasoning, message('so'), functionCall];
    const whole = new Response(JSON.stringify({ object: 'response', status: 'completed', output, usage }), {
      headers: { 'content-type': 'application/json' },
    });
    const streamed = await playEvents(
      { type: 'response.reasoning_summary_text.delta', output_index: 0, delta: 'I look.' },
      done(0, reasoning),
      text(1, 'so'),
      done(1, message('so')),
      added(2, { ...functionCall, arguments: '' }),
      args(2, functionCall.arguments),
      done(2, functionCall),
      completed(output),
    );
    const items = await playEvents(done(0, reasoning), done(1, message('so')), done(2, functionCall), completed());
    const atEnd = await playEvents(completed(output));
    const unstreamed = await play(modelOf([whole]).model);
    const essence = ({ parts, error }: Played) => [error, textIn(parts), callsIn(parts), finishIn(parts)];
    for (const played of [items, atEnd, unstreamed]) expect(essence(played)).toEqual(essence(streamed));
    expect(textIn(streamed.parts)).toBe('so');
  });

  it.each([
    ['max_output_tokens', 'length', []],
    ['content_filter', 'content-filter', []],
    ['something_new', 'length', ['finish_reason_unknown']],
  ])('that is incomplete for %s ends with %s', async (reason, finish, codes) => {
    const end = { status: 'incomplete', incomplete_details: { reason }, usage };
    const { parts } = await playEvents(text(0, 'so fa'), { type: 'response.incomplete', response: end });
    expect(finishIn(parts)).toMatchObject({ reason: finish, usage: { outputTokens: 10 } });
    expect(codesIn(parts)).toEqual(codes);
    const withCall = await playEvents(done(0, functionCall), { type: 'response.incomplete', response: end });
    expect(finishIn(withCall.parts)).toMatchObject({ reason: finish });
  });

  it.each(['response.failed', 'response.cancelled', 'response.completed'])(
    'that has failed or was cancelled is an error, and no whole reply, if its last event %s or its status is such',
    async (last) => {
      for (const status of ['failed', 'cancelled', undefined]) {
        const isWhole = last === 'response.completed' && status === undefined;
        const response = { ...(status !== undefined && { status }), usage };
        // Without a stream only the status shows that.
        const whole = JSON.stringify({ id: 'r', object: 'response', ...response, output: [message('half')] });
        const headers = { 'content-type': 'application/json' };
        const unstreamed = await play(modelOf([new Response(whole, { headers })]).model);
        const type = last === 'response.completed' && status !== undefined ? `response.${status}` : last;
        const streamed = await playEvents(text(0, 'half'), { type, response });
        expect([last, status, finishIn(streamed.parts)?.reason]).toEqual([last, status, isWhole ? 'stop' : undefined]);
        expect([status, streamed.error === undefined]).toEqual([status, isWhole]);
        expect([status, finishIn(unstreamed.parts)?.reason]).toEqual([status, status ? undefined : 'stop']);
      }
    },
  );

  it('has what only the whole item contains, also after an empty delta', async () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look' };
    const { parts } = await playEvents(
      { type: 'response.reasoning_summary_text.delta', output_index: 0, delta: '' },
      done(0, { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] }),
      text(1, ''),
      done(1, message('hi')),
      added(2, { ...call, arguments: '' }),
      args(2, ''),
      done(2, { ...call, arguments: '{"at":"x"}' }),
      completed(),
    );
    expect(parts.filter(({ type }) => type === 'reasoning-delta')).toEqual([{ type: 'reasoning-delta', text: 'hm' }]);
    expect(textIn(parts)).toBe('hi');
    expect(callsIn(parts)).toMatchObject([{ name: 'look', args: '{"at":"x"}' }]);
  });

  it('marks a refusal', async () => {
    const { parts } = await playEvents(
      { type: 'response.refusal.delta', output_index: 0, delta: 'No.' },
      done(0, { ...message(''), content: [{ type: 'refusal', refusal: 'No.' }] }),
      completed(),
    );
    expect(parts.filter(({ type }) => type === 'refusal')).toHaveLength(1);
    expect(textIn(parts)).toBe('No.');
  });

  it.each([
    [
      'a failure',
      sse({ type: 'response.failed', response: { error: { code: 'rate_limit_exceeded', message: 'slow' } } }),
      'rate-limit',
    ],
    ['an error event', sse({ type: 'error', code: 'invalid_request_error', message: 'bad' }), 'bad-request'],
    [
      'an error event of the older form',
      sse({ type: 'error', error: { type: 'server_error', message: 'oh' } }),
      'provider',
    ],
    ['an end without the last event', sse(text(0, 'half')), 'stream-incomplete'],
    ['no event', '', 'stream-incomplete'],
    ['what is no JSON', 'data: {"type\n\n', 'bad-frame'],
  ])('that is %s is a failed attempt with the code of its cause', async (_, reply, code) => {
    const { error } = await play(modelOf([reply]).model);
    expect(error).toMatchObject({ name: 'ModelError', code });
  });
});

describe('the request of a Responses model', () => {
  const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];

  it('is the whole history, and asks the provider to store nothing', async () => {
    const { model, sent } = modelOf([sse(completed())]);
    const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
    const messages: Message[] = [
      { role: 'user', content: [{ type: 'text', text: 'see' }, image] },
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'I look' }],
        toolCalls: [
          { callId: 'call_a', name: 'look', args: { at: 'x' } },
          { callId: 'call_b', name: 'look', args: {} },
        ],
      },
      { role: 'tool', callId: 'call_a', content: [{ type: 'text', text: 'a cat' }, image], isError: false },
      { role: 'tool', callId: 'call_b', content: [{ type: 'text', text: 'gone' }], isError: true },
    ];
    await play(model, request({ system: 'Be brief.', messages, tools, maxOutputTokens: 100 }));
    expect(sent[0]?.url).toBe('http://model.test/v1/responses');
    const picture = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'auto' };
    expect(sent[0]?.body).toEqual({
      model: 'gpt-5',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'see' }, picture] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look' }] },
        { type: 'function_call', call_id: 'call_a', name: 'look', arguments: '{"at":"x"}' },
        { type: 'function_call', call_id: 'call_b', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_a', output: [{ type: 'input_text', text: 'a cat' }, picture] },
        { type: 'function_call_output', call_id: 'call_b', output: '[tool error]\ngone' },
      ],
      tools: [
        {
          ...{ type: 'function', name: 'look', description: 'Looks.', strict: false },
          parameters: { type: 'object', properties: {} },
        },
      ],
      max_output_tokens: 100,
      include: ['reasoning.encrypted_content'],
      store: false,
      stream: true,
    });
  });

  it('holds every option under its name in the API', async () => {
    const options: OpenAIResponsesOptions = {
      ...{ temperature: 0.5, topP: 0.9, reasoningEffort: 'high', reasoningSummary: 'auto', toolChoice: 'required' },
      ...{
        builtInTools: [{ type: 'web_search' }],
        parallelToolCalls: false,
        promptCacheKey: 'user-7',
        maxOutputTokens: 9,
      },
      extraBody: { service_tier: 'flex', include: ['web_search_call.action.sources'], store: true },
    };
    expect(await bodyOf({ tools }, options)).toMatchObject({
      ...{ temperature: 0.5, top_p: 0.9, reasoning: { effort: 'high', summary: 'auto' }, tool_choice: 'required' },
      ...{
        parallel_tool_calls: false,
        prompt_cache_key: 'user-7',
        max_output_tokens: 9,
        service_tier: 'flex',
        store: false,
      },
      include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
    });
    expect((await bodyOf({ tools }, options)).tools).toEqual([
      expect.objectContaining({ name: 'look' }),
      { type: 'web_search' },
    ]);
    const withoutTools = await bodyOf({}, { toolChoice: 'required', parallelToolCalls: true });
    expect(withoutTools).not.toHaveProperty('tool_choice');
    expect(withoutTools).not.toHaveProperty('parallel_tool_calls');
  });

  it.each([
    ['gpt-5.2', true],
    ['o4-mini', true],
    ['gpt-oss-120b', true],
    ['gpt-4o-mini', false],
    ['ft:gpt-4.1:me', false],
    ['gpt-5-chat-latest', false],
  ])('asks %s for encrypted reasoning: %s', async (name, asks) => {
    expect('include' in (await bodyOf({}, { name }))).toBe(asks);
  });

  it('is refused by name where an option is unknown or wrong', () => {
    const made = (options: object) => () =>
      openaiResponses('gpt-5', { apiKey: KEY, ...options } as OpenAIResponsesOptions);
    expect(made({ reasoningEfort: 'high' })).toThrow(ConfigurationError);
    expect(made({ reasoningEfort: 'high' })).toThrow('reasoningEfort');
    expect(made({ builtInTools: [{ name: 'x' }] })).toThrow('builtInTools');
    expect(() => openaiResponses(' ')).toThrow(ConfigurationError);
  });
});

describe('the items that only the provider reads', () => {
  const search = {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'cats' },
  };
  const first = sse(
    done(0, reasoning),
    done(1, search),
    text(2, 'one moment'),
    done(2, message('one moment', { phase: 'commentary' })),
    done(3, functionCall),
    completed(),
  );
  const last = sse(text(0, 'a cat'), done(0, message('a cat')), completed());
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({ at: z.string() }),
    execute: () => 'seen',
  });
  const sealed = [
    reasoning,
    search,
    {
      ...{ type: 'message', id: 'msg_1', role: 'assistant', phase: 'commentary' },
      content: [{ type: 'output_text', text: 'one moment' }],
    },
    { type: 'function_call', call_id: 'call_a', name: 'look', arguments: '{"at":"x"}' },
    { type: 'function_call_output', call_id: 'call_a', output: 'seen' },
  ];
  const inputOf = ({ body }: { body: Record<string, unknown> }) => body.input as object[];

  it('go back in their order with every later request, also after a restart', async () => {
    const { model, sent } = modelOf([first, last]);
    const store = memoryStore();
    const agent = createAgent({ model, tools: [look], store });
    const conversation = await agent.open('cats');
    expect((await conversation.send('see').result).text).toContain('a cat');
    expect(inputOf(sent[1] as never).slice(1)).toEqual(sealed);
    await agent.close();

    const again = modelOf([last]);
    const reopened = await createAgent({ model: again.model, tools: [look], store }).open('cats');
    await reopened.send('and now?').result;
    expect(inputOf(again.sent[0] as never).slice(1, -2)).toEqual(sealed);
  });

  it('are not sent to another model', async () => {
    const { parts } = await play(modelOf([first]).model);
    const finish = finishIn(parts);
    const extra = finish?.type === 'finish' ? finish.extra : undefined;
    const reply: Message = {
      role: 'assistant',
      content: [{ type: 'text', text: 'one moment' }],
      toolCalls: [],
      ...(extra !== undefined && { extra }),
    };
    const body = await bodyOf({ messages: [userSays('a'), reply, userSays('b')] }, { name: 'o4-mini' });
    expect((body.input as object[])[1]).toEqual({
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'one moment' }],
    });
    expect(JSON.stringify(body)).not.toContain('sealed');
  });

  it('are without reasoning that is neither encrypted nor readable, which the provider would not find', async () => {
    const { encrypted_content: _, ...bare } = reasoning;
    const readable = { ...bare, id: 'rs_2', content: [{ type: 'reasoning_text', text: 'I look.' }] };
    const reply = (item: object) => sse(done(0, item), text(1, 'so'), done(1, message('so')), completed());
    const replies = [bare, { ...bare, encrypted_content: null }, readable].map(reply);
    const { model, sent } = modelOf([...replies, last]);
    const conversation = await createAgent({ model }).open();
    for (const words of ['a', 'b', 'c', 'd']) await conversation.send(words).result;
    const types = inputOf(sent[3] as never).map((item) => (item as { type?: string }).type ?? 'user');
    expect(types).toEqual(['user', 'message', 'user', 'message', 'user', 'reasoning', 'message', 'user']);
  });

  it('are without reasoning at the end of a cut reply, which the provider would refuse', async () => {
    const cut = sse(
      ...[done(0, reasoning), text(1, 'one moment'), done(1, message('one moment', { phase: 'commentary' }))],
      done(2, { ...reasoning, id: 'rs_2' }),
      { type: 'response.incomplete', response: { incomplete_details: { reason: 'max_output_tokens' } } },
    );
    const { model, sent } = modelOf([cut, last]);
    const conversation = await createAgent({ model }).open();
    await conversation.send('see').result;
    await conversation.send('go on').result;
    expect(inputOf(sent[1] as never).slice(1, -1)).toEqual([sealed[0], sealed[2]]);
  });

  it('are none in a reply of text and calls, whose message has everything', async () => {
    const { parts } = await playEvents(text(0, 'so'), done(0, message('so')), done(1, functionCall), completed());
    expect(finishIn(parts)).not.toHaveProperty('extra');
  });
});
