/** The fill level of the context window before a model call, and the effect of each kind of the policy `context`. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { modelMessages } from '../../machines/index.ts';
import {
  ConfigurationError,
  createAgent,
  defineTool,
  type Message,
  ModelError,
  type ModelPart,
} from '../../src/index.ts';
import { windowOf } from '../../src/runtime/currentRequest.ts';
import { type Bench, type BenchOptions, bench, only, restart } from '../support/agentBench.ts';
import { call, during, finish, lines, type Reply, scripted, t } from '../support/scriptedReplies.ts';

describe('the window of an agent', () => {
  const model = (contextWindow?: number) => scripted([], contextWindow === undefined ? {} : { contextWindow });
  it.each([
    ['its own model', model(1), [model(2), model(3)], 1],
    ['the first named model that states one, if its own does not', model(), [model(), model(2), model(3)], 2],
    ['none of its models, if none states one', model(), [model()], undefined],
  ] as const)('is that of %s', (_, own, named, expected) => {
    const models = Object.fromEntries(named.map((each, index) => [`m${index}`, each]));
    expect(windowOf([own], { models, outputs: {} })).toBe(expected);
  });
});

describe('a model that does not state its window', () => {
  it.each([
    ['the agent’s own', [undefined, 1_000]],
    ['one that the request chose', [1_000, undefined]],
  ] as const)('%s answers as if no model of the agent did', async (_, [ofOwn, ofOther]) => {
    const model = (id: string, contextWindow?: number) =>
      scripted([tokens(2_000)], { id, ...(contextWindow !== undefined && { contextWindow, maxOutputTokens: 10 }) });
    const on = await bench({ model: model('own', ofOwn), models: { other: model('other', ofOther) } });
    const options = ofOwn === undefined ? {} : { model: 'other' };
    expect(await on.conversation.send('hi', options).result).toMatchObject({ termination: 'NaturalEnd', turns: 1 });
    expect(only(on.conversation.log(), 'context-warning', 'extension', 'compaction')).toEqual([]);
    // The next request is measured by the window of its own model, which is full.
    const next = on.conversation.send('hi', ofOwn === undefined ? { model: 'other' } : {});
    expect(await next.result).toMatchObject({ termination: 'Stopped', cause: 'context_exhausted' });
  });
});

/** A reply whose call used this many tokens in and out. */
const took = (tokens: number, text = 'ok'): ModelPart[] => [
  t(text),
  { type: 'finish', reason: 'stop', usage: { inputTokens: tokens - 1, outputTokens: 1 } },
];
/** A text of this many tokens, at four characters a token. */
const tokens = (count: number): string => 'x'.repeat(count * 4);
/** Answers with the requested number of tokens. */
const big = defineTool({
  name: 'big',
  description: 'Says much.',
  parameters: z.object({ size: z.number() }),
  execute: ({ size }) => tokens(size),
});
const limits = { resultBytes: 1_000_000 };
/** Nothing is summarized: the effect of pruning alone. */
const pruning = {
  policies: {
    context: [
      { kind: 'warn', at: 0.8 },
      { kind: 'prune', at: 0.8 },
      { kind: 'exhaust', at: 0.95 },
    ],
  },
} as const;

const resultIn = (messages: readonly Message[]): string =>
  messages
    .flatMap((message) => (message.role === 'tool' ? message.content : []))
    .map((part) => ('text' in part ? part.text : ''))
    .join('');

interface Window {
  contextWindow?: number;
  maxOutputTokens?: number;
}
const on = (replies: readonly Reply[], window: Window, options: BenchOptions = {}): Promise<Bench> =>
  bench({ model: scripted(replies, window), tools: [big], ...options, policies: { limits, ...options.policies } });
const say = (to: Bench, text = 'hi') => to.conversation.send(text).result;
const warnings = (to: Bench) => to.conversation.log().filter(({ type }) => type === 'context-warning');
const extensions = (to: Bench) =>
  to.conversation.log().flatMap((entry) => (entry.type === 'extension' ? [[entry.name, entry.value]] : []));

describe('warn', () => {
  const window = { contextWindow: 100_000, maxOutputTokens: 1_000 };

  it.each([
    [79_999, 0],
    [80_000, 0],
    [80_001, 1],
  ])('S003-29: of 100,000 tokens %i are used, including the room for the reply: %i notices', async (used, count) => {
    const to = await on([took(used - 1_000), 'ok'], window);
    await say(to);
    expect(warnings(to)).toEqual([]);
    await say(to);
    expect(warnings(to)).toHaveLength(count);
    if (count > 0) expect(warnings(to)).toMatchObject([{ used, limit: 100_000 }]);
  });

  it('S002-25: system 10,000, messages 140,000 and reserve 10,000 of 200,000 are exactly 80 %, which is not above', async () => {
    const options = { instructions: tokens(10_000), tools: [] };
    const exact = await on(['ok'], { contextWindow: 200_000, maxOutputTokens: 10_000 }, options);
    await say(exact, tokens(140_000));
    expect(warnings(exact)).toEqual([]);
    const above = await on(['ok'], { contextWindow: 200_000 }, options);
    await say(above, tokens(150_000));
    expect(warnings(above)).toMatchObject([{ used: 176_384, limit: 200_000 }]);
  });

  it('the room for a reply is at most 16,384 tokens, even if the model replies with more', async () => {
    const to = await on(['ok'], { contextWindow: 100_000, maxOutputTokens: 60_000 }, { tools: [] });
    await say(to, tokens(70_000));
    expect(warnings(to)).toMatchObject([{ used: 86_384 }]);
  });

  it('S003-29: the notice appears once until use falls below, over runs and restarts', async () => {
    let to = await on([took(80_000), took(81_000), took(82_000), took(10_000)], window);
    for (let count = 0; count < 3; count++) await say(to);
    expect(warnings(to)).toHaveLength(1);
    const model = scripted([took(1_000), took(85_000), took(85_000), 'ok'], window);
    to = await restart(to, { model, tools: [big] });
    await say(to);
    expect(warnings(to)).toHaveLength(1);
    expect(extensions(to)).toEqual([]);
    await say(to);
    expect(extensions(to)).toEqual([['runchart.context-eased', { used: 2_000, limit: 100_000 }]]);
    await say(to);
    expect(warnings(to)).toHaveLength(2);
    await say(to);
    expect(warnings(to)).toHaveLength(2);
  });

  it('context of hooks, steers and tools counts in the next request', async () => {
    const context = tokens(85_000);
    const plugins = [{ name: 'more', beforeInference: () => ({ context }) }];
    const hooked = await on(['ok'], { contextWindow: 100_000, maxOutputTokens: 0 }, { plugins });
    await say(hooked);
    expect(warnings(hooked)).toHaveLength(1);
    const steered: Bench = await on([during(() => steered.conversation.steer(context), 'wait'), 'ok'], {
      contextWindow: 100_000,
      maxOutputTokens: 0,
    });
    await say(steered);
    expect(warnings(steered)).toHaveLength(1);
    expect(steered.model.calls).toHaveLength(2);
  });
});

describe('prune', () => {
  const calls = (callId: string, size: number): ModelPart[] => [call(callId, 'big', { size }), finish('tool-calls')];

  it('S004-25, S002-29: of two user turns, an old result of 70,000 tokens is pruned; its call id and its entry remain', async () => {
    const to = await on([calls('c1', 70_000), 'seen', 'ok'], { contextWindow: 100_000 });
    await say(to);
    expect(extensions(to)).toEqual([]);
    const before = to.conversation.log().find(({ type }) => type === 'tool-result');
    await say(to, 'more');
    expect(extensions(to)).toEqual([['runchart.pruned', { callIds: ['c1'] }]]);
    const sent = lines(to.model.calls[2]?.messages ?? []);
    expect(sent).toEqual([
      'user hi',
      'assistant +c1',
      expect.stringMatching(/^c1 \[This old result/),
      'assistant seen',
      'user more',
    ]);
    expect(to.conversation.log().find(({ type }) => type === 'tool-result')).toBe(before);
    expect(before).toMatchObject({ content: [{ text: tokens(70_000) }] });
  });

  it('S004-25: a restored conversation shows the model the same messages', async () => {
    const to = await on([calls('c1', 70_000), 'seen', 'ok', 'ok'], { contextWindow: 100_000 });
    await say(to);
    await say(to);
    const living = to.conversation.messages();
    expect(modelMessages(to.conversation.log())).toEqual(living);
    const again = await restart(to, { model: scripted([]), tools: [big] });
    expect(again.conversation.messages()).toEqual(living);
  });

  it('S004-25: with one user turn nothing is pruned', async () => {
    const to = await on([calls('c1', 50_000), calls('c2', 20_000), 'ok'], { contextWindow: 100_000 }, pruning);
    await say(to);
    expect(warnings(to)).toHaveLength(1);
    expect(extensions(to)).toEqual([]);
  });

  it('S004-26: nothing is pruned if that saves less than 20,000 tokens', async () => {
    const to = await on([calls('c1', 10_000), calls('c2', 35_000), 'seen', 'ok'], { contextWindow: 70_000 }, pruning);
    await say(to);
    await say(to);
    expect(warnings(to)).toHaveLength(1);
    expect(extensions(to)).toEqual([]);
  });

  it('S004-26: small results and the newest 40,000 tokens are unchanged', async () => {
    const sizes = [3, 25_000, 20_000, 20_000];
    const replies = sizes.map((size, index) => calls(`c${index}`, size));
    const to = await on([...replies, 'seen', 'ok'], { contextWindow: 96_000 }, pruning);
    await say(to);
    await say(to);
    expect(extensions(to)).toEqual([['runchart.pruned', { callIds: ['c1'] }]]);
  });

  it('a result that the model has not received yet is never pruned', async () => {
    const to = await on(['ok', calls('c1', 70_000), 'seen'], { contextWindow: 100_000 });
    await say(to);
    await say(to);
    expect(extensions(to)).toEqual([]);
    expect(lines(to.model.calls[2]?.messages ?? []).at(-1)).toBe(`c1 ${tokens(70_000)}`);
  });

  it("pruned tokens are subtracted from the model's reported usage, even if its next call fails", async () => {
    const failure = new ModelError({ code: 'bad-request' });
    const to = await on([calls('c1', 70_000), took(80_000, 'seen'), failure, 'ok'], { contextWindow: 100_000 });
    await say(to);
    expect(await say(to)).toMatchObject({ termination: 'Error' });
    await say(to);
    const saved = 70_000 - resultIn(to.model.calls[3]?.messages ?? []).length / 4;
    expect(extensions(to)).toEqual([
      ['runchart.pruned', { callIds: ['c1'] }],
      ['runchart.context-eased', { used: Math.ceil(80_000 - saved + 16_384), limit: 100_000 }],
    ]);
  });
});

describe('exhaust', () => {
  it('BED-12: at 95 % the run is Stopped, context_exhausted, before the call', async () => {
    const to = await on([took(78_616), 'never'], { contextWindow: 100_000 });
    await say(to);
    const result = await say(to);
    expect(result).toMatchObject({ termination: 'Stopped', cause: 'context_exhausted', reason: 'error', turns: 0 });
    expect(result.subtype).toBe('error_during_execution');
    expect(to.model.calls).toHaveLength(1);
    expect(only(to.conversation.log(), 'context-warning', 'run-stop').slice(1)).toEqual([
      'context-warning',
      'run-stop error context_exhausted',
    ]);
  });

  it('just below 95 % the run continues', async () => {
    const to = await on([took(78_615), 'ok'], { contextWindow: 100_000 });
    await say(to);
    expect(await say(to)).toMatchObject({ termination: 'NaturalEnd' });
  });

  it('pruning is tried first', async () => {
    const to = await on([[call('c1', 'big', { size: 70_000 })], took(80_000), 'ok'], { contextWindow: 100_000 });
    await say(to);
    expect(await say(to)).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    expect(extensions(to)).toHaveLength(1);
  });

  it('if pruning frees enough room, nothing is summarized', async () => {
    const window = { contextWindow: 200_000, maxOutputTokens: 1_000 };
    const to = await on([[call('c1', 'big', { size: 70_000 })], 'ok', 'ok', 'ok'], window);
    for (const size of [1, 60_000, 40_000]) {
      expect(await say(to, tokens(size))).toMatchObject({ termination: 'NaturalEnd', text: 'ok' });
    }
    expect(extensions(to)).toEqual([['runchart.pruned', { callIds: ['c1'] }]]);
    expect(only(to.conversation.log(), 'compaction')).toEqual([]);
  });

  it('if pruning is not enough, the run ends, and pruned results remain pruned', async () => {
    const to = await on([[call('c1', 'big', { size: 70_000 })], took(80_000)], { contextWindow: 100_000 });
    await say(to);
    expect(await say(to, tokens(90_000))).toMatchObject({ cause: 'context_exhausted' });
    expect(extensions(to)).toEqual([['runchart.pruned', { callIds: ['c1'] }]]);
  });

  it('the context is checked before the limits: if both are reached, the context is reported', async () => {
    const policies = { limits: { ...limits, turns: 1 } };
    const to = await on([[call('c1', 'big', { size: 90_000 })]], { contextWindow: 100_000 }, { policies });
    expect(await say(to)).toMatchObject({ cause: 'context_exhausted', turns: 1 });
    const spacious = await on([[call('c1', 'big', { size: 9 })]], { contextWindow: 100_000 }, { policies });
    expect(await say(spacious)).toMatchObject({ cause: 'max_turns', turns: 1 });
  });

  it('S002-25: a window of 0 is full', async () => {
    const to = await on(['never'], { contextWindow: 0 });
    expect(await say(to)).toMatchObject({ cause: 'context_exhausted', turns: 0 });
  });
});

describe('the policy', () => {
  it('without a window nothing is checked, however long the conversation is', async () => {
    const to = await on([took(5_000_000), 'ok'], {});
    await say(to, tokens(300_000));
    expect(await say(to)).toMatchObject({ termination: 'NaturalEnd' });
    expect([...warnings(to), ...extensions(to)]).toEqual([]);
  });

  it('an empty list switches everything off; compact alone has no effect yet', async () => {
    for (const context of [[], [{ kind: 'compact', at: 0.1 } as const]]) {
      const to = await on(['ok'], { contextWindow: 1_000 }, { policies: { context } });
      expect(await say(to, tokens(5_000))).toMatchObject({ termination: 'NaturalEnd' });
      expect([...warnings(to), ...extensions(to)]).toEqual([]);
    }
  });

  it('each kind has its own threshold', async () => {
    const context = [{ kind: 'warn', at: 0.1 } as const];
    const to = await on(['ok'], { contextWindow: 100_000, maxOutputTokens: 0 }, { policies: { context } });
    await say(to, tokens(99_000));
    expect(warnings(to)).toHaveLength(1);
  });

  it.each([
    ['no list', 'all'],
    ['an unknown kind', [{ kind: 'forget', at: 0.5 }]],
    ['a share above 1', [{ kind: 'warn', at: 80 }]],
    ['no share', [{ kind: 'warn' }]],
    ['not a number', [{ kind: 'warn', at: Number.NaN }]],
    [
      'a repeated kind',
      [
        { kind: 'warn', at: 0.5 },
        { kind: 'warn', at: 0.8 },
      ],
    ],
    ['nothing', [null]],
  ])('%s is refused at the start', (_, context) => {
    const agent = () => createAgent({ model: scripted([]), policies: { context: context as never } });
    expect(agent).toThrow(ConfigurationError);
    expect(agent).toThrow(/policies\.context must be a list/);
  });
});
