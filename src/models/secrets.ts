/** The credentials of a model: found in its headers, shown by nothing that prints it. */
import type { Model } from './model.ts';

/** By it Node's `util.inspect` asks an object how it is shown. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Where it is printed, inspected or written as JSON a model shows what it can, and no secret. */
export function withSecrets(model: Model, secrets: readonly string[]): Model {
  const { stream: _, ...shown } = model;
  const show = { value: () => shown };
  return Object.defineProperties(model, { secrets: { value: secrets }, toJSON: show, [INSPECT]: show });
}

/** What `headers` hold under a name that tells of a credential, and the key where there is one. */
export function secretsIn(headers: Record<string, string> = {}, apiKey: string | null = null): string[] {
  const secrets = new Set(apiKey ? [apiKey] : []);
  for (const [name, value] of Object.entries(headers)) {
    if (!/authorization|key|token|secret|cookie/i.test(name)) continue;
    const credential = value.replace(/^\s*(bearer|basic|token)\s+/i, '').trim();
    if (credential !== '') secrets.add(credential);
  }
  return [...secrets];
}
