/** What a conversation and its sub-agents may spend together. Rule: an unknown price is beyond every limit. */
import { type Limits, nothingSpent, type Spent, together } from '../../machines/internal.ts';

type Counts = { tokens: number; costUsd: number | null };

/** Whether a limit is reached by what is counted and what sub-agents used since. */
export function overBudget(
  { costUsd, tokens }: Pick<Limits, 'costUsd' | 'tokens'>,
  counted: Counts,
  uncounted: () => readonly Spent[],
): boolean {
  if (costUsd === false && tokens === false) return false;
  const since = uncounted().reduce(together, nothingSpent);
  const spentTokens = counted.tokens + since.usage.inputTokens + since.usage.outputTokens;
  const known = counted.costUsd !== null && since.costUsd !== null;
  const spentUsd = known ? (counted.costUsd ?? 0) + (since.costUsd ?? 0) : Number.POSITIVE_INFINITY;
  return (tokens !== false && spentTokens >= tokens) || (costUsd !== false && spentUsd >= costUsd);
}
