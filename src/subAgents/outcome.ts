/**
 * The outcome of a sub-agent, the report to its parent, and the budget they share. Rule: the outcome is read off the sub-agent's
 * log where there is one, so that a restart comes to the same; every sub-agent is listed; an unknown price exceeds every limit.
 */
import {
  addUsage,
  type Counters,
  type Json,
  type Limits,
  type LogEntry,
  type LogState,
  type RunOutput,
  type UsageCost,
  zeroUsage,
} from '../../machines/internal.ts';
import { bytesOf } from '../json.ts';
import type { Task } from '../runtime/subAgentPort.ts';
import { cut } from '../tools/result.ts';
import { OUT_OF_BUDGET, SUBMIT } from './submit.ts';

export interface Outcome {
  outcome: 'succeeded' | 'failed' | 'timed_out' | 'cancelled';
  /** The result is the text of the last reply: it was not handed in. */
  implicit?: true;
  /** The result, or what is known of the failure. */
  text: string;
}

const textOf = (result: Json): string => (typeof result === 'string' ? result : JSON.stringify(result));

/** What was handed in, in the model's words. */
export function submissionIn({ calls }: LogState): string | undefined {
  let found: string | undefined;
  for (const { name, outcome, args } of calls.values()) {
    if (name !== SUBMIT || outcome !== 'succeeded') continue;
    if (typeof args === 'object' && args !== null && !Array.isArray(args)) found = textOf(args.result ?? null);
  }
  return found;
}

/** The text of the last reply. */
function lastWords(log: readonly LogEntry[]): string {
  let text = '';
  let open = '';
  for (const entry of log) {
    if (entry.type === 'agent-output' && entry.item.type === 'assistant') open += entry.item.text;
    if (entry.type !== 'model-reply') continue;
    text = open;
    open = '';
  }
  return text;
}

const failed = (text: string): Outcome => ({ outcome: 'failed', text });

/** How the log says it ended; nothing where it can go on: it waits, or a crash cut it short. `error`: what its run said. */
export function outcomeInLog(
  logState: LogState,
  log: readonly LogEntry[],
  error?: { code: string; message: string },
): Outcome | undefined {
  const submission = submissionIn(logState);
  if (submission !== undefined && logState.cycle !== 'running') return { outcome: 'succeeded', text: submission };
  if (logState.cycle !== 'stopped' || !logState.stop || logState.stop.cause === 'crash') return undefined;
  const { reason, cause = reason } = logState.stop;
  if (cause === 'timeout') return { outcome: 'timed_out', text: 'It did not end within its time.' };
  if (reason === 'interrupted') return { outcome: 'cancelled', text: 'It was cancelled.' };
  if (cause === OUT_OF_BUDGET) return failed('It ended without a result: the budget is spent (max_budget).');
  const words = lastWords(log);
  if (reason === 'completed' && cause !== SUBMIT && (cause === 'end_turn' || words !== '')) {
    return { outcome: 'succeeded', implicit: true, text: words };
  }
  return failed(`It ended without a result (${error ? `${error.code}: ${error.message}` : cause}).`);
}

/** How a run ended that its log knows nothing of. */
export const outcomeOfRun = ({
  termination,
  cause,
  error,
}: Pick<RunOutput, 'termination' | 'cause' | 'error'>): Outcome =>
  termination === 'Cancelled'
    ? { outcome: 'cancelled', text: 'It was cancelled.' }
    : failed(`It ended without a result (${error ? `${error.code}: ${error.message}` : (cause ?? termination)}).`);

export const failedWith = (code: string, message: string): Outcome =>
  failed(`It could not go on (${code}: ${message}).`);

const TASK_SHOWN = 200;
/** A share below which texts are not cut any further. */
const LEAST = 64;

/** All of them as JSON, in this order; long texts are cut, each to its share of `most` bytes. */
export function reportOf(ended: readonly { task: Task; ending: Outcome }[], most: number): string {
  const written = (share: number): string =>
    JSON.stringify(
      ended.map(({ task: { id, task }, ending: { outcome, implicit, text } }) => ({
        id,
        task: cut(task, TASK_SHOWN),
        outcome,
        ...(implicit && { implicit }),
        text: cut(text, share),
      })),
    );
  let share = most;
  let report = written(share);
  // Characters that JSON escapes take more room than they are counted for.
  while (bytesOf(report) > most && share > LEAST) {
    share = Math.min(Math.floor(share / 2), Math.floor(most / ended.length));
    report = written(share);
  }
  return report;
}

/** Whether a limit is reached by what is counted and what sub-agents used since. */
export function overBudget(
  { costUsd, tokens }: Pick<Limits, 'costUsd' | 'tokens'>,
  counted: Pick<Counters, 'tokens' | 'costUsd' | 'unpriced'>,
  uncounted: () => readonly UsageCost[],
): boolean {
  if (costUsd === false && tokens === false) return false;
  const since = uncounted().reduce(addUsage, zeroUsage);
  const spentTokens = counted.tokens + since.usage.inputTokens + since.usage.outputTokens;
  const isPriced = counted.unpriced === 0 && since.costUsd !== null;
  const spentUsd = isPriced ? counted.costUsd + (since.costUsd ?? 0) : Number.POSITIVE_INFINITY;
  return (tokens !== false && spentTokens >= tokens) || (costUsd !== false && spentUsd >= costUsd);
}
