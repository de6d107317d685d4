/**
 * The model adapter, loaded when a model is called. Rule: the vendor's client is an optional package, so the commands
 * that call no model do without it, and the others say what to install.
 */
import { ConfigurationError } from '../errors.ts';

export async function loadAdapter(): Promise<typeof import('../models/openai.ts')> {
  try {
    return await import('../models/openai.ts');
  } catch (cause) {
    if (!isMissing(cause, 'openai')) throw cause;
    throw new ConfigurationError('models are called through the package openai, which is missing: npm install openai', {
      cause,
    });
  }
}

const isMissing = (cause: unknown, name: string): boolean =>
  cause instanceof Error &&
  'code' in cause &&
  cause.code === 'ERR_MODULE_NOT_FOUND' &&
  cause.message.includes(`'${name}'`);
