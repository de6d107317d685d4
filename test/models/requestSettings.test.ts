/** The settings of one request, as each adapter sends them: they hold in place of the model's own. */
import { expect, it } from 'vitest';
import type { Json, ModelSettings } from '../../machines/vocabulary.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import type { ModelRequest } from '../../src/models/model.ts';
import { namedSchema } from '../../src/models/openai/answerSchema.ts';
import { openai, openaiResponses } from '../../src/models/openai/index.ts';
import { KEY, play, request, userSays } from './scriptedFetch.ts';
import { provider } from './sdkProvider.ts';

const tools = [{ name: 'read', description: '', parameters: {} }];
const own = { temperature: 1, topP: 1, reasoningEffort: 'high', toolChoice: 'none' };
const settings: ModelSettings = {
  ...{ temperature: 0, topP: 0.5, reasoningEffort: 'low', maxOutputTokens: 7, toolChoice: { tool: 'read' } },
};

/** The body of the request that a model of OpenAI's APIs sends. */
async function sentBy(makeModel: typeof openai | typeof openaiResponses, asked: ModelRequest) {
  let body = {};
  const fetch = async (_: unknown, { body: text }: RequestInit = {}): Promise<Response> => {
    body = JSON.parse(String(text));
    return new Response('', { status: 500 });
  };
  await play(makeModel('gpt-5.2', { ...own, apiKey: KEY, fetch: fetch as typeof globalThis.fetch }), asked);
  return body;
}

async function sentBySdk(version: string, providerName: string, asked: ModelRequest) {
  const { model, asked: sent } = provider([], { specificationVersion: version, provider: providerName });
  await play(
    aiSdkModel(model as never, { providerOptions: { [providerName.split('.')[0] ?? '']: { keep: 1 } } }),
    asked,
  );
  return sent[0];
}

const asked = request({ messages: [userSays('hi')], tools, ...settings });

it('chat completions send each setting of the request in place of the model’s own', async () => {
  expect(await sentBy(openai, asked)).toMatchObject({
    ...{ temperature: 0, top_p: 0.5, reasoning_effort: 'low', max_completion_tokens: 7 },
    tool_choice: { type: 'function', function: { name: 'read' } },
  });
  expect(await sentBy(openai, request({ messages: [userSays('hi')], tools }))).toMatchObject({
    ...{ temperature: 1, top_p: 1, reasoning_effort: 'high', tool_choice: 'none' },
  });
});

it('the Responses API sends each setting of the request in place of the model’s own', async () => {
  expect(await sentBy(openaiResponses, asked)).toMatchObject({
    ...{ temperature: 0, top_p: 0.5, reasoning: { effort: 'low' }, max_output_tokens: 7 },
    tool_choice: { type: 'function', name: 'read' },
  });
  expect(await sentBy(openaiResponses, request({ messages: [userSays('hi')], tools }))).toMatchObject({
    ...{ temperature: 1, top_p: 1, reasoning: { effort: 'high' }, tool_choice: 'none' },
  });
});

it('a choice of tools is not sent without tools', async () => {
  const without = request({ messages: [userSays('hi')], toolChoice: 'required' });
  expect(await sentBy(openai, without)).not.toHaveProperty('tool_choice');
  expect(await sentBy(openaiResponses, without)).not.toHaveProperty('tool_choice');
  expect(await sentBySdk('v3', 'acme.chat', without)).not.toHaveProperty('toolChoice');
});

it('the AI SDK receives each setting as its call option', async () => {
  const common = { temperature: 0, topP: 0.5, maxOutputTokens: 7, toolChoice: { type: 'tool', toolName: 'read' } };
  const v4 = await sentBySdk('v4', 'acme.chat', asked);
  expect(v4).toMatchObject({ ...common, reasoning: 'low', providerOptions: { acme: { keep: 1 } } });
  const required = request({ messages: [userSays('hi')], tools, toolChoice: 'required' });
  expect(await sentBySdk('v4', 'acme.chat', required)).toMatchObject({ toolChoice: { type: 'required' } });
});

it.each(['v2', 'v3'])(
  'of specification %s the effort goes into the provider’s own options, beside the others',
  async (version) => {
    const sent = await sentBySdk(version, 'openai.chat', asked);
    expect(sent).toMatchObject({ providerOptions: { openai: { keep: 1, reasoningEffort: 'low' } } });
    expect(sent).not.toHaveProperty('reasoning');
  },
);

const strict = {
  type: 'object',
  properties: { city: { type: 'string' }, place: { type: 'object', properties: {}, additionalProperties: false } },
  required: ['city', 'place'],
  additionalProperties: false,
};
const { additionalProperties: _, ...loose } = strict;
const looseWithin = {
  type: 'object',
  properties: { list: { type: 'array', items: loose } },
  required: ['list'],
  additionalProperties: false,
};

it.each([
  ['strict where every object is closed and requires all of its properties', strict, true],
  ['not strict for an open object', loose, false],
  ['not strict for an open object within a list', looseWithin, false],
  ['not strict for an optional property', { ...strict, required: ['city'] }, false],
])('the schema of a final answer is sent as the provider takes it, %s', async (_, schema, isStrict) => {
  const answering = request({ messages: [userSays('hi')], output: { name: 'final_answer', schema } });
  const format = { name: 'final_answer', schema, strict: isStrict };
  expect(await sentBy(openai, answering)).toMatchObject({
    response_format: { type: 'json_schema', json_schema: format },
  });
  expect(await sentBy(openaiResponses, answering)).toMatchObject({
    text: { format: { type: 'json_schema', ...format } },
  });
  expect(await sentBySdk('v3', 'acme.chat', answering)).toMatchObject({
    responseFormat: { type: 'json', name: 'final_answer', schema },
  });
});

const closed = { type: 'object', properties: {}, required: [], additionalProperties: false };
/** Every place of a schema that can contain another one. */
const PLACES: { readonly [keyword: string]: (inner: object) => object } = {
  properties: (inner) => ({ ...closed, properties: { a: inner }, required: ['a'] }),
  $defs: (inner) => ({ ...closed, $defs: { a: inner } }),
  definitions: (inner) => ({ ...closed, definitions: { a: inner } }),
  items: (inner) => ({ type: 'array', items: inner }),
  prefixItems: (inner) => ({ type: 'array', prefixItems: [closed, inner] }),
  anyOf: (inner) => ({ anyOf: [closed, inner] }),
  oneOf: (inner) => ({ oneOf: [closed, inner] }),
  allOf: (inner) => ({ allOf: [closed, inner] }),
};
const NOT_STRICT = [
  { type: 'object' },
  { properties: {} },
  { ...closed, additionalProperties: true },
  { ...closed, additionalProperties: { type: 'string' } },
  { type: 'object', properties: {} },
  { ...closed, properties: { a: {}, b: {} }, required: ['a'] },
  { type: 'object', properties: { a: {} }, additionalProperties: false },
];

it.each(Object.entries(PLACES))('an object within %s decides whether the whole schema is strict', (_, within) => {
  const strictOf = (schema: object) => namedSchema({ name: 'n', schema: schema as Json }).strict;
  expect(strictOf(within(closed))).toBe(true);
  expect(strictOf(within(within(closed)))).toBe(true);
  for (const schema of NOT_STRICT)
    expect([schema, strictOf(schema), strictOf(within(schema)), strictOf(within(within(schema)))]).toEqual([
      schema,
      false,
      false,
      false,
    ]);
});

it('models of these adapters hold answers to a schema themselves, except where that would leave out the tools', () => {
  const sdk = (name: string) => aiSdkModel(provider([], { provider: name }).model as never).nativeOutput;
  const models = [openai('m', { apiKey: KEY }), openaiResponses('m', { apiKey: KEY })];
  expect(models.map(({ nativeOutput }) => nativeOutput)).toEqual([true, true]);
  expect([sdk('openai.responses'), sdk('anthropic.messages'), sdk('amazon-bedrock')]).toEqual([
    true,
    undefined,
    undefined,
  ]);
});
