/**
 * Prices and context windows of models for the program. Rule: the price list is an optional package; without it, cost and window are
 * unknown.
 */
import { ConfigurationError } from '../../errors.ts';
import type { KnownModel } from '../../models/prices.ts';

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
    const { knownModel } = await import('../../models/prices.ts');
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
  } catch (error) {
    if (ConfigurationError.isRunchartError(error)) return {};
    throw error;
  }
}
