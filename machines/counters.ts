/**
 * Counts of a cycle against its limits, and usage and cost of entries, those of sub-agents included. Rule: an unknown price stays
 * unknown, what is not stored is not counted, and the counts of a living run are those that its log gives.
 */
import type { ToolCallOutput } from './calls.ts';
import type { Limits } from './policies.ts';
import type { Json, LogEntry, NewEntry, Usage } from './vocabulary.ts';

export interface UsageCost {
  usage: Usage;
  /** Null where a price is unknown. */
  costUsd: number | null;
}

/** The calls of one reply: those without a result, and what the others came to. */
export interface Round {
  open: readonly string[];
  fingerprints: readonly string[];
}

/** Counts that limits are held against: turns and streaks within a cycle, cost and tokens within the conversation. */
export interface Counters {
  turns: number;
  emptyReplies: number;
  /** Of the last round before `rounds`: for how many rounds in a row each of its calls came with the same result. */
  streaks: readonly { fingerprint: string; count: number }[];
  /** From the first round on that has a call without a result. */
  rounds: readonly Round[];
  tokens: number;
  costUsd: number | null;
}
export const freshCounters: Counters = { turns: 0, emptyReplies: 0, streaks: [], rounds: [], tokens: 0, costUsd: 0 };

const sum = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);

export const zeroUsage: UsageCost = {
  usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  costUsd: 0,
};

export const addUsage = (a: UsageCost, b: UsageCost): UsageCost => ({
  usage: {
    inputTokens: a.usage.inputTokens + b.usage.inputTokens,
    outputTokens: a.usage.outputTokens + b.usage.outputTokens,
    cachedInputTokens: a.usage.cachedInputTokens + b.usage.cachedInputTokens,
    cacheWriteTokens: a.usage.cacheWriteTokens + b.usage.cacheWriteTokens,
    reasoningTokens: a.usage.reasoningTokens + b.usage.reasoningTokens,
  },
  costUsd: sum(a.costUsd, b.costUsd),
});

/** Adds to counts that limits are held against. */
export function countUsage<C extends Pick<Counters, 'tokens' | 'costUsd'>>(
  counters: C,
  spent: UsageCost | undefined,
): C {
  if (!spent) return counters;
  const { inputTokens, outputTokens } = spent.usage;
  const tokens = counters.tokens + inputTokens + outputTokens;
  return { ...counters, tokens, costUsd: sum(counters.costUsd, spent.costUsd) };
}

/** The cause that stops a run with these counts, if any. */
export function limitReached(counters: Counters, limits: Limits): string | undefined {
  if (counters.turns >= limits.turns) return 'max_turns';
  if (limits.costUsd !== false && (counters.costUsd ?? Number.POSITIVE_INFINITY) >= limits.costUsd) return 'max_budget';
  if (limits.tokens !== false && counters.tokens >= limits.tokens) return 'max_total_tokens';
  if (counters.emptyReplies >= limits.emptyReplies) return 'empty_replies';
  const streaks = counters.rounds.reduce(withRound, counters.streaks);
  return streaks.some(({ count }) => count >= limits.identicalCalls) ? 'no_progress' : undefined;
}

/** A new request counts its turns anew. */
export function newCycle(counters: Counters): Counters {
  const { turns, emptyReplies, streaks, rounds } = counters;
  if (turns + emptyReplies + streaks.length + rounds.length === 0) return counters;
  return { ...counters, turns: 0, emptyReplies: 0, streaks: [], rounds: [] };
}

export function countReply(
  counters: Counters,
  reply: UsageCost & { empty: boolean; calls: readonly { callId: string }[] },
): Counters {
  const { empty, calls } = reply;
  const { turns, emptyReplies, rounds } = counters;
  return {
    ...countUsage(counters, reply),
    turns: turns + 1,
    emptyReplies: empty ? emptyReplies + 1 : 0,
    rounds: calls.length > 0 ? [...rounds, { open: calls.map(({ callId }) => callId), fingerprints: [] }] : rounds,
  };
}

/** Behind one more round: what came in it as in the one before goes on, and nothing else does. */
function withRound(streaks: Counters['streaks'], { fingerprints }: Round): Counters['streaks'] {
  const before = new Map(streaks.map(({ fingerprint, count }) => [fingerprint, count]));
  return [...new Set(fingerprints)].map((fingerprint) => ({ fingerprint, count: (before.get(fingerprint) ?? 0) + 1 }));
}

/** A call that waits for more rounds than these is not compared any more. */
const ROUNDS_MOST = 64;

/** Counts results in the rounds of their calls, in whatever order they come; a call that waits has none. */
export function countResults(counters: Counters, results: readonly Pick<ToolCallOutput, 'callId' | 'fingerprint'>[]) {
  if (results.length === 0 || counters.rounds.length === 0) return counters;
  const fingerprints = new Map(results.map(({ callId, fingerprint }) => [callId, fingerprint]));
  let { streaks } = counters;
  const rounds: Round[] = [];
  for (const [index, round] of counters.rounds.entries()) {
    const open = round.open.filter((callId) => !fingerprints.has(callId));
    const ended = round.open.flatMap((callId) => fingerprints.get(callId) ?? []);
    const now = ended.length > 0 ? { open, fingerprints: [...round.fingerprints, ...ended] } : round;
    const isOver = open.length === 0 || counters.rounds.length - index > ROUNDS_MOST;
    if (isOver && rounds.length === 0) streaks = withRound(streaks, now);
    else rounds.push(now);
  }
  return { ...counters, streaks, rounds };
}

/** The same for calls that may wait. */
export const countOutputs = (counters: Counters, outputs: readonly (ToolCallOutput | undefined)[]): Counters =>
  countResults(
    counters,
    outputs.flatMap((output) => (output && output.outcome !== 'suspended' ? [output] : [])),
  );

/** A sub-agent of a call begins or ends, or used the model: `upTo` says which entries of its log are counted in. */
export interface SubAgentChange {
  type: 'sub-agent.changed';
  callId: string;
  conversationId: string;
  phase?: 'started' | 'ended';
  spent?: UsageCost & {
    upTo: number;
    /** How many calls of each, and what they used. */
    models?: Json;
  };
}

/** The name of the extension entry that holds what a sub-agent used. */
export const SUB_AGENT_USAGE = 'runchart.sub-agent-usage';

type Fields = { [key: string]: unknown };
/** The fields of what somebody else wrote; none of what has none. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
export const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
const countOf = (value: unknown): number => (isCount(value) ? value : 0);

/** Use as it may be read of what somebody else wrote: what is no count counts nothing. */
export function readUsage(value: unknown): Usage {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = fieldsOf(value);
  return {
    inputTokens: countOf(inputTokens),
    outputTokens: countOf(outputTokens),
    cachedInputTokens: countOf(cachedInputTokens),
    cacheWriteTokens: countOf(cacheWriteTokens),
    reasoningTokens: countOf(reasoningTokens),
  };
}

/** What the entry says was spent; nothing for most. */
export function usageOf(entry: NewEntry): UsageCost | undefined {
  if (entry.type === 'model-reply') return { usage: entry.usage, costUsd: entry.costUsd };
  if (entry.type === 'compaction') return entry.usage && { usage: entry.usage, costUsd: entry.costUsd ?? null };
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { usage, costUsd } = fieldsOf(entry.value);
  return { usage: readUsage(usage), costUsd: isCount(costUsd) ? costUsd : null };
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
  const value = { callId, conversationId, ...spent, usage: { ...spent.usage } };
  return [...entries, { runId, type: 'extension', name: SUB_AGENT_USAGE, value }];
}
