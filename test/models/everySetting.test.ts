/**
 * Every setting of every adapter, as its option, as a setting of the request, and as both. Invariant: the names of the APIs
 * are written in this file by hand, and each value, also 0 and false, is sent unchanged.
 */
import { describe, expect, it } from 'vitest';
import type { Json } from '../../machines/vocabulary.ts';
import { aiSdkModel } from '../../src/models/aiSdk/aiSdk.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import type { Model, ModelRequest } from '../../src/models/model.ts';
import { openai, openaiResponses } from '../../src/models/openai/index.ts';
import { KEY, play, request } from './scriptedFetch.ts';
import { provider } from './sdkProvider.ts';

type Fields = { readonly [name: string]: unknown };
type Adapter = (options: Fields) => { model: Model; sent: Fields[] };

/** A model that sends to a server, which refuses every request. */
const onWire =
  (make: (name: string, options: never) => Model, name: string): Adapter =>
  (options) => {
    const sent: Fields[] = [];
    const fetch = async (_: unknown, { body }: RequestInit = {}): Promise<Response> => {
      sent.push(JSON.parse(String(body)));
      return new Response('', { status: 500 });
    };
    return { model: make(name, { apiKey: KEY, baseURL: 'http://model.test/v1', fetch, ...options } as never), sent };
  };
const bySdk =
  (specificationVersion: string): Adapter =>
  (options) => {
    const { model, asked } = provider([], { specificationVersion });
    return { model: aiSdkModel(model as never, options), sent: asked };
  };
const ADAPTERS = {
  chat: onWire(openai, 'gpt-x'),
  responses: onWire(openaiResponses, 'gpt-x'),
  messages: onWire(anthropic, 'claude-x'),
  v2: bySdk('v2'),
  v3: bySdk('v3'),
  v4: bySdk('v4'),
} as const;
type Name = keyof typeof ADAPTERS;
const NAMES = Object.keys(ADAPTERS) as Name[];

const TOOLS: ModelRequest['tools'] = [{ name: 'look', description: 'Looks.', parameters: { type: 'object' } }];
async function sentBy(name: Name, options: Fields, asked: Partial<ModelRequest> = {}): Promise<Fields> {
  const { model, sent } = ADAPTERS[name](options);
  await play(model, request(asked));
  expect(sent).toHaveLength(1);
  return sent[0] ?? {};
}
/** The value at a path of names. */
const at = (fields: Fields, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (value as Fields | undefined)?.[key], fields);

/** Where each adapter sends a setting; `-`: it takes none of that name. */
type Row = readonly [
  setting: string,
  values: readonly unknown[],
  paths: Readonly<Record<'chat' | 'responses' | 'messages' | 'sdk', string>>,
];
const row = (setting: string, values: readonly unknown[], ...paths: [string, string, string, string]): Row => {
  const [chat, responses, messages, sdk] = paths;
  return [setting, values, { chat, responses, messages, sdk }];
};
const pathOf = (paths: Row[2], name: Name): string =>
  paths[name === 'v2' || name === 'v3' || name === 'v4' ? 'sdk' : name];

/** Options of the model. */
const OPTIONS: readonly Row[] = [
  row('temperature', [0, 0.5, 2], 'temperature', 'temperature', 'temperature', 'temperature'),
  row('topP', [0, 0.5, 1], 'top_p', 'top_p', 'top_p', '-'),
  row('maxOutputTokens', [1, 900], 'max_tokens', 'max_output_tokens', 'max_tokens', 'maxOutputTokens'),
  row('reasoningEffort', ['low', 'high'], 'reasoning_effort', 'reasoning.effort', '-', '-'),
  row('reasoningSummary', ['auto', 'detailed'], '-', 'reasoning.summary', '-', '-'),
  row('promptCacheKey', ['user-7'], '-', 'prompt_cache_key', '-', '-'),
  row('seed', [0, -1, 7], 'seed', '-', '-', '-'),
  row('stop', ['x', ['a', 'b'], []], 'stop', '-', '-', '-'),
  row('providerOptions', [{ acme: { keep: false } }], '-', '-', '-', 'providerOptions'),
];
/** Options that are sent with tools only. */
const WITH_TOOLS: readonly Row[] = [
  row('toolChoice', [{ type: 'function' }], 'tool_choice', 'tool_choice', 'tool_choice', '-'),
  row('parallelToolCalls', [false, true], 'parallel_tool_calls', 'parallel_tool_calls', '-', '-'),
];
/** Settings of one request. */
const SETTINGS: readonly Row[] = [
  ...OPTIONS.slice(0, 1),
  row('topP', [0, 0.5, 1], 'top_p', 'top_p', 'top_p', 'topP'),
  ...OPTIONS.slice(2, 4),
];

const cases = (rows: readonly Row[]) =>
  NAMES.flatMap((name) =>
    rows.flatMap(([setting, values, paths]) =>
      pathOf(paths, name) === '-' ? [] : [[name, setting, pathOf(paths, name), values] as const],
    ),
  );

describe('an option', () => {
  it.each(cases(OPTIONS))('%s: %s is sent as %s, with and without tools, whatever its value', async (...testCase) => {
    const [name, option, path, values] = testCase;
    for (const value of values) {
      expect(at(await sentBy(name, { [option]: value }), path)).toEqual(value);
      expect(at(await sentBy(name, { [option]: value }, { tools: TOOLS }), path)).toEqual(value);
    }
    if (name !== 'messages' || option !== 'maxOutputTokens') expect(at(await sentBy(name, {}), path)).toBeUndefined();
  });

  it.each(cases(WITH_TOOLS))('%s: %s is sent as %s with tools only', async (name, option, path, values) => {
    for (const value of values) {
      expect(at(await sentBy(name, { [option]: value }, { tools: TOOLS }), path)).toEqual(value);
      expect(await sentBy(name, { [option]: value })).not.toHaveProperty(path);
    }
  });

  it.each(NAMES)('%s: one that is undefined is the same as none', async (name) => {
    const options = [...OPTIONS, ...WITH_TOOLS].filter(([, , paths]) => pathOf(paths, name) !== '-');
    const undefinedOptions = Object.fromEntries(options.map(([option]) => [option, undefined]));
    const asked = { tools: TOOLS };
    const [sent, without] = [await sentBy(name, undefinedOptions, asked), await sentBy(name, {}, asked)];
    expect({ ...sent, abortSignal: 0 }).toEqual({ ...without, abortSignal: 0 });
  });

  it.each(NAMES)(
    '%s: the schema of a tool has properties, and no choice at its root, which servers refuse',
    async (name) => {
      const path = { chat: 'function.parameters', responses: 'parameters', messages: 'input_schema' }[name as string];
      const sentSchema = async (parameters: Json): Promise<unknown> => {
        const { tools } = await sentBy(name, {}, { tools: [{ name: 'f', description: '', parameters }] });
        return at((tools as Fields[])[0] ?? {}, path ?? 'inputSchema');
      };
      const a = { type: 'string' };
      const plain = { type: 'object', properties: { a, b: { anyOf: [a, { type: 'null' }] } }, required: ['a'] };
      expect(await sentSchema(plain)).toEqual(plain);
      expect(await sentSchema({ type: 'object' })).toEqual({ type: 'object', properties: {} });
      const either = [{ required: ['a'] }, { required: ['b'] }];
      for (const choice of ['anyOf', 'oneOf', 'allOf'])
        expect(await sentSchema({ ...plain, [choice]: either })).toEqual(plain);
      const branches = [{ properties: { c: { type: 'number' }, a: {} } }, true, { properties: { d: a } }];
      expect(await sentSchema({ type: 'object', properties: { a }, anyOf: branches })).toEqual({
        type: 'object',
        properties: { a, c: { type: 'number' }, d: a },
      });
      const kinds = ['read', 'write', 'read'].map((kind) => ({ properties: { kind: { const: kind } } }));
      expect(await sentSchema({ type: 'object', oneOf: kinds })).toEqual({
        type: 'object',
        properties: { kind: { anyOf: [{ const: 'read' }, { const: 'write' }] } },
      });
    },
  );

  it('with tools of the provider alone, a choice of tools is sent too', async () => {
    const search = { type: 'web_search' };
    const responses = await sentBy('responses', {
      ...{ builtInTools: [search], toolChoice: 'required', parallelToolCalls: false },
    });
    expect(responses).toMatchObject({ tools: [search], tool_choice: 'required', parallel_tool_calls: false });
    const choice = { type: 'any' };
    const messages = await sentBy('messages', { extraBody: { tools: [search] }, toolChoice: choice, cache: false });
    expect(messages).toMatchObject({ tools: [search], tool_choice: choice });
  });
});

describe('a setting of the request', () => {
  const own: Fields = { temperature: 1, topP: 0.7, maxOutputTokens: 77, reasoningEffort: 'medium' };
  /** The options that the adapter takes. */
  const ownOf = (name: Name): Fields =>
    Object.fromEntries(
      OPTIONS.flatMap(([option, , paths]) =>
        option in own && pathOf(paths, name) !== '-' ? [[option, own[option]]] : [],
      ),
    );

  it.each(cases(SETTINGS))('%s: %s is sent as %s, in place of the option', async (name, setting, path, values) => {
    for (const value of values) {
      for (const tools of [[], TOOLS]) {
        expect(at(await sentBy(name, {}, { [setting]: value, tools }), path)).toEqual(value);
        const sent = await sentBy(name, ownOf(name), { [setting]: value, tools });
        expect(at(sent, path)).toEqual(value);
        // The other options hold.
        for (const [other, , paths] of OPTIONS)
          if (other in ownOf(name) && other !== setting) expect(at(sent, pathOf(paths, name))).toEqual(own[other]);
      }
    }
  });

  it.each<[Name, Fields | undefined, Fields]>([
    ['v2', undefined, { providerOptions: { acme: { reasoningEffort: 'low' } } }],
    ['v3', undefined, { providerOptions: { acme: { reasoningEffort: 'low' } } }],
    ['v4', undefined, { reasoning: 'low' }],
    [
      'v3',
      { acme: { a: 1, reasoningEffort: 'high' }, other: { b: 2 } },
      { providerOptions: { acme: { a: 1, reasoningEffort: 'low' }, other: { b: 2 } } },
    ],
    ['v4', { acme: { a: 1 } }, { reasoning: 'low', providerOptions: { acme: { a: 1 } } }],
  ])('%s: the effort of the request with the provider options %j', async (name, providerOptions, expected) => {
    const options = providerOptions ? { providerOptions } : {};
    const { reasoning, providerOptions: sent } = await sentBy(name, options, { reasoningEffort: 'low' });
    const sentOptions = {
      ...(reasoning !== undefined && { reasoning }),
      ...(sent !== undefined && { providerOptions: sent }),
    };
    expect(sentOptions).toEqual(expected);
  });

  it.each<[NonNullable<ModelRequest['toolChoice']>, unknown, unknown, unknown, unknown]>([
    ['auto', 'auto', 'auto', { type: 'auto' }, { type: 'auto' }],
    ['none', 'none', 'none', { type: 'none' }, { type: 'none' }],
    ['required', 'required', 'required', { type: 'any' }, { type: 'required' }],
    [
      { tool: 'look' },
      { type: 'function', function: { name: 'look' } },
      { type: 'function', name: 'look' },
      { type: 'tool', name: 'look' },
      { type: 'tool', toolName: 'look' },
    ],
  ])('the choice of tools %j is sent in the form of each API, with tools only', async (toolChoice, ...forms) => {
    const [chat, responses, messages, sdk] = forms;
    const expected = { chat, responses, messages, v2: sdk, v3: sdk, v4: sdk };
    for (const name of NAMES) {
      const field = name.startsWith('v') ? 'toolChoice' : 'tool_choice';
      const option = name.startsWith('v') ? {} : { toolChoice: { type: 'other' } };
      for (const options of [{}, option]) {
        expect([name, (await sentBy(name, options, { toolChoice, tools: TOOLS }))[field]]).toEqual([
          name,
          expected[name],
        ]);
        expect(await sentBy(name, options, { toolChoice })).not.toHaveProperty(field);
      }
    }
  });
});

describe('the extra body', () => {
  const foreign = { model: 'x', messages: [], input: [], stream: false, store: true, temperature: 9, top_p: 9 };
  const limits = { max_tokens: 9, max_output_tokens: 9 };

  it.each(['chat', 'responses', 'messages'] as const)(
    '%s: adds fields and changes none of the library',
    async (name) => {
      const options = { temperature: 0, topP: 0, maxOutputTokens: 5 };
      const asked = { system: 's', tools: TOOLS, output: { name: 'answer', schema: { type: 'object' } } };
      const plain = await sentBy(name, options, asked);
      const extraBody = { ...foreign, ...limits, system: 'x', instructions: 'x', mine: 0 };
      const sent = await sentBy(name, { ...options, extraBody }, asked);
      expect(sent).toMatchObject({ ...plain, mine: 0 });
      // Without an option and a setting, the extra body decides.
      const bare = await sentBy(name, { extraBody: { temperature: 9, top_p: 8 } });
      expect(bare).toMatchObject({ temperature: 9, top_p: 8 });
    },
  );

  it('of the Responses API joins reasoning, text and include with what the library writes', async () => {
    const extraBody = {
      reasoning: { context: 'auto', effort: 'x', summary: 'x' },
      text: { verbosity: 'low', format: 'x' },
      include: ['logprobs', 'reasoning.encrypted_content'],
    };
    const output = { name: 'answer', schema: { type: 'object' } };
    const sent = await sentBy('responses', { extraBody, reasoningEffort: 'low', reasoningSummary: 'auto' }, { output });
    expect(sent).toMatchObject({
      reasoning: { context: 'auto', effort: 'low', summary: 'auto' },
      text: { verbosity: 'low', format: { type: 'json_schema', name: 'answer' } },
      include: ['logprobs', 'reasoning.encrypted_content'],
    });
    const plain = await sentBy('responses', { extraBody });
    expect(plain).toMatchObject({ reasoning: extraBody.reasoning, text: extraBody.text });
    // A model that does not reason receives only the request of the extra body.
    const { model, sent: bodies } = onWire(openaiResponses, 'gpt-4o')({ extraBody: { include: ['logprobs'] } });
    await play(model);
    expect(bodies[0]?.include).toEqual(['logprobs']);
  });

  it('of the Messages API joins thinking, effort and tools with what the library writes', async () => {
    const extraBody = {
      thinking: { display: 'omitted', type: 'x', budget_tokens: 1 },
      output_config: { task_budget: 3, effort: 'x', format: 'x' },
      tools: [{ type: 'web_search' }, 'no tool'],
    };
    const output = { name: 'answer', schema: { type: 'object' } };
    const asked = { output, reasoningEffort: 'max', tools: TOOLS };
    expect(await sentBy('messages', { extraBody, thinking: 'adaptive' }, asked)).toMatchObject({
      thinking: { display: 'omitted', type: 'adaptive' },
      output_config: { task_budget: 3, effort: 'max', format: { type: 'json_schema', schema: { type: 'object' } } },
      tools: [{ name: 'look' }, { type: 'web_search' }],
    });
    const budget = { thinking: { budgetTokens: 1_024 }, maxOutputTokens: 1_025 };
    expect(await sentBy('messages', { extraBody, ...budget }, asked)).toMatchObject({
      thinking: { display: 'omitted', type: 'enabled', budget_tokens: 1_024 },
      output_config: { task_budget: 3, effort: 'x' },
    });
  });
});

describe('the limits of thinking', () => {
  it.each([
    [1_024, 1_025, true],
    [1_024, 1_024, false],
    [1_024, 1_023, false],
    [2_000, 64_000, true],
  ])(
    'with a budget of %i and a limit of %i in the request the model thinks: %s',
    async (budgetTokens, limit, thinks) => {
      const options = { thinking: { budgetTokens }, temperature: 0, topP: 0 };
      const sent = await sentBy('messages', options, { maxOutputTokens: limit });
      const sampling = { temperature: 0, top_p: 0 };
      expect(sent.thinking).toEqual(thinks ? { type: 'enabled', budget_tokens: budgetTokens } : undefined);
      expect({ temperature: sent.temperature, top_p: sent.top_p }).toEqual(thinks ? {} : sampling);
    },
  );

  it.each([
    [1_023, false],
    [1_024, true],
    [1_024.5, false],
  ])('a budget of %d is possible: %s', (budgetTokens, isPossible) => {
    const make = () => ADAPTERS.messages({ thinking: { budgetTokens } });
    if (isPossible) expect(make).not.toThrow();
    else expect(make).toThrow('thinking');
  });

  it.each<[unknown, boolean]>([
    [{ type: 'any' }, false],
    [{ type: 'tool', name: 'look' }, false],
    [{ type: 'auto' }, true],
    [{ type: 'none' }, true],
  ])(
    'with the choice of tools %j as option the model thinks: %s, and always without tools',
    async (toolChoice, thinks) => {
      for (const thinking of ['adaptive', { budgetTokens: 2_048 }]) {
        const options = { toolChoice, thinking, temperature: 0 };
        const sent = await sentBy('messages', options, { tools: TOOLS });
        expect(['thinking' in sent, 'temperature' in sent]).toEqual([thinks, !thinks]);
        expect(await sentBy('messages', options)).toHaveProperty('thinking');
      }
    },
  );
});

describe('a limit that is an option', () => {
  it.each(NAMES)('%s: contextWindow and maxOutputTokens are positive whole numbers', (name) => {
    for (const option of ['contextWindow', 'maxOutputTokens']) {
      for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5'])
        expect(() => ADAPTERS[name]({ [option]: value })).toThrow(option);
      expect(ADAPTERS[name]({ [option]: 1 }).model).toHaveProperty(option, 1);
      expect(ADAPTERS[name]({}).model).not.toHaveProperty(option);
    }
  });

  it.each(NAMES)('%s: a model without images accepts none, and its own list replaces the default list', (name) => {
    const accepted = ADAPTERS[name]({}).model.accepts ?? [];
    expect(accepted).toContain('application/pdf');
    expect(accepted).toContain('image/*');
    const without = ADAPTERS[name]({ imageLimits: { mediaTypes: [] } }).model.accepts;
    expect(without).toEqual(accepted.filter((type) => type !== 'image/*'));
    expect(ADAPTERS[name]({ imageLimits: { maxPixels: 5 } }).model.accepts).toEqual(accepted);
    for (const accepts of [[], ['text/*']])
      expect(ADAPTERS[name]({ accepts, imageLimits: { mediaTypes: [] } }).model.accepts).toEqual(accepts);
    for (const accepts of [['pdf'], ['a/b/c'], [7], 'image/*', ['image/']])
      expect(() => ADAPTERS[name]({ accepts })).toThrow('accepts');
  });
});
