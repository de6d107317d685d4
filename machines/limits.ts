/**
 * The limits a run is held to before each model call, and the counts that they are held against. Rule: every path to a
 * model call passes here, each limit has a cause of its own, and the counts of a run are those of its log.
 */
import type { Counters, Round, RunContext } from './runContext.ts';
import type { ToolCallOutput } from './toolCall.machine.ts';
import type { Usage } from './vocabulary.ts';

/** The cause that stops the run now, if any. What is only retried is done before the first model call. */
export function limitReached({ counters, settings, trigger }: RunContext): string | undefined {
  if (trigger.kind === 'retry') return 'end_turn';
  const { limits } = settings.policies;
  if (counters.turns >= limits.turns) return 'max_turns';
  if (limits.costUsd !== false && (counters.costUsd ?? Number.POSITIVE_INFINITY) >= limits.costUsd) return 'max_budget';
  if (limits.tokens !== false && counters.tokens >= limits.tokens) return 'max_total_tokens';
  if (counters.emptyReplies >= limits.emptyReplies) return 'empty_replies';
  const streaks = counters.rounds.reduce(withRound, counters.streaks);
  return streaks.some(({ count }) => count >= limits.identicalCalls) ? 'no_progress' : undefined;
}

/** A new request counts its turns anew. */
export const newCycle = (counters: Counters): Counters => ({
  ...counters,
  turns: 0,
  emptyReplies: 0,
  streaks: [],
  rounds: [],
});

export function countReply(
  counters: Counters,
  reply: { usage: Usage; costUsd: number | null; empty: boolean; calls: readonly { callId: string }[] },
): Counters {
  const { usage, costUsd, empty, calls } = reply;
  const { turns, emptyReplies, rounds, tokens, costUsd: cost } = counters;
  return {
    ...counters,
    turns: turns + 1,
    emptyReplies: empty ? emptyReplies + 1 : 0,
    rounds: calls.length > 0 ? [...rounds, { open: calls.map(({ callId }) => callId), prints: [] }] : rounds,
    tokens: tokens + usage.inputTokens + usage.outputTokens,
    costUsd: cost === null || costUsd === null ? null : cost + costUsd,
  };
}

/** Behind one more round: what came in it as in the one before goes on, and nothing else does. */
function withRound(streaks: Counters['streaks'], { prints }: Round): Counters['streaks'] {
  const before = new Map(streaks.map(({ print, count }) => [print, count]));
  return [...new Set(prints)].map((print) => ({ print, count: (before.get(print) ?? 0) + 1 }));
}

/** A call that waits for more rounds than these is not compared any more. */
const ROUNDS_MOST = 64;

/** Counts results in the rounds of their calls, in whatever order they come; a call that waits has none. */
export function countResults(counters: Counters, results: readonly Pick<ToolCallOutput, 'callId' | 'print'>[]) {
  if (results.length === 0 || counters.rounds.length === 0) return counters;
  const prints = new Map(results.map(({ callId, print }) => [callId, print]));
  let { streaks } = counters;
  const rounds: Round[] = [];
  for (const [index, round] of counters.rounds.entries()) {
    const open = round.open.filter((callId) => !prints.has(callId));
    const ended = round.open.flatMap((callId) => prints.get(callId) ?? []);
    const now = ended.length > 0 ? { open, prints: [...round.prints, ...ended] } : round;
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
