/**
 * The limits a run is held to before each model call. Rule: every path to a model call passes here, and each limit
 * has a cause of its own.
 */
import type { Counters, RunContext } from './runContext.ts';
import type { Slot } from './toolRound.machine.ts';
import type { Usage } from './vocabulary.ts';

/** The cause that stops the run now, if any. */
export function limitReached({ counters, settings }: RunContext): string | undefined {
  const { limits } = settings.policies;
  if (counters.turns >= limits.turns) return 'max_turns';
  if (limits.costUsd !== false && (counters.costUsd ?? Number.POSITIVE_INFINITY) >= limits.costUsd) return 'max_budget';
  if (limits.tokens !== false && counters.tokens >= limits.tokens) return 'max_total_tokens';
  if (counters.emptyReplies >= limits.emptyReplies) return 'empty_replies';
  if (counters.streaks.some(({ count }) => count >= limits.identicalCalls)) return 'no_progress';
  return undefined;
}

export function countReply(
  counters: Counters,
  reply: { usage: Usage; costUsd: number | null; empty: boolean },
  turn: number,
): Counters {
  const { usage, costUsd, empty } = reply;
  return {
    ...counters,
    turns: turn,
    emptyReplies: empty ? counters.emptyReplies + 1 : 0,
    tokens: counters.tokens + usage.inputTokens + usage.outputTokens,
    costUsd: counters.costUsd === null || costUsd === null ? null : counters.costUsd + costUsd,
  };
}

/** Counts for how many rounds in a row each call of this round came with the same result. */
export function countRound(counters: Counters, slots: readonly Slot[]): Counters {
  const prints = new Set(slots.flatMap((slot) => (slot.output ? [slot.output.print] : [])));
  const before = new Map(counters.streaks.map(({ print, count }) => [print, count]));
  return { ...counters, streaks: [...prints].map((print) => ({ print, count: (before.get(print) ?? 0) + 1 })) };
}
