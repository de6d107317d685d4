/**
 * Secrets never enter the log. Rule: by value, in every string of an entry, before it is stamped; an entry without a
 * secret is returned as it is.
 */
const MARK = '[redacted]';
/** A shorter value would blank out ordinary words. */
const SHORTEST = 8;

export type Redact = <T>(value: T) => T;

export function redactor(secrets: readonly string[]): Redact {
  const values = [...new Set(secrets.filter((secret) => secret.length >= SHORTEST))].sort(
    (a, b) => b.length - a.length,
  );
  if (values.length === 0) return (value) => value;
  const clean = (text: string): string => {
    let result = text;
    for (const secret of values) if (result.includes(secret)) result = result.replaceAll(secret, MARK);
    return result;
  };
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return clean(value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const items = value.map(walk);
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    let changed = false;
    const entries = Object.entries(value).map(([key, child]) => {
      const cleaned = walk(child);
      const name = clean(key);
      changed ||= cleaned !== child || name !== key;
      return [name, cleaned];
    });
    return changed ? Object.fromEntries(entries) : value;
  };
  return (value) => walk(value) as typeof value;
}
