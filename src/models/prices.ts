/**
 * Prices and context windows by the name of a model, from the optional package `@pydantic/genai-prices`. Invariant:
 * unknown values are omitted. Nothing is guessed from a similar name or another provider's list.
 */
import { ConfigurationError } from '../errors.ts';
import type { Prices } from './model.ts';

/** Loaded here, so that a missing package is an error of `knownModel()` and not of the import. */
const loaded = await import('@pydantic/genai-prices').then(
  ({ calcPrice }) => ({ calcPrice }),
  (cause: unknown) => ({ cause }),
);

/** The published facts of a model that `knownModel` finds by its name. */
export interface KnownModel {
  /** Prices in USD per million tokens. */
  prices?: Prices;
  /** Tokens. */
  contextWindow?: number;
}

/** If long prompts cost more, this is the price of a short one. */
function priceOf(listed: number | { base: number } | undefined): number | undefined {
  return typeof listed === 'object' ? listed.base : listed;
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
 * Returns today's prices and the context window of a model by its name on the server, or `{}` if it is unknown.
 * `provider` is an id of that package (`openai`, `anthropic`, …) and `baseURL` the server's address. With either,
 * only that provider's list counts, so a local server's model has no price. Spread the result into the options of a
 * model. Throws ConfigurationError if the package is not installed.
 */
export function knownModel(modelName: string, options: { provider?: string; baseURL?: string } = {}): KnownModel {
  if ('cause' in loaded) {
    const { cause } = loaded;
    const message = 'knownModel() needs the package @pydantic/genai-prices: npm install @pydantic/genai-prices';
    throw new ConfigurationError(message, { cause });
  }
  const { provider: providerId, baseURL: providerApiUrl } = options;
  const priced = loaded.calcPrice({ input_tokens: 1, output_tokens: 1 }, modelName, {
    ...(providerId !== undefined && { providerId }),
    ...(providerApiUrl !== undefined && { providerApiUrl }),
  });
  if (!priced) return {};
  const prices = pricesOf(priced.model_price);
  const contextWindow = priced.model.context_window;
  return { ...(prices && { prices }), ...(contextWindow !== undefined && { contextWindow }) };
}
