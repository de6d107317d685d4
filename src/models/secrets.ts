/** The credentials of a model: read from its headers, and hidden when the model is printed. */
import type { Model } from './model.ts';

/** Node's `util.inspect` uses this key to ask an object for its printed form. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Hides the secrets when the model is printed, inspected or written as JSON. */
export function withSecrets(model: Model, secrets: readonly string[]): Model {
  const { stream: _, ...shown } = model;
  const show = { value: () => shown };
  return Object.defineProperties(model, { secrets: { value: secrets }, toJSON: show, [INSPECT]: show });
}

/** Returns the key, and the values of headers whose names suggest a credential. */
export function secretsIn(headers: Record<string, string> = {}, apiKey: string | null = null): string[] {
  const secrets = new Set(apiKey ? [apiKey] : []);
  for (const [name, value] of Object.entries(headers)) {
    if (!/authorization|key|token|secret|cookie/i.test(name)) continue;
    const credential = value.replace(/^\s*(bearer|basic|token)\s+/i, '').trim();
    if (credential !== '') secrets.add(credential);
  }
  return [...secrets];
}
