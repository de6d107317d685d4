/**
 * Loads the model adapter and the price list when a model is called. Invariant: both are optional packages, so
 * commands without a model work without them. Without the adapter the other commands print what to install. Without
 * the price list the cost is unknown.
 */
import { ConfigurationError } from '../errors.ts';
import type { KnownModel } from '../models/prices.ts';

export async function loadAdapter(): Promise<typeof import('../models/openai/index.ts')> {
  try {
    return await import('../models/openai/index.ts');
  } catch (cause) {
    if (!isMissing(cause, 'openai')) throw cause;
    throw new ConfigurationError('models are called through the package openai, which is missing: npm install openai', {
      cause,
    });
  }
}

/**
 * Returns prices and context window of a model by its name. Empty if the price list is not installed or does not have it.
 * A server that is in the list has its own prices. Behind any other address the name alone counts, so that proxies and
 * gateways have a window and a cost.
 */
export async function modelFacts(
  modelName: string,
  { baseURL, provider }: { baseURL?: string | undefined; provider?: string } = {},
): Promise<KnownModel> {
  try {
    const { knownModel } = await import('../models/prices.ts');
    const [, vendor, ownName] = /^([\w-]+)\/(.+)$/.exec(modelName) ?? [];
    const attempts = [
      () => knownModel(modelName, baseURL ? { baseURL } : provider ? { provider } : {}),
      () => knownModel(modelName),
      // A gateway names the vendor before the model.
      () => (vendor && ownName ? knownModel(ownName, { provider: vendor }) : {}),
    ];
    for (const attempt of attempts) {
      const known = attempt();
      if (known.prices || known.contextWindow !== undefined) return known;
    }
    return {};
  } catch (cause) {
    if (!isMissing(cause, '@pydantic/genai-prices')) throw cause;
    return {};
  }
}

const isMissing = (cause: unknown, name: string): boolean =>
  cause instanceof Error &&
  'code' in cause &&
  cause.code === 'ERR_MODULE_NOT_FOUND' &&
  cause.message.includes(`'${name}'`);
