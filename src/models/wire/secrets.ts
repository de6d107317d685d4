/** The credentials among the headers of a request. Invariant: a secret is the value alone, without its scheme. */

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
