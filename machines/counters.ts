/**
 * The counts of a cycle for its limits, and the usage and cost of entries, including sub-agents. Invariant: an unknown
 * price stays unknown. Only stored entries count. An active run has the same counts as its log.
 */
import type { ToolCallOutput } from './calls.ts';
import type { Limits } from './policies.ts';
import type { Json, LogEntry, NewEntry, Usage } from './vocabulary.ts';

/** The usage of model calls with its cost. */
export interface UsageCost {
  /** The tokens. */
  usage: Usage;
  /** Null where a price is unknown. */
  costUsd: number | null;
}

/** The calls of one reply: those without a result, and the results of the others. */
export interface Round {
  /** The ids of calls without a result. */
  open: readonly string[];
  /** The fingerprints of calls with their results. */
  fingerprints: readonly string[];
}

/** Counts that limits are compared with: turns and streaks of the cycle, cost and tokens of the conversation. */
export interface Counters {
  /** The model calls of the cycle. */
  turns: number;
  /** The successive empty replies of the cycle. */
  emptyReplies: number;
  /** For each call of the last round before `rounds`: the number of successive rounds with the same call and result. */
  streaks: readonly { fingerprint: string; count: number }[];
  /** The rounds since the first one that has a call without a result. */
  rounds: readonly Round[];
  /** The tokens of the conversation. */
  tokens: number;
  /** The sum of the known prices. */
  costUsd: number;
  /** The number of usages without a known price. A limit of cost counts as reached while there is one. */
  unpriced: number;
}
export const freshCounters: Counters = {
  turns: 0,
  emptyReplies: 0,
  streaks: [],
  rounds: [],
  tokens: 0,
  costUsd: 0,
  unpriced: 0,
};

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

/** Adds usage to the counts. */
export const countUsage = (counters: Counters, spent: UsageCost | undefined): Counters =>
  spent ? { ...counters, ...addedTimes(counters, spent, 1) } : counters;

/** The counts of usage after this one was added, or taken away again. */
function addedTimes({ tokens, costUsd, unpriced }: UsageCounts, spent: UsageCost, times: 1 | -1): UsageCounts {
  const { inputTokens, outputTokens } = spent.usage;
  return {
    tokens: tokens + times * (inputTokens + outputTokens),
    costUsd: costUsd + times * (spent.costUsd ?? 0),
    unpriced: unpriced + (spent.costUsd === null ? times : 0),
  };
}
type UsageCounts = Pick<Counters, 'tokens' | 'costUsd' | 'unpriced'>;

/** The cause that stops a run with these counts, if any. */
export function limitReached(counters: Counters, limits: Limits): string | undefined {
  if (counters.turns >= limits.turns) return 'max_turns';
  if (limits.costUsd !== false && (counters.unpriced > 0 || counters.costUsd >= limits.costUsd)) return 'max_budget';
  if (limits.tokens !== false && counters.tokens >= limits.tokens) return 'max_total_tokens';
  if (counters.emptyReplies >= limits.emptyReplies) return 'empty_replies';
  const streaks = counters.rounds.reduce(withRound, counters.streaks);
  return streaks.some(({ count }) => count >= limits.identicalCalls) ? 'no_progress' : undefined;
}

/** A new request counts its turns from zero. */
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

/** The counts after one more round. A streak continues if the call came with the same result in the round before; others end. */
function withRound(streaks: Counters['streaks'], { fingerprints }: Round): Counters['streaks'] {
  const before = new Map(streaks.map(({ fingerprint, count }) => [fingerprint, count]));
  return [...new Set(fingerprints)].map((fingerprint) => ({ fingerprint, count: (before.get(fingerprint) ?? 0) + 1 }));
}

/** A call that waits for more rounds than this is no longer compared. */
const ROUNDS_MOST = 64;

/** Adds results to the rounds of their calls, in any order. A call that waits has no result yet. */
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

/** The same, for calls that may wait. */
export const countOutputs = (counters: Counters, outputs: readonly (ToolCallOutput | undefined)[]): Counters =>
  countResults(
    counters,
    outputs.flatMap((output) => (output && output.outcome !== 'suspended' ? [output] : [])),
  );

/** A sub-agent of a call began, ended or used the model. `upTo`: the usage includes entries of its log up to this one. */
export interface SubAgentChange {
  /** The type of the event. */
  type: 'sub-agent.changed';
  /** The call that started the sub-agent. */
  callId: string;
  /** The conversation of the sub-agent. */
  conversationId: string;
  /** Whether the sub-agent started or ended; absent for usage alone. */
  phase?: 'started' | 'ended';
  /** The usage and cost of the sub-agent so far. */
  spent?: UsageCost & {
    upTo: number;
    /** The models, each with its number of calls and its usage. */
    models?: Json;
  };
}

/** The name of the extension entry with the usage of a sub-agent. */
export const SUB_AGENT_USAGE = 'runchart.sub-agent-usage';

type Fields = { [key: string]: unknown };
/** The fields of a foreign value; none if it has none. */
export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
export const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
const countOf = (value: unknown): number => (isCount(value) ? value : 0);

/** Usage from a foreign value. Fields that are not counts count as zero. */
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

/** The usage that the entry reports; undefined for most entries. */
export function usageOf(entry: NewEntry): UsageCost | undefined {
  if (entry.type === 'model-reply') return { usage: entry.usage, costUsd: entry.costUsd };
  if (entry.type === 'compaction') return entry.usage && { usage: entry.usage, costUsd: entry.costUsd ?? null };
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { usage, costUsd } = fieldsOf(entry.value);
  return { usage: readUsage(usage), costUsd: isCount(costUsd) ? costUsd : null };
}

/** The sub-agent that the usage belongs to, and the last entry of its log that is included. */
export function subAgentUsageOf(entry: LogEntry): { callId: string; conversationId: string; upTo: number } | undefined {
  if (entry.type !== 'extension' || entry.name !== SUB_AGENT_USAGE) return undefined;
  const { callId, conversationId, upTo } = fieldsOf(entry.value);
  if (typeof callId !== 'string' || typeof conversationId !== 'string') return undefined;
  return { callId, conversationId, upTo: countOf(upTo) };
}

/** The counts without those of lost entries: limits are compared with the log. */
export function uncounted(counters: Counters, lost: readonly NewEntry[]): Counters {
  let remaining = counters;
  for (const entry of lost) {
    const spent = usageOf(entry);
    if (spent) remaining = { ...remaining, ...addedTimes(remaining, spent, -1) };
  }
  return remaining;
}

/** The entries about a sub-agent (docs/internals/contracts.md, REQ-BED-009): it began, it ended, it used the model. */
export function subAgentEntries(runId: string | null, change: SubAgentChange): NewEntry[] {
  const { callId, conversationId, phase, spent } = change;
  const entries: NewEntry[] = phase ? [{ runId, type: 'sub-agent', callId, child: conversationId, phase }] : [];
  if (!spent) return entries;
  const value = { callId, conversationId, ...spent, usage: { ...spent.usage } };
  return [...entries, { runId, type: 'extension', name: SUB_AGENT_USAGE, value }];
}
