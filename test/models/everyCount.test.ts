/**
 * The counts of tokens of each wire, and the same reply in each form in which a server may send it. Invariant: the counts are computed in
 * this file by hand, by the rules of each API.
 */
import { describe, expect, it } from 'vitest';
import type { Usage } from '../../machines/vocabulary.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import type { Model } from '../../src/models/model.ts';
import { openai, openaiResponses } from '../../src/models/openai/index.ts';
import { callsIn, finishIn, KEY, type Played, play, served, textIn } from './scriptedFetch.ts';
import { streamOf, textParts } from './sdkProvider.ts';

type Fields = { readonly [name: string]: unknown };
const data = (...events: readonly Fields[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const json = (body: Fields): Response =>
  new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } });

const answering = (make: (name: string, options: never) => Model, answer: Response): Promise<Played> =>
  play(make('m', { apiKey: KEY, baseURL: 'http://model.test/v1', fetch: async () => answer } as never));

/** Replies with the text `ok` and these counts. */
const chat = {
  streamed: (usage: unknown) =>
    answering(
      openai,
      served([
        data({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] }),
        data({ choices: [], usage }),
      ]),
    ),
  'with the finish': (usage: unknown) =>
    answering(
      openai,
      served([data({ usage, choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }] })]),
    ),
  'in the choice': (usage: unknown) =>
    answering(
      openai,
      served([data({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop', usage }] })]),
    ),
  whole: (usage: unknown) =>
    answering(openai, json({ choices: [{ message: { content: 'ok' }, finish_reason: 'stop' }], usage })),
};
const output = [{ type: 'message', content: [{ type: 'output_text', text: 'ok' }] }];
const responses = {
  streamed: (usage: unknown) =>
    answering(
      openaiResponses,
      served([data({ type: 'response.completed', response: { status: 'completed', output, usage } })]),
    ),
  incomplete: (usage: unknown) =>
    answering(
      openaiResponses,
      served([data({ type: 'response.incomplete', response: { status: 'incomplete', output, usage } })]),
    ),
  whole: (usage: unknown) =>
    answering(openaiResponses, json({ object: 'response', status: 'completed', output, usage })),
};
const block = { type: 'text', text: 'ok' };
const messages = {
  'at the end': (usage: unknown) =>
    answering(
      anthropic,
      served([
        data({ type: 'content_block_start', index: 0, content_block: block }),
        data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }, { type: 'message_stop' }),
      ]),
    ),
  'at the start': (usage: unknown) =>
    answering(
      anthropic,
      served([
        data(
          { type: 'message_start', message: { usage } },
          { type: 'content_block_start', index: 0, content_block: block },
        ),
        data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }, { type: 'message_stop' }),
      ]),
    ),
  whole: (usage: unknown) =>
    answering(anthropic, json({ type: 'message', content: [block], stop_reason: 'end_turn', usage })),
};
const sdk = (version: string, usage: unknown, providerMetadata?: unknown): Promise<Played> => {
  const finishReason = version === 'v2' ? 'stop' : { unified: 'stop', raw: 'stop' };
  const stream = () => streamOf([...textParts('ok'), { type: 'finish', finishReason, usage, providerMetadata }]);
  const fields = { specificationVersion: version, provider: 'acme.chat', modelId: 'm', supportedUrls: {} };
  return play(aiSdkModel({ ...fields, doStream: async () => ({ stream: stream() }) } as never));
};

const counted = async (played: Promise<Played>): Promise<Partial<Usage> | undefined> => {
  const { parts, error } = await played;
  expect([error, textIn(parts)]).toEqual([undefined, 'ok']);
  const finish = finishIn(parts);
  return finish?.type === 'finish' ? finish.usage : undefined;
};
const usage = (...counts: readonly (number | undefined)[]): Partial<Usage> => {
  const [inputTokens, outputTokens, cachedInputTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0] = counts;
  return {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
    ...{ cachedInputTokens, cacheWriteTokens, reasoningTokens },
  };
};
/** No server counts so. */
const STRANGE = [-1, '7', null, Number.NaN, [], {}];

const CHAT: readonly (readonly [unknown, Partial<Usage> | undefined])[] = [
  [{ prompt_tokens: 11, completion_tokens: 5 }, usage(11, 5)],
  [{ prompt_tokens: 0, completion_tokens: 0 }, usage(0, 0)],
  [{ prompt_tokens: 11, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 7 } }, usage(11, 5, 7)],
  [{ prompt_tokens: 11, prompt_tokens_details: { cache_write_tokens: 3 } }, usage(11, undefined, 0, 3)],
  [{ completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 4 } }, usage(undefined, 5, 0, 0, 4)],
  [{ prompt_tokens: 11, prompt_cache_hit_tokens: 6, cache_creation_input_tokens: 2 }, usage(11, undefined, 6, 2)],
  [
    { prompt_tokens: 11, prompt_tokens_details: { cached_tokens: 0 }, prompt_cache_hit_tokens: 6 },
    usage(11, undefined, 0),
  ],
  [{ prompt_tokens: 11, cached_tokens: 6 }, usage(11, undefined, 6)],
  [
    { prompt_tokens: 32, completion_tokens: 9, total_tokens: 135, completion_tokens_details: { reasoning_tokens: 94 } },
    usage(32, 103, 0, 0, 94),
  ],
  [{ prompt_tokens: 9, completion_tokens: 12, total_tokens: 310 }, usage(9, 301)],
  [{ prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 }, usage(9, 12)],
  [{ prompt_tokens: 9, completion_tokens: 12, total_tokens: 3 }, usage(9, 12)],
  [{ completion_tokens: 12, total_tokens: 310 }, usage(undefined, 12)],
  [{ prompt_tokens: 3, completion_tokens: 12, total_tokens: 215, cached_tokens: 200 }, usage(3, 12, 200)],
  [{ prompt_tokens: 11.9, completion_tokens: 0.5 }, usage(11, 0)],
  [{ prompt_tokens_details: null, completion_tokens_details: 'x' }, usage()],
  [{}, usage()],
  [null, undefined],
  ['7', undefined],
  ...STRANGE.map((odd) => [{ prompt_tokens: odd, completion_tokens: odd }, usage()] as const),
];
const RESPONSES: typeof CHAT = [
  [{ input_tokens: 11, output_tokens: 5 }, usage(11, 5)],
  [{ input_tokens: 0, output_tokens: 0 }, usage(0, 0)],
  [
    {
      ...{ input_tokens: 11, input_tokens_details: { cached_tokens: 7, cache_write_tokens: 3 } },
      ...{ output_tokens: 5, output_tokens_details: { reasoning_tokens: 4 } },
    },
    usage(11, 5, 7, 3, 4),
  ],
  [{ input_tokens_details: null, output_tokens_details: 'x' }, usage()],
  [null, undefined],
  ...STRANGE.map((odd) => [{ input_tokens: odd, output_tokens: odd }, usage()] as const),
];
/** Here the input excludes the tokens that were read from the cache and written to it. */
const MESSAGES: typeof CHAT = [
  [{ input_tokens: 11, output_tokens: 5 }, usage(11, 5)],
  [{ input_tokens: 11, cache_read_input_tokens: 7 }, usage(18, undefined, 7)],
  [{ input_tokens: 11, cache_creation_input_tokens: 3 }, usage(14, undefined, 0, 3)],
  [
    {
      ...{ input_tokens: 11, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 5 },
      output_tokens_details: { thinking_tokens: 4 },
    },
    usage(21, 5, 7, 3, 4),
  ],
  [{ input_tokens: 0, output_tokens: 0 }, usage(0, 0)],
  [{ output_tokens: 5 }, usage(undefined, 5)],
  [{}, undefined],
  [null, undefined],
  ...STRANGE.map((odd) => [{ input_tokens: odd, output_tokens: odd }, undefined] as const),
];

const cases = <W extends { [way: string]: (usage: unknown) => Promise<Played> }>(ways: W, rows: typeof CHAT) =>
  Object.entries(ways).map(([way, of]) => [way, of, rows] as const);

describe('the counts of tokens', () => {
  it.each(cases(chat, CHAT))('of chat completions, %s', async (_, of, rows) => {
    for (const [counts, expected] of rows) expect([counts, await counted(of(counts))]).toEqual([counts, expected]);
  });

  it.each(cases(responses, RESPONSES))('of the Responses API, %s', async (_, of, rows) => {
    for (const [counts, expected] of rows) expect([counts, await counted(of(counts))]).toEqual([counts, expected]);
  });

  it.each(cases(messages, MESSAGES))('of the Messages API, %s', async (_, of, rows) => {
    for (const [counts, expected] of rows) expect([counts, await counted(of(counts))]).toEqual([counts, expected]);
  });

  it('of the Messages API are those of the end, and those of the start where the end has none', async () => {
    const first = { input_tokens: 11, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 1 };
    const reply = (end: unknown): Promise<Played> =>
      answering(
        anthropic,
        served([
          data({ type: 'message_start', message: { usage: first } }),
          data({ type: 'content_block_start', index: 0, content_block: block }),
          data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: end }, { type: 'message_stop' }),
        ]),
      );
    const rows: typeof CHAT = [
      [{ output_tokens: 5 }, usage(21, 5, 7, 3)],
      [{ output_tokens: 0 }, usage(21, 0, 7, 3)],
      [{ input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 }, usage(3, 5, 0, 3)],
      [{ input_tokens: null, output_tokens: 5 }, usage(21, 5, 7, 3)],
      [undefined, usage(21, 1, 7, 3)],
    ];
    for (const [end, expected] of rows) expect([end, await counted(reply(end))]).toEqual([end, expected]);
  });

  it.each(['v3', 'v4'])('of a provider with specification %s', async (version) => {
    const rows: typeof CHAT = [
      [
        {
          inputTokens: { total: 21, noCache: 11, cacheRead: 7, cacheWrite: 3 },
          outputTokens: { total: 5, reasoning: 4 },
        },
        usage(21, 5, 7, 3, 4),
      ],
      [{ inputTokens: { total: 21 } }, usage(21, 0)],
      [{ outputTokens: { total: 5 } }, usage(0, 5)],
      [{ inputTokens: { total: 0 }, outputTokens: { total: 0 } }, usage(0, 0)],
      ...STRANGE.map((odd) => [{ inputTokens: { total: odd }, outputTokens: { total: odd } }, usage(0, 0)] as const),
      [null, {}],
    ];
    for (const [counts, expected] of rows)
      expect([counts, await counted(sdk(version, counts))]).toEqual([counts, expected]);
  });

  it('of a provider with specification v2: two of them count what the cache was used for separately, and some count reasoning so', async () => {
    const plain = { inputTokens: 11, outputTokens: 5, cachedInputTokens: 7, reasoningTokens: 4 };
    const rows: readonly (readonly [Fields, unknown, Partial<Usage>])[] = [
      [plain, undefined, usage(11, 5, 7, 0, 4)],
      [plain, { acme: { cacheCreationInputTokens: 3 } }, usage(11, 5, 7, 0, 4)],
      [plain, { anthropic: { cacheCreationInputTokens: 3 } }, usage(21, 5, 7, 3, 4)],
      [plain, { anthropic: {} }, usage(18, 5, 7, 0, 4)],
      [plain, { anthropic: null }, usage(11, 5, 7, 0, 4)],
      [plain, { bedrock: { usage: { cacheWriteInputTokens: 3 } } }, usage(21, 5, 7, 3, 4)],
      [plain, { bedrock: { trace: {} } }, usage(18, 5, 7, 0, 4)],
      [{ ...plain, totalTokens: 20 }, undefined, usage(11, 9, 7, 0, 4)],
      [{ ...plain, totalTokens: 16 }, undefined, usage(11, 5, 7, 0, 4)],
      [{}, undefined, usage(0, 0)],
      ...STRANGE.map((odd) => [{ inputTokens: odd, outputTokens: odd }, undefined, usage(0, 0)] as const).filter(
        ([{ inputTokens }]) => typeof inputTokens !== 'object' || inputTokens === null,
      ),
    ];
    for (const [counts, metadata, expected] of rows)
      expect([counts, metadata, await counted(sdk('v2', counts, metadata))]).toEqual([counts, metadata, expected]);
  });
});

describe('a reply that is not streamed is the same as a streamed reply', () => {
  const essence = ({ parts, error }: Played) => ({
    error,
    text: textIn(parts),
    reasoning: parts.map((part) => (part.type === 'reasoning-delta' ? part.text : '')).join(''),
    isRefusal: parts.some(({ type }) => type === 'refusal'),
    calls: callsIn(parts),
    finish: finishIn(parts),
  });

  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"a":1}' } };
  const CHAT_REPLIES: readonly (readonly [string, Fields, string])[] = [
    ['text', { content: 'ok' }, 'stop'],
    [
      'text in parts',
      {
        content: [
          { type: 'text', text: 'o' },
          { type: 'text', text: 'k' },
        ],
      },
      'length',
    ],
    ['reasoning', { reasoning_content: 'hm', content: 'ok' }, 'stop'],
    ['a refusal', { refusal: 'no' }, 'stop'],
    ['a filtered text', { content: 'o' }, 'content_filter'],
    ['a call', { content: null, tool_calls: [call] }, 'tool_calls'],
    ['a call of the older form', { function_call: call.function }, 'function_call'],
    ['two calls with text', { content: 'see', tool_calls: [call, { ...call, id: 'c2' }] }, 'stop'],
  ];
  it.each(CHAT_REPLIES)('of chat completions: %s', async (_, content, finish_reason) => {
    const pieces = {
      ...content,
      tool_calls: (content.tool_calls as object[] | undefined)?.map((c, index) => ({ ...c, index })),
    };
    const streamed = await answering(openai, served([data({ choices: [{ index: 0, delta: pieces, finish_reason }] })]));
    const whole = await answering(openai, json({ choices: [{ index: 0, message: content, finish_reason }] }));
    expect(essence(whole)).toEqual(essence(streamed));
    expect(essence(whole).error).toBeUndefined();
    expect(essence(whole).finish).toBeDefined();
  });

  const MESSAGE_BLOCKS: readonly (readonly [string, readonly Fields[], string])[] = [
    ['text', [{ type: 'text', text: 'ok' }], 'end_turn'],
    [
      'two texts',
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      'max_tokens',
    ],
    [
      'thinking',
      [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'text', text: 'ok' },
      ],
      'end_turn',
    ],
    ['thinking without a signature', [{ type: 'thinking', thinking: 'hm', signature: '' }], 'end_turn'],
    [
      'hidden thinking',
      [
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'ok' },
      ],
      'pause_turn',
    ],
    ['a call', [{ type: 'tool_use', id: 'c1', name: 'look', input: { a: 1 } }], 'tool_use'],
    ['a call without arguments', [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }], 'end_turn'],
    [
      'a call of the provider',
      [
        { type: 'server_tool_use', id: 's1', name: 'search', input: { q: 'x' } },
        { type: 'search_result', tool_use_id: 's1', content: [] },
        { type: 'text', text: 'ok', citations: [{ url: 'u' }] },
      ],
      'end_turn',
    ],
    ['a cut call of the provider', [{ type: 'server_tool_use', id: 's1', name: 'search', input: {} }], 'max_tokens'],
    ['a refusal', [{ type: 'text', text: 'o' }], 'refusal'],
    ['an unknown end', [{ type: 'text', text: 'ok' }], 'tired'],
  ];
  it.each(MESSAGE_BLOCKS)('of the Messages API: %s', async (_, content, stop_reason) => {
    const streamed = await answering(
      anthropic,
      served([
        ...content.map((each, index) =>
          data({ type: 'content_block_start', index, content_block: each }, { type: 'content_block_stop', index }),
        ),
        data({ type: 'message_delta', delta: { stop_reason } }, { type: 'message_stop' }),
      ]),
    );
    const whole = await answering(anthropic, json({ type: 'message', content, stop_reason }));
    expect(essence(whole)).toEqual(essence(streamed));
    expect(essence(whole).error).toBeUndefined();
    expect(essence(whole).finish).toBeDefined();
  });

  const FAILURES: readonly (readonly [string, typeof openai, Fields | string, string])[] = [
    ['chat completions', openai, { error: { type: 'rate_limit_error' } }, 'rate-limit'],
    ['chat completions', openai, { object: 'error', message: 'no', code: 404 }, 'not-found'],
    ['chat completions', openai, { choices: [{ message: { content: 'o' } }] }, 'stream-incomplete'],
    ['chat completions', openai, 'no json', 'bad-frame'],
    ['Responses API', openaiResponses, { error: { code: 'rate_limit_exceeded' } }, 'rate-limit'],
    [
      'Responses API',
      openaiResponses,
      { object: 'response', status: 'failed', error: { code: 'server_error' } },
      'provider',
    ],
    ['Responses API', openaiResponses, 'no json', 'bad-frame'],
    ['Messages API', anthropic as typeof openai, { type: 'error', error: { type: 'authentication_error' } }, 'auth'],
    ['Messages API', anthropic as typeof openai, { type: 'message', stop_reason: 'end_turn' }, 'stream-incomplete'],
    ['Messages API', anthropic as typeof openai, 'no json', 'bad-frame'],
  ];
  it.each(FAILURES)('of the %s, under status 200, %#: a failure has its code', async (_, make, body, code) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = new Response(text, { headers: { 'content-type': 'Application/JSON; charset=utf-8' } });
    const { parts, error } = await answering(make, answer);
    expect([code, error?.code, finishIn(parts)]).toEqual([code, code, undefined]);
  });
});
