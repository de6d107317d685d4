/**
 * Loads the model adapter and the price list when a model is called. Invariant: both are optional packages, so
 * commands without a model work without them. Without the adapter the other commands print what to install. Without
 * the price list the cost is unknown.
 */
import { ConfigurationError } from '../errors.ts';
import type { KnownModel } from '../models/prices.ts';

export async function loadAdapter(): Promise<typeof import('../models/openai/openai.ts')> {
  try {
    return await import('../models/openai/openai.ts');
  } catch (cause) {
    if (!isMissing(cause, 'openai')) throw cause;
    throw new ConfigurationError('models are called through the package openai, which is missing: npm install openai', {
      cause,
    });
  }
}

/** Returns prices and context window of a model by its name. Empty if the price list is not installed. */
export async function modelFacts(modelName: string, baseURL: string | undefined): Promise<KnownModel> {
  try {
    const { knownModel } = await import('../models/prices.ts');
    return knownModel(modelName, baseURL ? { baseURL } : {});
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
