/**
 * Loads the model adapter and the list of prices when a model is called. Rule: both are optional packages, so commands
 * without a model do without them; without the adapter the others say what to install, and without the list no cost is
 * known.
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

/** Prices and window of a model by its name; nothing where the list of them is not installed. */
export async function knownOf(modelName: string, baseURL: string | undefined): Promise<KnownModel> {
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
