/**
 * What model calls cost, as a log says it: the replies of its own conversation, and what its sub-agents used. Rule: an
 * entry is read field by field, and one of another form costs nothing; what is counted once is in the log once.
 */
import type { Counters, UsageCost } from '../counters.ts';
import type { LogEntry, NewEntry } from '../vocabulary.ts';

/** A sub-agent of a call begins or ends, or used the model: `upTo` says which entries of its log are counted in. */
export interface SubAgentChange {
  type: 'sub-agent.changed';
  callId: string;
  conversationId: string;
  phase?: 'started' | 'ended';
  spent?: UsageCost & { upTo: number };
}

/** The name of the extension entry that holds what a sub-agent used. */
export const SUB_AGENT_USAGE = 'runchart.sub-agent-usage';

type Fields = { [key: string]: unknown };
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const countOf = (value: unknown): number => (isCount(value) ? value : 0);

/** What the entry says was spent; nothing for most. */
export function usageOf(entry: NewEntry): UsageCost | undefined {
  if (entry.type === 'model-reply') return { usage: entry.usage, costUsd: entry.costUsd };
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { usage, costUsd } = fieldsOf(entry.value);
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = fieldsOf(usage);
  return {
    usage: {
      inputTokens: countOf(inputTokens),
      outputTokens: countOf(outputTokens),
      cachedInputTokens: countOf(cachedInputTokens),
      cacheWriteTokens: countOf(cacheWriteTokens),
      reasoningTokens: countOf(reasoningTokens),
    },
    costUsd: isCount(costUsd) ? costUsd : null,
  };
}

/** Whose use the entry counts, and up to which entry of that log. */
export function subAgentUsageOf(entry: LogEntry): { callId: string; conversationId: string; upTo: number } | undefined {
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { callId, conversationId, upTo } = fieldsOf(entry.value);
  if (typeof callId !== 'string' || typeof conversationId !== 'string') return undefined;
  return { callId, conversationId, upTo: countOf(upTo) };
}

/** Without what the lost entries would have counted: a limit is held against the log. */
export function uncounted(counters: Counters, lost: readonly NewEntry[]): Counters {
  let { tokens, costUsd } = counters;
  for (const entry of lost) {
    const spent = usageOf(entry);
    if (!spent) continue;
    tokens -= spent.usage.inputTokens + spent.usage.outputTokens;
    costUsd = costUsd === null || spent.costUsd === null ? null : costUsd - spent.costUsd;
  }
  return { ...counters, tokens, costUsd };
}

/** What the log is told of a sub-agent (conversation-requirements, REQ-BED-009): that it began, that it ended, what it used. */
export function subAgentEntries(runId: string | null, change: SubAgentChange): NewEntry[] {
  const { callId, conversationId, phase, spent } = change;
  const entries: NewEntry[] = phase ? [{ runId, type: 'sub-agent', callId, child: conversationId, phase }] : [];
  if (!spent) return entries;
  const { upTo, usage, costUsd } = spent;
  const value = { callId, conversationId, upTo, usage: { ...usage }, costUsd };
  return [...entries, { runId, type: 'extension', name: SUB_AGENT_USAGE, value }];
}
