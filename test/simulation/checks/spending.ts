/**
 * The tokens and cost that the simulated models reported. Invariant: this file computes sums itself, without the
 * library.
 */
import type { LogEntry, Usage } from '../../../machines/internal.ts';
import { PRICES, type TokenCounts, usageOf } from '../../../src/testing/simulation/world/simulatedUsage.ts';

/** Name of the extension entry with the usage of a sub-agent. */
const SUB_AGENT_USAGE = 'runchart.sub-agent-usage';
/** The usage in an entry, read without the library. */
interface RecordedUsage extends TokenCounts {
  costUsd: number | null;
}

/** Returns the USD of a reply with this usage. */
function priceOf({ inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens }: TokenCounts): number {
  const { input, output, cachedInput = 0, cacheWrite = 0 } = PRICES;
  const fresh = (inputTokens - cachedInputTokens - cacheWriteTokens) * input;
  return (fresh + cachedInputTokens * cachedInput + cacheWriteTokens * cacheWrite + outputTokens * output) / 1_000_000;
}

/** Returns the usage in an entry. Undefined for most entries. */
export function usageIn(entry: LogEntry): RecordedUsage | undefined {
  if (entry.type === 'model-reply') return { ...entry.usage, costUsd: entry.costUsd };
  if (entry.type === 'compaction') return entry.usage && { ...entry.usage, costUsd: entry.costUsd ?? null };
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { usage, costUsd } = entry.value as unknown as { usage: Usage; costUsd: number | null };
  return { ...usage, costUsd };
}

/** Returns the sub-agent whose usage the entry contains, and the last counted entry of its log. */
export function subAgentIn(entry: LogEntry): { conversationId: string; upTo: number } | undefined {
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { conversationId, child, upTo } = entry.value as unknown as {
    conversationId: string;
    child?: string;
    upTo: number;
  };
  return { conversationId: child ?? conversationId, upTo };
}

export const tokensIn = (entry: LogEntry): number => {
  const usage = usageIn(entry);
  return usage ? usage.inputTokens + usage.outputTokens : 0;
};
export const usdOf = (entry: LogEntry): number => usageIn(entry)?.costUsd ?? 0;

/** Returns the fault in a reply's recorded usage, or undefined. */
export function usageFault(
  { usage, costUsd }: { usage: Usage; costUsd: number | null },
  priced: boolean,
): string | undefined {
  const number = usage.outputTokens - 20;
  const real = usageOf(number);
  for (const key of ['inputTokens', 'outputTokens', 'cachedInputTokens', 'cacheWriteTokens'] as const) {
    if (usage[key] !== real[key]) return `${key} are ${usage[key]} of ${real[key]}`;
  }
  const cost = priced ? priceOf(real) : null;
  const same = cost === null ? costUsd === null : costUsd !== null && Math.abs(costUsd - cost) < 1e-9;
  return same ? undefined : `its cost is ${costUsd}, and was ${cost}`;
}

/** Returns the sum of the usage in entries. */
export function sumOf(entries: Iterable<LogEntry>): RecordedUsage {
  const sum: RecordedUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, costUsd: 0 };
  for (const entry of entries) {
    const usage = usageIn(entry);
    if (!usage) continue;
    sum.inputTokens += usage.inputTokens;
    sum.outputTokens += usage.outputTokens;
    sum.cachedInputTokens += usage.cachedInputTokens;
    sum.cacheWriteTokens += usage.cacheWriteTokens;
    sum.costUsd = sum.costUsd === null || usage.costUsd === null ? null : sum.costUsd + usage.costUsd;
  }
  return sum;
}

const close = (a: number | null, b: number | null): boolean =>
  a === b || (a !== null && b !== null && Math.abs(a - b) < 1e-9);

/** Returns true if two sums are equal. */
export const sameUsage = (a: RecordedUsage, b: RecordedUsage): boolean =>
  a.inputTokens === b.inputTokens &&
  a.outputTokens === b.outputTokens &&
  a.cachedInputTokens === b.cachedInputTokens &&
  a.cacheWriteTokens === b.cacheWriteTokens &&
  close(a.costUsd, b.costUsd);
