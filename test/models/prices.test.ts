/** Tests prices and context windows by the name of a model, and the cost of a reply with them. */
import { calcPrice } from '@pydantic/genai-prices';
import { describe, expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { knownModel } from '../../src/models/prices.ts';
import { costOf } from '../../src/runtime/modelTurn.ts';
import { bench } from '../support/agentBench.ts';
import { finish, scripted, t } from '../support/scriptedReplies.ts';

const usage = { inputTokens: 1000, outputTokens: 100, cachedInputTokens: 400, cacheWriteTokens: 0, reasoningTokens: 0 };

describe('knownModel', () => {
  it('BED-12: a listed model has its prices and its window', () => {
    const { prices, contextWindow } = knownModel('gpt-4o');
    expect(contextWindow).toBe(128_000);
    expect(Object.keys(prices ?? {}).sort()).toEqual(['cachedInput', 'input', 'output']);
    for (const price of Object.values(prices ?? {})) expect(price).toBeGreaterThan(0);
    expect(prices?.cachedInput).toBeLessThan(prices?.input ?? 0);
  });

  it('if long prompts cost more, the price is that of a short one; writing to the cache has its own price', () => {
    const { prices } = knownModel('claude-sonnet-4-5');
    expect(Object.keys(prices ?? {}).sort()).toEqual(['cacheWrite', 'cachedInput', 'input', 'output']);
    for (const price of Object.values(prices ?? {})) expect(price).toEqual(expect.any(Number));
    const { input = 0, cachedInput = 0, cacheWrite = 0 } = prices ?? {};
    expect(cachedInput).toBeLessThan(input);
    expect(cacheWrite).toBeGreaterThan(input);
  });

  it.each(['gpt-4o', 'claude-sonnet-4-5', 'claude-opus-4-1', 'gemini-2.5-pro', 'deepseek-chat'])(
    'each price of %s is that of the list under its own name',
    (name) => {
      const list = calcPrice({ input_tokens: 1, output_tokens: 1 }, name)?.model_price ?? {};
      const priceOf = (price: number | { base: number } | undefined) =>
        typeof price === 'object' ? price.base : price;
      const own = {
        input: 'input_mtok',
        output: 'output_mtok',
        cachedInput: 'cache_read_mtok',
        cacheWrite: 'cache_write_mtok',
      };
      const expected = Object.entries(own).map(([price, field]) => [price, priceOf(list[field as keyof typeof list])]);
      const { prices = {} } = knownModel(name);
      expect(Object.keys(own).map((price) => [price, prices[price as keyof typeof prices]])).toEqual(expected);
    },
  );

  it.each(['a-model-nobody-has', '', '__proto__', 'constructor'])('an unknown model %j is not guessed at', (name) => {
    expect(knownModel(name)).toEqual({});
  });

  it.each([
    ['voyage-3', ['input_mtok']],
    ['gemini-embedding-001', ['input_mtok']],
    ['whisper-1', []],
  ])('%s, whose list has no price of the output, has no prices, since a missing one is not 0', (name, listed) => {
    const list: object = calcPrice({ input_tokens: 1, output_tokens: 1 }, name)?.model_price ?? {};
    expect(['input_mtok', 'output_mtok'].filter((field) => field in list)).toEqual(listed);
    expect(knownModel(name)).not.toHaveProperty('prices');
  });

  it('a server that is not a listed provider has no prices, whatever the names of its models', () => {
    expect(knownModel('gpt-4o', { baseURL: 'http://127.0.0.1:8080/v1' })).toEqual({});
    expect(knownModel('gpt-4o', { baseURL: 'https://api.openai.com/v1' })).toEqual(knownModel('gpt-4o'));
  });

  it('a provider is found by its id; an unknown one has no prices', () => {
    expect(knownModel('gpt-4o', { provider: 'openai' })).toEqual(knownModel('gpt-4o'));
    expect(knownModel('gpt-4o', { provider: 'nobody' })).toEqual({});
  });
});

describe('the cost of a reply', () => {
  it('S004-29: cached tokens are part of the input and cost their own price', () => {
    expect(costOf(usage, { input: 2, output: 10, cachedInput: 0.5 })).toBeCloseTo(
      (600 * 2 + 400 * 0.5 + 1000) / 1e6,
      12,
    );
    expect(costOf(usage, { input: 2, output: 10 })).toBeCloseTo((1000 * 2 + 1000) / 1e6, 12);
  });

  it('tokens written to the cache cost their own price', () => {
    const written = { ...usage, cacheWriteTokens: 100 };
    const prices = { input: 2, output: 10, cachedInput: 0.5, cacheWrite: 3 };
    expect(costOf(written, prices)).toBeCloseTo((500 * 2 + 400 * 0.5 + 100 * 3 + 1000) / 1e6, 12);
  });

  it('S004-29: usage without cached tokens counts none; without a price the cost is null, not nothing', async () => {
    const on = await bench({ model: scripted([[t('a'), finish('stop', 5)]]) });
    const result = await on.conversation.send('hi').result;
    expect(result.usage).toMatchObject({ inputTokens: 5, outputTokens: 5, cachedInputTokens: 0 });
    expect(result.costUsd).toBeNull();
  });

  it('S004-29: totals are sums over the calls', async () => {
    const model = scripted(
      [
        [t('one'), finish('pause', 5)],
        [t('two'), finish('stop', 7)],
      ],
      {
        prices: { input: 1, output: 1 },
      },
    );
    const on = await bench({ model });
    const result = await on.conversation.send('hi').result;
    expect(result.usage).toMatchObject({ inputTokens: 12, outputTokens: 12 });
    expect(result.costUsd).toBeCloseTo(24 / 1e6, 12);
  });

  it('BED-12: a budget is refused if the price of a model or of a fallback is unknown', () => {
    const priced = scripted([], { id: 'priced', prices: { input: 1, output: 1 } });
    const unpriced = scripted([], { id: 'local', ...knownModel('local') });
    const limits = { costUsd: 1 };
    expect(() => createAgent({ model: unpriced, policies: { limits } })).toThrow(/local/);
    const modelRetry = { fallbackModels: [unpriced] };
    expect(() => createAgent({ model: priced, policies: { limits, modelRetry } })).toThrow(/local/);
    expect(() => createAgent({ model: priced, policies: { limits } })).not.toThrow();
  });
});
