/** Tests the Messages API of Anthropic: the results of its events and failures, and the data that is sent back to it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type Message, memoryStore } from '../../src/index.ts';
import {
  added,
  began,
  bodyOf,
  call,
  type Event,
  ended,
  modelOf,
  plainReply,
  playEvents,
  sse,
  started,
  stopped,
  text,
  thinking,
} from './anthropicServer.ts';
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
  utf8,
} from './scriptedFetch.ts';

describe('a reply of the Messages API', () => {
  it('is its text as it streams, with the counts of tokens, those of the cache among the input', async () => {
    const usage = {
      ...{ input_tokens: 5, cache_read_input_tokens: 70, cache_creation_input_tokens: 20, output_tokens: 1 },
    };
    const end = {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { input_tokens: null, output_tokens: 12, output_tokens_details: { thinking_tokens: 4 } },
    };
    const reply = sse(began(usage), { type: 'ping' }, ...text(0, 'hel', 'lo'), end, { type: 'message_stop' });
    const { parts, error } = await play(modelOf([reply]).model);
    expect(error).toBeUndefined();
    expect(parts.filter(({ type }) => type === 'text-delta')).toHaveLength(2);
    expect(textIn(parts)).toBe('hello');
    expect(finishIn(parts)).toEqual({
      type: 'finish',
      reason: 'stop',
      usage: { inputTokens: 95, outputTokens: 12, cachedInputTokens: 70, cacheWriteTokens: 20, reasoningTokens: 4 },
    });
  });

  it('has its calls with the ids of the server, and streams their arguments', async () => {
    const { parts } = await playEvents(
      ...text(0, 'I look'),
      ...call(1, 'toolu_a', '', '{"at":', '"x"}'),
      ...call(2, 'toolu_b', ''),
      ...ended('tool_use'),
    );
    expect(callsIn(parts)).toEqual([
      { id: 'toolu_a', name: 'look', args: '{"at":"x"}' },
      { id: 'toolu_b', name: 'look', args: '{}' },
    ]);
    const deltas = parts.filter((part) => part.type === 'tool-call-delta');
    expect(deltas.map(({ index, callId, name, text: piece }) => [index, callId, name, piece])).toEqual([
      [0, 'toolu_a', 'look', ''],
      [0, undefined, undefined, '{"at":'],
      [0, undefined, undefined, '"x"}'],
      [1, 'toolu_b', 'look', ''],
      [1, undefined, undefined, '{}'],
    ]);
    expect(finishIn(parts)).toMatchObject({ reason: 'tool-calls' });
    expect(finishIn(parts)).not.toHaveProperty('extra');
  });

  it('shows its thinking apart from its text', async () => {
    const { parts } = await playEvents(...thinking(0, 'hm'), ...text(1, 'Yes.'), ...ended('end_turn'));
    expect(parts.find(({ type }) => type === 'reasoning-delta')).toEqual({ type: 'reasoning-delta', text: 'hm' });
    expect(textIn(parts)).toBe('Yes.');
  });

  it('is the same from a server that sends whole blocks, or no stream at all', async () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'sealed' },
      { type: 'text', text: 'so' },
      { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 'x' } },
    ];
    const usage = { input_tokens: 10, output_tokens: 12 };
    const body = JSON.stringify({ type: 'message', role: 'assistant', content, stop_reason: 'tool_use', usage });
    const whole = new Response(body, { headers: { 'content-type': 'application/json' } });
    const streamed = await playEvents(
      ...thinking(0, 'hm'),
      ...text(1, 'so'),
      ...call(2, 'toolu_a', '{"at":"x"}'),
      ...ended('tool_use'),
    );
    const inStarts = await playEvents(...content.map((block, index) => started(index, block)), ...ended('tool_use'));
    const unstreamed = await play(modelOf([whole]).model);
    const essence = ({ parts, error }: Played) => [error, textIn(parts), callsIn(parts), finishIn(parts)];
    for (const played of [inStarts, unstreamed]) expect(essence(played)).toEqual(essence(streamed));
    expect(callsIn(streamed.parts)).toEqual([{ id: 'toolu_a', name: 'look', args: '{"at":"x"}' }]);
  });

  it('does not depend on how the network splits it', async () => {
    const bytes = utf8(sse(began(), ...text(0, 'grüße'), ...call(1, 'toolu_a', '{"at":"ü"}'), ...ended('tool_use')));
    const pieces = [...bytes].map((_, at) => bytes.subarray(at, at + 1));
    const { parts, error } = await play(modelOf([served(pieces)]).model);
    expect(error).toBeUndefined();
    expect([textIn(parts), callsIn(parts)[0]?.args]).toEqual(['grüße', '{"at":"ü"}']);
  });

  it.each([
    ['end_turn', 'stop', []],
    ['stop_sequence', 'stop', []],
    ['max_tokens', 'length', []],
    ['model_context_window_exceeded', 'length', []],
    ['pause_turn', 'pause', []],
    ['refusal', 'content-filter', ['refusal']],
    ['something_new', 'stop', ['finish_reason_unknown']],
  ])('that stops for %s ends with %s', async (word, reason, codes) => {
    const { parts } = await playEvents(...text(0, 'so'), ...ended(word));
    expect(finishIn(parts)).toMatchObject({ reason });
    expect(codesIn(parts)).toEqual(codes);
  });

  it('that is a refusal names its reason', async () => {
    const details = { type: 'refusal', category: 'bio', explanation: 'Not that.' };
    const { parts } = await playEvents(...ended('refusal', { stop_details: details }));
    const detail = { category: 'bio', explanation: 'Not that.' };
    expect(parts).toContainEqual({ type: 'diagnostic', code: 'refusal', detail });
  });

  it.each([
    ['x'.repeat(500), 'x'.repeat(500)],
    ['x'.repeat(501), 'x'.repeat(500)],
    [`${'x'.repeat(499)}🎉`, 'x'.repeat(499)],
  ])('that is a refusal has at most 500 characters of its reason, and no half of one', async (explanation, shown) => {
    const details = { type: 'refusal', explanation };
    const { parts } = await playEvents(...ended('refusal', { stop_details: details }));
    expect(parts).toContainEqual({
      ...{ type: 'diagnostic', code: 'refusal', detail: { category: '', explanation: shown } },
    });
  });

  it('is complete with its stop reason, or with the last event alone', async () => {
    const { type, ...delta } = ended('end_turn')[0] as Event;
    const cut = await playEvents(...text(0, 'so'), { type, ...delta });
    const bare = await playEvents(...text(0, 'so'), { type: 'message_stop' });
    for (const { parts, error } of [cut, bare]) {
      expect(error).toBeUndefined();
      expect(finishIn(parts)).toMatchObject({ reason: 'stop' });
    }
  });

  it('reports what it cannot read, and keeps the rest', async () => {
    const { parts, error } = await playEvents(
      added(7, 'text_delta', { text: 'lost' }),
      started(0, { type: 'text', text: '' }),
      added(0, 'new_delta', {}),
      added(0, 'text_delta', { text: 'so' }),
      ...ended('end_turn'),
      { type: 'ping' },
    );
    expect(error).toBeUndefined();
    expect(textIn(parts)).toBe('so');
    expect(codesIn(parts)).toEqual(['delta_without_block', 'delta_unknown', 'after_done']);
  });
});

describe('a failed call of the Messages API', () => {
  const failure = (type: string) => sse(began(), ...text(0, 'half'), { type: 'error', error: { type, message: 'no' } });
  it.each([
    ['an end without a stop reason', sse(began(), ...text(0, 'half')), 'stream-incomplete', true],
    ['no event', '', 'stream-incomplete', true],
    ['what is no JSON', 'event: message_start\ndata: {"type\n\n', 'bad-frame', true],
    ['a server that is overloaded', failure('overloaded_error'), 'provider', true],
    ['a server that fails', failure('api_error'), 'provider', true],
    ['too many requests', failure('rate_limit_error'), 'rate-limit', true],
    ['a wrong request', failure('invalid_request_error'), 'bad-request', false],
    ['a refused key', failure('authentication_error'), 'auth', false],
  ])('is, in a stream with status 200, for %s', async (_, reply, code, retryable) => {
    const { parts, error } = await play(modelOf([reply]).model);
    expect(error).toMatchObject({ name: 'ModelError', code, retryable });
    expect(finishIn(parts)).toBeUndefined();
  });

  const refused = (status: number, type: string, headers: Record<string, string> = {}) =>
    new Response(JSON.stringify({ type: 'error', error: { type, message: `because ${KEY}` } }), { status, headers });
  it.each([
    [400, 'invalid_request_error', 'bad-request', false],
    [401, 'authentication_error', 'auth', false],
    [402, 'billing_error', 'quota', false],
    [403, 'permission_error', 'auth', false],
    [404, 'not_found_error', 'not-found', false],
    [413, 'request_too_large', 'bad-request', false],
    [429, 'rate_limit_error', 'rate-limit', true],
    [500, 'api_error', 'server', true],
    [529, 'overloaded_error', 'server', true],
  ])('with status %i and %s is %s', async (status, type, code, retryable) => {
    const { error } = await play(modelOf([refused(status, type, { 'retry-after': '7' })]).model);
    expect(error).toMatchObject({ code, status, retryable, retryAfterMs: 7000 });
    expect(error?.message).toContain('because');
    expect(error?.message).not.toContain(KEY);
  });

  it('is one of the network where fetch rejects', async () => {
    const fetch = () => Promise.reject(new TypeError('fetch failed'));
    expect((await play(modelOf([], { fetch }).model)).error).toMatchObject({ code: 'network', retryable: true });
  });

  it.each(['the server is silent', 'the reply streams'])('ends at once with an abort while %s', async (when) => {
    const abort = new AbortController();
    let cancelled = false;
    const answer = served([sse(began(), started(0, { type: 'text', text: 'so' }))], {
      end: 'hang',
      cancelled: () => {
        cancelled = true;
      },
    });
    const silent = when === 'the server is silent';
    const fetch = silent ? () => new Promise<Response>(() => {}) : async () => answer;
    const { model } = modelOf([], { fetch });
    const parts: string[] = [];
    const reading = (async () => {
      for await (const part of model.stream(request(), { signal: abort.signal, attempt: 1 })) {
        parts.push(part.type);
        abort.abort(new Error('enough'));
      }
    })();
    if (silent) setTimeout(() => abort.abort(new Error('enough')), 0);
    await expect(reading).rejects.toThrow('enough');
    expect(parts).toEqual(silent ? [] : ['text-delta']);
    if (!silent) expect(cancelled).toBe(true);
  });
});

describe('the blocks that only the provider reads', () => {
  const signed = { type: 'thinking', thinking: 'I look.', signature: 'sealed' };
  const redacted = { type: 'redacted_thinking', data: 'gAAAA' };
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'cats' } };
  const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result' }] };
  const cited = { type: 'web_search_result_location', url: 'https://cats.test', cited_text: 'meow' };
  const first: Event[] = [
    ...thinking(0, 'I look.'),
    started(1, redacted),
    stopped(1),
    started(2, { ...search, input: {} }),
    added(2, 'input_json_delta', { partial_json: '{"query":"cats"}' }),
    stopped(2),
    started(3, found),
    stopped(3),
    started(4, { type: 'text', text: '', citations: [] }),
    added(4, 'citations_delta', { citation: cited }),
    added(4, 'text_delta', { text: 'one moment' }),
    stopped(4),
    ...thinking(5, 'now', 'second'),
    ...call(6, 'toolu_a', '{"at":"x"}'),
    ...ended('tool_use'),
  ];
  const back = [
    signed,
    redacted,
    search,
    found,
    { type: 'text', text: 'one moment', citations: [cited] },
    { type: 'thinking', thinking: 'now', signature: 'second' },
    { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 'x' } },
  ];
  const messagesOf = (body: Record<string, unknown> | undefined) => body?.messages as { content: object[] }[];
  const replyOf = async (...events: Event[]): Promise<Message> => {
    const { parts } = await playEvents(...events);
    const finish = finishIn(parts);
    const extra = finish?.type === 'finish' ? finish.extra : undefined;
    const content = textIn(parts) === '' ? [] : [{ type: 'text' as const, text: textIn(parts) }];
    return { role: 'assistant', content, toolCalls: [], ...(extra !== undefined && { extra }) };
  };
  const sentBack = async (reply: Message, name: string) =>
    messagesOf(await bodyOf({ messages: [userSays('a'), reply, userSays('b')] }, { name }))[1]?.content;

  it('go back unchanged in their places with every later request, also after a restart', async () => {
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', parameters: z.object({ at: z.string() }), execute: () => 'seen' },
    });
    const store = memoryStore();
    const { model, sent } = modelOf([sse(began(), ...first), plainReply]);
    const agent = createAgent({ model, tools: [look], store });
    const conversation = await agent.open('cats');
    expect((await conversation.send('see').result).text).toContain('ok');
    expect(messagesOf(sent[1]?.body)[1]?.content).toEqual(back);
    await agent.close();

    const again = modelOf([plainReply]);
    const reopened = await createAgent({ model: again.model, tools: [look], store }).open('cats');
    await reopened.send('and now?').result;
    expect(messagesOf(again.sent[0]?.body)[1]?.content).toEqual(back);
  });

  it('have the streamed arguments of a call that a remote MCP server ran', async () => {
    const remote = { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'echo', server_name: 'far', input: {} };
    const heard = { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [] };
    const reply = await replyOf(
      ...[started(0, remote), added(0, 'input_json_delta', { partial_json: '{"say":' })],
      ...[added(0, 'input_json_delta', { partial_json: '"hi"}' }), stopped(0), started(1, heard), stopped(1)],
      ...[...text(2, 'so'), ...ended('end_turn')],
    );
    const answered = [{ ...remote, input: { say: 'hi' } }, heard, { type: 'text', text: 'so' }];
    expect(await sentBack(reply, 'claude-sonnet-4-6')).toEqual(answered);
  });

  it('go to the same model under another date, and to no other model', async () => {
    const reply = await replyOf(...thinking(0, 'I look.'), ...text(1, 'so'), ...ended('end_turn'));
    const answer = { type: 'text', text: 'so' };
    expect(await sentBack(reply, 'claude-sonnet-4-6-20260217')).toEqual([signed, answer]);
    expect(await sentBack(reply, 'claude-opus-4-6')).toEqual([answer]);
  });

  it('are left out where the provider would refuse them', async () => {
    const openSearch = [started(1, search), stopped(1)];
    const cut = await replyOf(...text(0, 'so'), ...openSearch, ...thinking(2, 'half', ''), ...ended('max_tokens'));
    expect(await sentBack(cut, 'claude-sonnet-4-6')).toEqual([{ type: 'text', text: 'so' }]);
    // The API refuses a search without its result where a message of the user follows.
    const paused = await replyOf(...text(0, 'so'), ...openSearch, ...ended('pause_turn'));
    expect(await sentBack(paused, 'claude-sonnet-4-6')).toEqual([{ type: 'text', text: 'so' }]);
  });

  it('have thinking without a signature from models of other vendors, which need it back', async () => {
    const unsigned = [...thinking(0, 'I look.', ''), ...call(1, 'toolu_a', '{"at":"x"}'), ...ended('tool_use')];
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', parameters: z.object({ at: z.string() }), execute: () => 'seen' },
    });
    const typesOf = async (name: string) => {
      const { model, sent } = modelOf([sse(began(), ...unsigned), plainReply], { name });
      await (await createAgent({ model, tools: [look] }).open()).send('see').result;
      return messagesOf(sent[1]?.body)[1]?.content;
    };
    const asked = { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 'x' } };
    expect(await typesOf('deepseek-v4-pro')).toEqual([{ ...signed, signature: '' }, asked]);
    expect(await typesOf('claude-sonnet-4-6')).toEqual([asked]);
  });

  it('stay where the provider runs its tool with the results of the agent’s tools', async () => {
    const both = sse(
      began(),
      started(0, search),
      stopped(0),
      ...call(1, 'toolu_a', '{"at":"x"}'),
      ...ended('tool_use'),
    );
    const { model, sent } = modelOf([both, plainReply]);
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', parameters: z.object({ at: z.string() }), execute: () => 'seen' },
    });
    await (await createAgent({ model, tools: [look] }).open()).send('see').result;
    const [asked, answered] = messagesOf(sent[1]?.body).slice(1);
    expect(asked?.content).toEqual([search, { type: 'tool_use', id: 'toolu_a', name: 'look', input: { at: 'x' } }]);
    expect(answered?.content).toMatchObject([{ type: 'tool_result', tool_use_id: 'toolu_a' }]);
  });
});
