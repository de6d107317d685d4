/**
 * Tests the cost of replies for every combination of missing prices and counts. Invariant: the expected sums are
 * computed in this file, without code of the library.
 */
import { describe, expect, it } from 'vitest';
import {
  ConfigurationError,
  costOf,
  type LogEntry,
  ModelError,
  memoryStore,
  type Prices,
  subAgents,
} from '../../src/index.ts';
import { type Bench, type BenchOptions, bench, restart } from '../support/agentBench.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, type Reply, type ScriptedModel, scripted, t } from '../support/scriptedReplies.ts';
import { byTask, spawn, submit } from '../support/subAgentBench.ts';

const FIELDS = ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens'] as const;
/** A model's report. Any value may replace a count. */
type Reported = { [field in (typeof FIELDS)[number]]?: unknown };

/** Every way to fill the fields: one value of each list, `undefined` for a field that is left out. */
function* each<T extends object>(lists: { [K in keyof T]-?: readonly unknown[] }): Generator<T> {
  let made: { [key: string]: unknown }[] = [{}];
  for (const [key, values] of Object.entries<readonly unknown[]>(lists)) {
    made = made.flatMap((one) => values.map((value) => (value === undefined ? { ...one } : { ...one, [key]: value })));
  }
  yield* made as T[];
}

const PRICE_TABLES: readonly (Prices | undefined)[] = [
  undefined,
  ...each<Prices>({
    input: [0, 3],
    output: [0, 15],
    cachedInput: [undefined, 0, 0.3],
    cacheWrite: [undefined, 0, 3.75],
  }),
];
/** 5,000 cached tokens are more than the whole input. The other unusual values are not counts. */
const USAGES: readonly (Reported | undefined)[] = [
  undefined,
  ...each<Reported>({
    inputTokens: [undefined, 0, 1_000, -7, '12'],
    outputTokens: [undefined, 0, 100, Number.NaN],
    cachedInputTokens: [undefined, 0, 400, 5_000, null],
    cacheWriteTokens: [undefined, 0, 100, Number.POSITIVE_INFINITY],
  }),
];

/**
 * By hand. An invalid count is 0. Tokens that the cache read or stored have the input's price if they have none of
 * their own.
 */
function byHand(prices: Prices | undefined, usage: Reported = {}): number | null {
  if (prices === undefined) return null;
  const count = (field: keyof Reported): number => {
    const value = usage[field];
    return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY ? value : 0;
  };
  const read = count('cachedInputTokens');
  const written = count('cacheWriteTokens');
  const rest = count('inputTokens') - read - written;
  let micro = count('outputTokens') * prices.output;
  if (rest > 0) micro += rest * prices.input;
  micro += read * ('cachedInput' in prices ? (prices.cachedInput ?? Number.NaN) : prices.input);
  micro += written * ('cacheWrite' in prices ? (prices.cacheWrite ?? Number.NaN) : prices.input);
  return micro / 1_000_000;
}

const addUp = (amounts: readonly (number | null)[]): number | null =>
  amounts.reduce((sum, amount) => (sum === null || amount === null ? null : sum + amount), 0);

const reply = (usage: Reported | undefined, ...parts: readonly ReturnType<typeof t>[]): Reply => [
  ...(parts.length > 0 ? parts : [t('ok')]),
  {
    type: 'finish',
    reason: parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop',
    ...(usage && { usage: usage as never }),
  },
];
const modelOf = (id: string, prices: Prices | undefined, replies: readonly Reply[]): ScriptedModel =>
  scripted(replies, { id, ...(prices && { prices }) });

const same = (found: number | null | undefined, expected: number | null): boolean =>
  expected === null ? found === null : typeof found === 'number' && Math.abs(found - expected) < 1e-12;
const repliesOf = (log: readonly LogEntry[]) => log.flatMap((entry) => (entry.type === 'model-reply' ? [entry] : []));

/** Returns the sums in the log, its fold and the list of conversations, before and after a restart. */
async function sums(on: Bench, options: BenchOptions): Promise<(number | null | undefined)[]> {
  const read = async ({ conversation, agent }: Bench) => [
    costOf(conversation.log()).total.costUsd,
    (await agent.list())[0]?.costUsd,
  ];
  const here = await read(on);
  return [...here, ...(await read(await restart(on, options)))];
}

describe('the cost of one reply', () => {
  it.each(PRICE_TABLES.map((prices, index) => [JSON.stringify(prices) ?? 'no prices', index] as const))(
    'S004-29: with %s each usage costs the same as a sum by hand, in its entry, its result, the log and the list',
    async (_, index) => {
      const prices = PRICE_TABLES[index];
      // Each table covers a share of the usages. Together they cover each pair of values many times.
      const usages = USAGES.filter((_, at) => at % 9 === index % 9);
      const model = modelOf(
        'm',
        prices,
        usages.map((usage) => reply(usage)),
      );
      const on = await bench({ model, store: memoryStore() });
      const wrong: string[] = [];
      for (const usage of usages) {
        const { costUsd } = await on.conversation.send('hi').result;
        const expected = byHand(prices, usage);
        const logged = repliesOf(on.conversation.log()).at(-1)?.costUsd;
        if (!same(costUsd, expected) || !same(logged, expected))
          wrong.push(`${String(JSON.stringify(usage))}: ${costUsd} and ${logged}, by hand ${expected}`);
      }
      expect(wrong).toEqual([]);
      const total = addUp(usages.map((usage) => byHand(prices, usage)));
      for (const sum of await sums(on, { model })) expect(same(sum, total), `${sum}, by hand ${total}`).toBe(true);
    },
  );

  it('a cost that is not finite is unknown', async () => {
    const model = modelOf('m', { input: 1e300, output: 1 }, [reply({ inputTokens: 1e300 })]);
    const { conversation } = await bench({ model });
    expect((await conversation.send('hi').result).costUsd).toBeNull();
    expect(repliesOf(conversation.log())[0]?.costUsd).toBeNull();
  });
});

const FULL: Prices = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 };
const SETS: readonly (readonly [name: string, prices: Prices | undefined])[] = [
  ['no prices', undefined],
  ['all prices', FULL],
  ['no cache prices', { input: 2, output: 8 }],
  ['no price for cache writes', { input: 2, output: 8, cachedInput: 0.2 }],
  ['prices of 0', { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 }],
];
const PAIRS = SETS.flatMap(([a, main]) => SETS.map(([b, other]) => [a, b, main, other] as const));
const FIRST: Reported = { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400, cacheWriteTokens: 50 };
const SECOND: Reported = { inputTokens: 2_000, outputTokens: 10, cacheWriteTokens: 700 };
const THIRD: Reported = { inputTokens: 30, outputTokens: 7, cachedInputTokens: 30 };
const failed = (): Error => new ModelError({ code: 'server' });

/** A reply whose stream breaks after its text, so its usage is unknown. */
const broken = (): Reply =>
  async function* () {
    yield t('half');
    throw failed();
  };

describe('the cost of several models', () => {
  it.each(PAIRS)(
    'of a model with %s that fails, and a fallback with %s: each reply has the price of its model',
    async (_a, _b, main, other) => {
      const fallback = modelOf('b', other, [reply(SECOND), reply(THIRD)]);
      const model = modelOf('a', main, [
        failed(),
        broken(),
        reply(FIRST, call('c1', 'echo', { text: 'x' })),
        failed(),
        failed(),
        failed(),
        failed(),
        failed(),
        failed(),
      ]);
      const policies = { modelRetry: { attempts: 3, baseMs: 1, fallbackModels: [fallback] } };
      const options = { model, tools: [echoTool().tool], policies };
      const on = await bench({ ...options, store: memoryStore() });
      const run = on.conversation.send('one');
      await on.clock.until(run.result, 60_000);
      const expected = [byHand(main, FIRST), byHand(other, SECOND)];
      expect(
        repliesOf(on.conversation.log()).map(({ model, costUsd }, at) => [model, same(costUsd, expected[at] ?? null)]),
      ).toEqual([
        ['a', true],
        ['b', true],
      ]);
      expect(same((await run.result).costUsd, addUp(expected))).toBe(true);
      const next = on.conversation.send('two');
      await on.clock.until(next.result, 60_000);
      expect(same((await next.result).costUsd, byHand(other, THIRD))).toBe(true);
      const total = addUp([...expected, byHand(other, THIRD)]);
      for (const sum of await sums(on, options)) expect(same(sum, total), `${sum}, by hand ${total}`).toBe(true);
      const { models } = costOf(on.conversation.log());
      expect(models.map(({ model, costUsd }) => [model, costUsd === null])).toEqual([
        ['a', main === undefined],
        ['b', other === undefined],
      ]);
    },
  );

  it.each(PAIRS)(
    'of a model with %s and two sub-agents with %s: the sum is that of all three logs',
    async (_a, _b, main, other) => {
      const children = byTask(
        {
          alpha: [reply(FIRST, call('e', 'echo', { text: 'x' })), reply(SECOND, submit('s', 'A'))],
          beta: [reply(THIRD, submit('s', 'B'))],
        },
        { id: 'b', ...(other && { prices: other }) },
      );
      const model = modelOf('a', main, [reply(SECOND, spawn('p', 'alpha', 'beta')), reply(THIRD)]);
      const options = { model, tools: [echoTool().tool, subAgents({ model: children })] };
      const on = await bench({ ...options, store: memoryStore() });
      const { costUsd } = await on.conversation.send('hi').result;
      const own = [byHand(main, SECOND), byHand(main, THIRD)];
      const theirs = [byHand(other, FIRST), byHand(other, SECOND), byHand(other, THIRD)];
      const total = addUp([...own, ...theirs]);
      expect(same(costOf(on.conversation.log()).total.costUsd, total)).toBe(true);
      expect(same(costUsd, total), `${costUsd}, by hand ${total}`).toBe(true);
      const { models } = costOf(on.conversation.log());
      expect(same(models.find(({ model }) => model === 'b')?.costUsd, addUp(theirs))).toBe(true);
      for (const sum of await sums(on, options)) expect(same(sum, total), `${sum}, by hand ${total}`).toBe(true);
    },
  );
});

describe('a budget', () => {
  const turn = (id: string, usage: Reported): Reply => reply(usage, call(id, 'echo', { text: id }));
  const priced = SETS.flatMap(([name, prices]) => (prices ? [[name, prices] as const] : []));
  const spent = (prices: Prices, count: number): number | null =>
    addUp([FIRST, SECOND, THIRD].slice(0, count).map((usage) => byHand(prices, usage)));

  it.each(priced)(
    'with %s ends the run before the first call that begins at or above it, over a restart too',
    async (name, prices) => {
      for (const calls of [1, 2, 3]) {
        const budget = spent(prices, calls);
        if (budget === null || budget === 0) continue;
        // The sum of floating numbers may be a hair below the sum by hand.
        const policies = { limits: { costUsd: budget - 1e-12 } };
        const replies = [turn('c1', FIRST), turn('c2', SECOND), turn('c3', THIRD), 'never'];
        const whole = await bench({ model: modelOf('m', prices, replies), tools: [echoTool().tool], policies });
        const ended = await whole.conversation.send('hi').result;
        expect([name, ended.cause, ended.turns, whole.model.calls.length]).toEqual([name, 'max_budget', calls, calls]);

        const first = modelOf('m', prices, [reply(FIRST), 'never']);
        const before = await bench({ model: first, tools: [echoTool().tool], policies, store: memoryStore() });
        await before.conversation.send('one').result;
        const rest = modelOf('m', prices, replies.slice(1));
        const after = await restart(before, { model: rest, tools: [echoTool().tool], policies });
        const resumed = await after.conversation.send('two').result;
        expect([name, resumed.cause, rest.calls.length]).toEqual([name, 'max_budget', calls - 1]);
      }
    },
  );

  it('of prices of 0 is never reached by replies that cost nothing', async () => {
    const policies = { limits: { costUsd: 0.000001 } };
    const prices: Prices = { input: 0, output: 0 };
    const replies = [turn('c1', FIRST), turn('c2', SECOND), 'done'];
    const { conversation } = await bench({ model: modelOf('m', prices, replies), tools: [echoTool().tool], policies });
    expect((await conversation.send('hi').result).cause).toBe('end_turn');
  });

  it('counts what sub-agents cost: the parent is not called again', async () => {
    for (const [, prices] of priced) {
      const cost = byHand(prices, FIRST);
      if (!cost) continue;
      const children = byTask({ alpha: [reply(FIRST, submit('s', 'A'))] }, { id: 'b', prices });
      const model = modelOf('a', { input: 0, output: 0 }, [reply(SECOND, spawn('p', 'alpha')), 'never']);
      const policies = { limits: { costUsd: cost - 1e-12 } };
      const { conversation } = await bench({ model, tools: [subAgents({ model: children })], policies });
      expect(await conversation.send('hi').result).toMatchObject({ cause: 'max_budget', turns: 1 });
    }
  });

  it('counts as spent where the log has a reply without a price, and no model is called', async () => {
    const before = await bench({ model: modelOf('m', undefined, [reply(FIRST)]), store: memoryStore() });
    await before.conversation.send('one').result;
    const model = modelOf('m', FULL, ['never']);
    const after = await restart(before, { model, policies: { limits: { costUsd: 1_000 } } });
    expect(await after.conversation.send('two').result).toMatchObject({ cause: 'max_budget', costUsd: 0 });
    expect(model.calls).toHaveLength(0);
  });

  it('is refused at start where the model, a fallback or a sub-agent has no prices, and names it', async () => {
    const policies = { limits: { costUsd: 1 } };
    const has = (): ScriptedModel => modelOf('priced', FULL, []);
    const hasNone = (): ScriptedModel => modelOf('unpriced', undefined, []);
    const withFallback = { ...policies, modelRetry: { fallbackModels: [hasNone()] } };
    for (const options of [
      { model: hasNone(), policies },
      { model: has(), policies: withFallback },
      { model: has(), policies, tools: [subAgents({ model: hasNone() })] },
    ]) {
      const error = await bench(options).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConfigurationError);
      expect(String(error)).toContain('unpriced');
    }
    await expect(bench({ model: has(), policies })).resolves.toBeDefined();
  });
});
