/**
 * What was really used, as the simulated models said it. Rule: every reply says other counts than all the rest, so that
 * each entry can be held against the one reply it is about; sums are made of those words, and never of the library's.
 */
import type { LogEntry, Usage } from '../../../../machines/internal.ts';
import type { Prices } from '../../../models/model.ts';

export const PRICES: Prices = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 };
/** The name of the entry that says what a sub-agent used. */
const SUB_AGENT_USAGE = 'runchart.sub-agent-usage';
type Spent = Pick<Usage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteTokens'>;
/** An entry that says what was spent, read without the library. */
interface Told extends Spent {
  costUsd: number | null;
}

/** What the reply with this number used; no two say the same of their output. */
export const usageOf = (number: number): Spent => ({
  inputTokens: 100,
  outputTokens: 20 + number,
  cachedInputTokens: number % 40,
  cacheWriteTokens: number % 7,
});

/** USD of a reply whose output says which it was. */
function priceOf({ inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens }: Spent): number {
  const { input, output, cachedInput = 0, cacheWrite = 0 } = PRICES;
  const fresh = (inputTokens - cachedInputTokens - cacheWriteTokens) * input;
  return (fresh + cachedInputTokens * cachedInput + cacheWriteTokens * cacheWrite + outputTokens * output) / 1_000_000;
}

/** What the entry says of use; nothing for most. */
export function toldIn(entry: LogEntry): Told | undefined {
  if (entry.type === 'model-reply') return { ...entry.usage, costUsd: entry.costUsd };
  if (entry.type === 'compaction') return entry.usage && { ...entry.usage, costUsd: entry.costUsd ?? null };
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { usage, costUsd } = entry.value as unknown as { usage: Usage; costUsd: number | null };
  return { ...usage, costUsd };
}

/** The sub-agent that the entry tells of, and how many entries of its log are counted in from here. */
export function childIn(entry: LogEntry): { conversationId: string; upTo: number } | undefined {
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { conversationId, child, upTo } = entry.value as unknown as {
    conversationId: string;
    child?: string;
    upTo: number;
  };
  return { conversationId: child ?? conversationId, upTo };
}

export const spentTokens = (entry: LogEntry): number => {
  const told = toldIn(entry);
  return told ? told.inputTokens + told.outputTokens : 0;
};
export const usdOf = (entry: LogEntry): number => toldIn(entry)?.costUsd ?? 0;

/** What is wrong with what a reply is said to have used; nothing where it is right. */
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

/** The sum of what entries say was spent. */
export function sumOf(entries: Iterable<LogEntry>): Told {
  const sum: Told = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, costUsd: 0 };
  for (const entry of entries) {
    const told = toldIn(entry);
    if (!told) continue;
    sum.inputTokens += told.inputTokens;
    sum.outputTokens += told.outputTokens;
    sum.cachedInputTokens += told.cachedInputTokens;
    sum.cacheWriteTokens += told.cacheWriteTokens;
    sum.costUsd = sum.costUsd === null || told.costUsd === null ? null : sum.costUsd + told.costUsd;
  }
  return sum;
}

const close = (a: number | null, b: number | null): boolean =>
  a === b || (a !== null && b !== null && Math.abs(a - b) < 1e-9);

/** Whether two sums say the same. */
export const sameSpent = (a: Told, b: Told): boolean =>
  a.inputTokens === b.inputTokens &&
  a.outputTokens === b.outputTokens &&
  a.cachedInputTokens === b.cachedInputTokens &&
  a.cacheWriteTokens === b.cacheWriteTokens &&
  close(a.costUsd, b.costUsd);
