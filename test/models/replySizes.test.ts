/** The limit of one reply also counts data that the model only sends back to its provider, so that a server cannot fill the memory. */
import { describe, expect, it } from 'vitest';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { openaiResponses } from '../../src/models/openai/responses.ts';
import { finishIn, type Played, play, served } from './scriptedFetch.ts';
import { end, type Part, provider } from './sdkProvider.ts';

const PIECE = 'x'.repeat(4 * 1024 * 1024);
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const event = (fields: { type: string; [field: string]: unknown }): string =>
  `event: ${fields.type}\ndata: ${JSON.stringify(fields)}\n\n`;
const options = { apiKey: 'k', baseURL: 'http://model.test/v1' };

const REPLIES: readonly (readonly [string, (count: number) => Promise<Played>])[] = [
  [
    'items of a Responses API',
    (count) => {
      const item = (output_index: number) =>
        event({
          ...{ type: 'response.output_item.done', output_index },
          item: { type: 'web_search_call', id: `w${output_index}`, results: PIECE },
        });
      const done = event({ type: 'response.completed', response: { status: 'completed', output: [] } });
      const fetch = async () => served([...range(count).map(item), done]);
      return play(openaiResponses('m', { ...options, fetch }));
    },
  ],
  [
    'blocks of a Messages API',
    (count) => {
      const block = (index: number): string =>
        event({
          ...{ type: 'content_block_start', index },
          content_block: { type: 'web_search_tool_result', tool_use_id: `w${index}`, content: PIECE },
        }) + event({ type: 'content_block_stop', index });
      const done = [
        event({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
        event({ type: 'message_stop' }),
      ];
      const fetch = async () => served([...range(count).map(block), ...done]);
      return play(anthropic('m', { ...options, fetch }));
    },
  ],
  [
    'results of a provider of the AI SDK',
    (count) => {
      const result = (index: number): Part => ({
        ...{ type: 'tool-result', toolCallId: `w${index}`, toolName: 'search', result: PIECE },
      });
      return play(aiSdkModel(provider([[...range(count).map(result), end()]]).model));
    },
  ],
  [
    'signatures of reasoning of a provider of the AI SDK',
    (count) => {
      const signed = (id: number): Part[] => [
        { type: 'reasoning-start', id: `${id}`, providerMetadata: { acme: { signature: PIECE } } },
        { type: 'reasoning-end', id: `${id}` },
      ];
      return play(aiSdkModel(provider([[...range(count).flatMap(signed), end()]]).model));
    },
  ],
  [
    'attachments of calls of a provider of the AI SDK',
    (count) => {
      const part = (at: number): Part => ({
        ...{ type: 'tool-call', toolCallId: `c${at}`, toolName: 'act', input: '{}' },
        providerMetadata: { acme: { signature: PIECE } },
      });
      return play(aiSdkModel(provider([[...range(count).map(part), end()]]).model));
    },
  ],
  [
    'files of a provider of the AI SDK',
    (count) => {
      const file = (): Part => ({ type: 'reasoning-file', mediaType: 'image/png', data: PIECE });
      return play(aiSdkModel(provider([[...range(count).map(file), end()]]).model));
    },
  ],
];

describe.each(REPLIES)('%s', (_, reply) => {
  it('are used within 64 MiB, and make the reply an error beyond', async () => {
    const small = await reply(2);
    expect([small.error, finishIn(small.parts)?.type]).toEqual([undefined, 'finish']);
    expect((await reply(17)).error).toMatchObject({ code: 'reply-too-large', retryable: false });
  });
});
