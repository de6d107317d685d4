/** What every simulated model, tool and hook says at times, and no log may hold. */
export const SECRET = 'sk-simulated-secret-0123456789';

/** Whether a string of a value, keys too, holds it. */
export function holdsSecret(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(SECRET);
  if (typeof value !== 'object' || value === null) return false;
  for (const key in value)
    if (key.includes(SECRET) || holdsSecret((value as { [key: string]: unknown })[key])) return true;
  return false;
}
