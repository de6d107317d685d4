/**
 * Halves of characters in a request: `"\ud83c"` alone is no text. Some servers refuse a request that contains one, and so every later
 * request of the conversation.
 */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../machines/vocabulary.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import type { Model } from '../../src/models/model.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { openaiResponses } from '../../src/models/openai/responses.ts';
import { parseJson, wholeCharacters } from '../../src/models/wire/wireJson.ts';
import { play, request, userSays } from './scriptedFetch.ts';
import { provider } from './sdkProvider.ts';

const HALF = 'a\ud83cb';
/** Texts that only look like halves, and whole characters. */
const WHOLE = 'c\\ud83c\\\\ud83c 🎉 \ufffd "d"';

const messages: readonly Message[] = [
  userSays(`${HALF} ${WHOLE}`),
  {
    role: 'assistant',
    content: [{ type: 'text', text: HALF }],
    toolCalls: [{ callId: 'c1', name: 'act', args: { [HALF]: [HALF, WHOLE] } }],
  },
  { role: 'tool', callId: 'c1', content: [{ type: 'text', text: `\udf89${HALF}` }], isError: false },
  userSays('on'),
];
const asked = request({
  ...{ system: HALF, messages: messages as Message[] },
  tools: [{ name: 'act', description: HALF, parameters: { type: 'object', description: HALF } }],
});

/** The requests that a model of this kind sends, as texts of JSON. */
async function sent(make: (fetch: typeof globalThis.fetch) => Model): Promise<string[]> {
  const bodies: string[] = [];
  const model = make(async (_, init) => {
    bodies.push(String(init?.body));
    return new Response('', { status: 500 });
  });
  await play(model, asked);
  await play(model, { ...asked, messages: [...asked.messages, userSays(HALF)] });
  return bodies;
}
async function sentBySdk(): Promise<string[]> {
  const { model, asked: options } = provider([]);
  await play(aiSdkModel(model as never), asked);
  return options.map(({ prompt, tools }) => JSON.stringify({ prompt, tools }));
}

/** All strings of a value, also in JSON within strings, and the names of its fields. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') {
    const inner = /^[[{]/.test(value) ? parseJson(value) : undefined;
    return [value, ...(inner === undefined ? [] : textsOf(inner))];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [name, ...textsOf(each)]);
}

const options = { apiKey: 'k', baseURL: 'http://model.test/v1' };
describe.each([
  ['openai', () => sent((fetch) => openai('m', { ...options, fetch })), 2],
  ['openaiResponses', () => sent((fetch) => openaiResponses('m', { ...options, fetch })), 2],
  ['anthropic', () => sent((fetch) => anthropic('m', { ...options, fetch, maxOutputTokens: 9 })), 2],
  ['aiSdkModel', sentBySdk, 1],
])('a request of %s', (_, requests, count) => {
  it('has the mark of a missing character in place of each half, and everything else unchanged', async () => {
    const bodies = await requests();
    expect(bodies).toHaveLength(count);
    for (const body of bodies) {
      const texts = textsOf(JSON.parse(body));
      expect(texts.filter((text) => /\p{Surrogate}/u.test(text))).toEqual([]);
      const all = texts.join('\n');
      for (const text of [`a\ufffdb ${WHOLE}`, 'a\ufffdb', '\ufffda\ufffdb', WHOLE]) expect(all).toContain(text);
    }
  });
});

it.each([
  ['{}', '{}'],
  ['"\ud83c\udf89"', '"\ud83c\udf89"'],
  ['"\\ud83c"', '"\\ufffd"'],
  ['"\\udf89\\ud83c"', '"\\ufffd\\ufffd"'],
  ['"\\\\ud83c"', '"\\\\ud83c"'],
  ['"\\\\\\ud83c"', '"\\\\\\ufffd"'],
  ['"\\u0041\\ud7ff\\n\\""', '"\\u0041\\ud7ff\\n\\""'],
])('the JSON %s is sent as %s', (json, expected) => {
  expect(wholeCharacters(json)).toBe(expected);
});
