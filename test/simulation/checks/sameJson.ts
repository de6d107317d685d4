/**
 * Compares two values by their JSON texts. Invariant: it returns true if and only if the texts are equal. Shared parts
 * are skipped, and texts are written only for values that may differ.
 */

/** Returns true if all keys, their order and all values are equal, so the texts are equal too. */
function alike(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let index = 0; index < a.length; index++) if (!alike(a[index], b[index])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  const others = Object.keys(b);
  if (keys.length !== others.length) return false;
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string;
    if (key !== others[index]) return false;
    if (!alike((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key])) return false;
  }
  return true;
}

export const sameJson = (a: unknown, b: unknown): boolean => alike(a, b) || JSON.stringify(a) === JSON.stringify(b);
