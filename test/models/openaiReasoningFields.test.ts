import { describe, expect, it } from 'vitest';
import type { Json, Message } from '../../machines/vocabulary.ts';
import { type Model, WRITTEN } from '../../src/models/model.ts';
import { openai } from '../../src/models/openai/openai.ts';
import {
  callDelta,
  DONE,
  delta,
  finished,
  finishIn,
  frame,
  KEY,
  play,
  playPieces,
  request,
  served,
  userSays,
} from './scriptedFetch.ts';

const extraOf = async (...chunks: object[]): Promise<Json | undefined> => {
  const { parts } = await playPieces([frame(...chunks, finished('stop')) + DONE]);
  const finish = finishIn(parts);
  return finish?.type === 'finish' ? finish.extra : undefined;
};
const fieldsOf = async (...chunks: object[]): Promise<unknown> =>
  ((await extraOf(...chunks)) as { fields: unknown }).fields;

/** The assistant message as the server of `name` is sent it. */
async function sentTo(
  name: string,
  message: Message,
  baseURL = 'http://model.test/v1',
): Promise<Record<string, unknown> | undefined> {
  let body = '';
  const model = openai(name, {
    apiKey: KEY,
    baseURL,
    fetch: async (_url, init) => {
      body = String(init?.body);
      return served([frame(delta({ content: 'ok' }), finished('stop')) + DONE]);
    },
  });
  await play(model, request({ messages: [userSays('a'), message, userSays('b')] }));
  return (JSON.parse(body) as { messages: Record<string, unknown>[] }).messages.find(
    ({ role }) => role === 'assistant',
  );
}
const saying = (extra: Json): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text: 'x' }],
  toolCalls: [],
  extra,
});

describe('fields that a server needs back with its reply', () => {
  it('reasoning is joined from its pieces and sent back under its name, with the calls', async () => {
    const { parts } = await playPieces([
      frame(
        delta({ reasoning_content: 'let ' }),
        delta({ reasoning_content: 'me see' }),
        callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }),
        finished('tool_calls'),
      ) + DONE,
    ]);
    const finish = finishIn(parts);
    const extra = finish?.type === 'finish' ? finish.extra : undefined;
    const call = { callId: 'a', name: 'f', args: {} };
    const message: Message = {
      role: 'assistant',
      content: [],
      toolCalls: [call],
      ...(extra !== undefined && { extra }),
    };
    expect(await sentTo('test-model', message)).toMatchObject({
      reasoning_content: 'let me see',
      tool_calls: [{ id: 'a' }],
    });
  });

  it('signed items are joined piece by piece, and encrypted ones stay whole', async () => {
    const items = (...list: object[]) => delta({ reasoning_details: list });
    expect(
      await fieldsOf(
        items({ type: 'reasoning.text', text: 'a', index: 0, format: 'v1' }),
        items({ type: 'reasoning.text', text: 'b', index: 0, format: 'v1' }),
        items({ type: 'reasoning.text', signature: 's', index: 0 }),
        items({ type: 'reasoning.text', text: 'c', index: 0 }),
        items(
          { type: 'reasoning.encrypted', data: 'x', index: 1 },
          { type: 'reasoning.encrypted', data: 'y', index: 1 },
        ),
      ),
    ).toEqual({
      reasoning_details: [
        { type: 'reasoning.text', text: 'ab', index: 0, format: 'v1', signature: 's' },
        { type: 'reasoning.text', text: 'c', index: 0 },
        { type: 'reasoning.encrypted', data: 'x', index: 1 },
        { type: 'reasoning.encrypted', data: 'y', index: 1 },
      ],
    });
  });

  it('null in a later piece removes nothing: some servers send every field with each piece', async () => {
    const item = (text: string | null, signature: string | null) =>
      delta({ reasoning_details: [{ type: 'reasoning.text', id: null, text, signature, index: 0 }] });
    expect(await fieldsOf(item('a', null), item('b', null), item(null, 's'))).toEqual({
      reasoning_details: [{ type: 'reasoning.text', id: null, text: 'ab', signature: 's', index: 0 }],
    });
  });

  it('objects are merged, and other fields of a delta are not kept', async () => {
    expect(
      await fieldsOf(
        delta({ extra_content: { google: { thought_signature: 's' } }, audio: {}, later: 1 }),
        delta({ extra_content: { b: 1 } }),
      ),
    ).toEqual({ extra_content: { google: { thought_signature: 's' }, b: 1 } });
    expect(await extraOf(delta({ content: 'x', later: 1, reasoning: 'not wanted back' }))).toBeUndefined();
  });

  it('are sent only to the model that wrote them, and never override the message', async () => {
    const extra = await extraOf(delta({ reasoning_content: 'r' }));
    expect(await sentTo('test-model', saying(extra ?? null))).toEqual({
      role: 'assistant',
      content: 'x',
      reasoning_content: 'r',
    });
    expect(await sentTo('another', saying(extra ?? null))).toEqual({ role: 'assistant', content: 'x' });
    const forged = { chat: 'test-model', fields: { content: 'forged', role: 'system', reasoning_opaque: 'o' } };
    expect(await sentTo('test-model', saying(forged))).toEqual({
      role: 'assistant',
      content: 'x',
      reasoning_opaque: 'o',
    });
    for (const odd of [null, 7, 'text', [1], { chat: 'test-model' }, { chat: 'test-model', fields: [] }]) {
      expect(await sentTo('test-model', saying(odd as Json))).toEqual({ role: 'assistant', content: 'x' });
    }
  });

  it('are never missing for DeepSeek, which refuses a reply without its field', async () => {
    const own = await extraOf(delta({ reasoning_content: 'r' }));
    const deepSeek = 'https://api.deepseek.com/v1';
    expect(await sentTo('test-model', saying(own ?? null), deepSeek)).toHaveProperty('reasoning_content', 'r');
    for (const [name, extra] of [
      ['test-model', null],
      ['another', own ?? null],
    ] as const)
      expect(await sentTo(name, saying(extra), deepSeek)).toHaveProperty('reasoning_content', '');
    expect(await sentTo('test-model', saying(null), 'https://deepseek.com.evil.test')).not.toHaveProperty(
      'reasoning_content',
    );
  });

  it('are not sent to another model that continues the conversation, even with cached messages', async () => {
    const bodies: string[] = [];
    const asked = (name: string, context: Parameters<Model['stream']>[1], messages: Message[]) => {
      const fetch = async (_: unknown, init?: { body?: unknown }) => {
        bodies.push(String(init?.body));
        return served([frame(delta({ content: 'ok' }), finished('stop')) + DONE]);
      };
      const model = openai(name, { apiKey: KEY, baseURL: 'http://model.test/v1', fetch: fetch as never });
      return play({ ...model, stream: (modelRequest) => model.stream(modelRequest, context) }, request({ messages }));
    };
    const messages = [userSays('a'), saying((await extraOf(delta({ reasoning_content: 'r' }))) ?? null), userSays('b')];
    const kept = { [WRITTEN]: {} };
    for (const [turn, name] of ['test-model', 'another', 'test-model', 'test-model', 'another'].entries()) {
      const context = { signal: new AbortController().signal, attempt: 1 };
      const history = [...messages, ...Array.from({ length: turn }, (_, index) => userSays(`${index}`))];
      await asked(name, { ...context, ...kept }, history);
      await asked(name, context, history);
      expect(bodies.at(-2)).toBe(bodies.at(-1));
      expect(bodies.at(-1)?.includes('reasoning_content')).toBe(name === 'test-model');
    }
  });

  it('in 50,000 pieces are joined in linear time', async () => {
    const piece = frame(delta({ reasoning_details: [{ type: 'reasoning.text', text: 'ab', index: 0 }] }));
    const { parts } = await playPieces([piece.repeat(50_000) + frame(finished('stop')) + DONE]);
    const finish = finishIn(parts);
    expect(JSON.stringify(finish?.type === 'finish' ? finish.extra : '').length).toBeGreaterThan(100_000);
  });
});
