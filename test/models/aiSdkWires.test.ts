/** Tests the providers of the AI SDK against local servers with their protocols. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createAnthropic as createAnthropicV4 } from 'ai-sdk-anthropic-v4';
import { createGoogleGenerativeAI as createGoogleV4 } from 'ai-sdk-google-v4';
import { createOpenAICompatible as createOpenAICompatibleV4 } from 'ai-sdk-openai-compatible-v4';
import { createOpenAI as createOpenAIV4 } from 'ai-sdk-openai-v4';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import type { Model } from '../../src/models/model.ts';
import { memoryStore } from '../../src/stores/memory.ts';

const KEY = 'key-of-the-wire-0123456789';
/** A PNG of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const servers: (() => void)[] = [];
afterEach(() => {
  for (const close of servers.splice(0)) close();
});

interface Body {
  messages: { role: string; content: unknown; [field: string]: unknown }[];
  contents: { role: string; parts: unknown }[];
}

/** Answers the requests with these events, one list each. */
async function serving(replies: readonly (readonly object[])[]): Promise<{ url: string; bodies: Body[] }> {
  const bodies: Body[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += String(piece);
    bodies.push(JSON.parse(text) as Body);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of replies[bodies.length - 1] ?? []) {
      const { type } = event as { type?: string };
      response.write(`${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies };
}

const look = defineTool({
  name: 'look',
  description: 'looks at a place',
  parameters: z.object({ at: z.string() }),
  execute: ({ at }) => `saw ${at}`,
});

/** Two requests of a user: the first calls a tool, the second comes after the conversation was opened anew. */
async function converse(model: () => Model): Promise<string[]> {
  const store = memoryStore();
  const texts: string[] = [];
  for (const message of ['look at x', 'and now?']) {
    const agent = createAgent({ model: model(), tools: [look], store, policies: { modelRetry: { attempts: 1 } } });
    const conversation = await agent.open('c');
    const { text, error } = await conversation.send(message).result;
    texts.push(error ? error.message : text);
    expect(JSON.stringify(conversation.log())).not.toContain(KEY);
    await agent.close();
  }
  return texts;
}

const VERSIONS = [
  ['version 3', createAnthropic, createGoogleGenerativeAI, createOpenAICompatible],
  ['version 4', createAnthropicV4, createGoogleV4, createOpenAICompatibleV4],
] as const;

describe.each(VERSIONS)(
  'with a provider of %s, thinking with tools, over turns and a reload',
  (_, createAnthropic, createGoogle, createCompatible) => {
    it('is sent back to Anthropic with its signature, in order and unchanged', async () => {
      const message = {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'claude',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 10, output_tokens: 1, cache_read_input_tokens: 4 },
      };
      const block = (index: number, content_block: object, ...deltas: object[]) => [
        { type: 'content_block_start', index, content_block },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ];
      const reply = (stop_reason: string, ...blocks: object[][]) => [
        { type: 'message_start', message },
        ...blocks.flat(),
        { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } },
        { type: 'message_stop' },
      ];
      const textReply = (text: string) =>
        reply('end_turn', block(0, { type: 'text', text: '' }, { type: 'text_delta', text }));
      const { url, bodies } = await serving([
        reply(
          'tool_use',
          block(
            0,
            { type: 'thinking', thinking: '', signature: '' },
            { type: 'thinking_delta', thinking: 'let ' },
            { type: 'thinking_delta', thinking: 'me see' },
            { type: 'signature_delta', signature: 'c2lnbmVk' },
          ),
          block(1, { type: 'redacted_thinking', data: 'ZW5jcnlwdGVk' }),
          block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'Looking.' }),
          block(
            3,
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
            { type: 'input_json_delta', partial_json: '{"at":"x"}' },
          ),
        ),
        textReply('I saw x.'),
        textReply('Still x.'),
      ]);
      const anthropic = createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY });
      const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } };
      const texts = await converse(() =>
        aiSdkModel(anthropic('claude-sonnet-4-5'), { providerOptions: thinking, maxOutputTokens: 4096 }),
      );
      expect(texts).toEqual([expect.stringContaining('I saw x.'), 'Still x.']);
      const first = {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'let me see', signature: 'c2lnbmVk' },
          { type: 'redacted_thinking', data: 'ZW5jcnlwdGVk' },
          { type: 'text', text: 'Looking.' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'x' } },
        ],
      };
      for (const body of bodies.slice(1)) expect(body.messages[1]).toMatchObject(first);
      expect(bodies[1]?.messages[2]).toMatchObject({
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'saw x' }],
      });
    });

    it('is sent back to Google with the signature of its call', async () => {
      const chunk = (parts: object[], finishReason?: string) => ({
        candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }) }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      });
      const { url, bodies } = await serving([
        [
          chunk([{ text: 'let me see', thought: true }]),
          chunk([{ functionCall: { name: 'look', args: { at: 'x' } }, thoughtSignature: 'c2lnbmVk' }], 'STOP'),
        ],
        [chunk([{ text: 'I saw x.' }], 'STOP')],
        [chunk([{ text: 'Still x.' }], 'STOP')],
      ]);
      const google = createGoogle({ baseURL: url, apiKey: KEY });
      expect(await converse(() => aiSdkModel(google('gemini-2.5-pro')))).toEqual(['I saw x.', 'Still x.']);
      for (const body of bodies.slice(1)) {
        const back = body.contents.find(({ role }) => role === 'model');
        expect(back?.parts).toMatchObject([
          { text: 'let me see', thought: true },
          { functionCall: { name: 'look', args: { at: 'x' } }, thoughtSignature: 'c2lnbmVk' },
        ]);
      }
    });

    it('is sent back to an OpenAI-compatible server under its own name', async () => {
      const delta = (fields: object, finish_reason: string | null = null) => ({
        id: 'r',
        choices: [{ index: 0, delta: fields, finish_reason }],
      });
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"x"}' } };
      const { url, bodies } = await serving([
        [delta({ reasoning_content: 'let me see' }), delta({ tool_calls: [call] }), delta({}, 'tool_calls')],
        [delta({ content: 'I saw x.' }), delta({}, 'stop')],
        [delta({ content: 'Still x.' }), delta({}, 'stop')],
      ]);
      const provider = createCompatible({ name: 'acme', baseURL: url, apiKey: KEY });
      expect(await converse(() => aiSdkModel(provider('m')))).toEqual(['I saw x.', 'Still x.']);
      for (const body of bodies.slice(1)) {
        expect(body.messages.find(({ role }) => role === 'assistant')).toMatchObject({
          reasoning_content: 'let me see',
          tool_calls: [{ id: 'call_1' }],
        });
      }
    });
  },
);

describe.each(VERSIONS)('with a provider of %s, an image', (_, createAnthropic, __, createCompatible) => {
  const image = { type: 'image', mediaType: 'image/png', data: PIXEL } as const;

  it('reaches Anthropic as bytes', async () => {
    const { url, bodies } = await serving([]);
    await createAgent({
      model: aiSdkModel(createAnthropic({ baseURL: `${url}/v1`, apiKey: KEY })('claude-sonnet-4-5')),
      policies: { modelRetry: { attempts: 1 } },
    }).run([{ type: 'text', text: 'see' }, image]);
    expect(bodies[0]?.messages[0]?.content).toMatchObject([
      { type: 'text', text: 'see' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
    ]);
  });

  it('reaches an OpenAI-compatible server as a data URL', async () => {
    const { url, bodies } = await serving([]);
    await createAgent({
      model: aiSdkModel(createCompatible({ name: 'acme', baseURL: url, apiKey: KEY })('m')),
      policies: { modelRetry: { attempts: 1 } },
    }).run([{ type: 'text', text: 'see' }, image]);
    expect(bodies[0]?.messages[0]?.content).toMatchObject([
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
    ]);
  });
});

it('encrypted reasoning of the Responses API is sent back by OpenAI\u2019s provider of version 4', async () => {
  const usage = {
    input_tokens: 3,
    output_tokens: 2,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 1 },
  };
  const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'gpt-5' } };
  const reply = (...items: object[]) => [
    created,
    ...items.flatMap((item, output_index) => [
      { type: 'response.output_item.added', output_index, item },
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type: 'response.completed', response: { usage } },
  ];
  const textReply = (text: string) => [
    created,
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'msg_1' } },
    { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, delta: text },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'msg_1' } },
    { type: 'response.completed', response: { usage } },
  ];
  const reasoning = { type: 'reasoning', id: 'rs_1', encrypted_content: 'sealed', summary: [] };
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'look',
    arguments: '{"at":"x"}',
    status: 'completed',
  };
  const { url, bodies } = await serving([reply(reasoning, call), textReply('I saw x.'), textReply('Still x.')]);
  const openai = createOpenAIV4({ baseURL: url, apiKey: KEY });
  const providerOptions = { openai: { store: false, include: ['reasoning.encrypted_content'] } };
  expect(await converse(() => aiSdkModel(openai('gpt-5'), { providerOptions }))).toEqual(['I saw x.', 'Still x.']);
  for (const body of bodies.slice(1)) {
    const { input } = body as unknown as { input: { type?: string; encrypted_content?: string; call_id?: string }[] };
    expect(input).toContainEqual(expect.objectContaining({ type: 'reasoning', encrypted_content: 'sealed' }));
    expect(input).toContainEqual(expect.objectContaining({ type: 'function_call', call_id: 'call_1' }));
  }
});
