/**
 * Prices and context windows by a model's name, from the package `@pydantic/genai-prices`, which is optional. Rule: what
 * is not known is left out; nothing is guessed from a similar name or another provider's list.
 */
import { calcPrice } from '@pydantic/genai-prices';
import type { Prices } from './model.ts';

export interface KnownModel {
  prices?: Prices;
  /** Tokens. */
  contextWindow?: number;
}

/** Where a provider charges more for long prompts, the price of a short one. */
function priceOf(given: number | { base: number } | undefined): number | undefined {
  return typeof given === 'object' ? given.base : given;
}

function pricesOf(list: Record<string, number | { base: number } | undefined>): Prices | undefined {
  const input = priceOf(list.input_mtok);
  const output = priceOf(list.output_mtok);
  if (input === undefined || output === undefined) return undefined;
  const cachedInput = priceOf(list.cache_read_mtok);
  const cacheWrite = priceOf(list.cache_write_mtok);
  return {
    input,
    output,
    ...(cachedInput !== undefined && { cachedInput }),
    ...(cacheWrite !== undefined && { cacheWrite }),
  };
}

/**
 * What is known of a model by the name its server calls it, at today's prices; `{}` of an unknown one. `provider` is an
 * id of that package (`openai`, `anthropic`, …) and `baseURL` the server's address: with either, only that provider's
 * list counts, so a local server's model has no price. Spread it into the options of a model.
 */
export function knownModel(modelName: string, options: { provider?: string; baseURL?: string } = {}): KnownModel {
  const { provider: providerId, baseURL: providerApiUrl } = options;
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, modelName, {
    ...(providerId !== undefined && { providerId }),
    ...(providerApiUrl !== undefined && { providerApiUrl }),
  });
  if (!found) return {};
  const prices = pricesOf(found.model_price);
  const contextWindow = found.model.context_window;
  return { ...(prices && { prices }), ...(contextWindow !== undefined && { contextWindow }) };
}
