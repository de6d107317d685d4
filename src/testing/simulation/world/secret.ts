/** A secret that simulated models, tools and plugins put into texts and errors, and that no log may contain. */
export const SECRET = 'sk-simulated-secret-0123456789';

/** Whether some string of a value, keys included, contains the secret. */
export function containsSecret(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(SECRET);
  if (typeof value !== 'object' || value === null) return false;
  for (const key in value)
    if (key.includes(SECRET) || containsSecret((value as { [key: string]: unknown })[key])) return true;
  return false;
}
