/**
 * Mistakes that no path can tell from the original, by the reason. Rule: the list is exactly the survivors of
 * `npm run mutate`.
 */
export const equivalents: readonly { reason: string; changes: readonly string[] }[] = [];
