/**
 * The outcome of a sub-agent, the report to its parent, and their shared budget. Rule: the outcome is derived from the
 * sub-agent's log if there is one, so a restart gives the same outcome. The report lists every sub-agent. An unknown
 * price exceeds every limit.
 */
import {
  addUsage,
  type Json,
  type Limits,
  type LogEntry,
  type LogState,
  type RunOutput,
  zeroUsage,
} from '../../machines/internal.ts';
import { bytesOf } from '../json.ts';
import type { SpentUsage, Task } from '../runtime/subAgentPort.ts';
import { cut } from '../tools/toolResult.ts';
import { OUT_OF_BUDGET, SUBMIT } from './submitTool.ts';

export interface Outcome {
  outcome: 'succeeded' | 'failed' | 'timed_out' | 'cancelled';
  /** The result is the text of the last reply, because the sub-agent submitted none. */
  implicit?: true;
  /** The result, or a description of the failure. */
  text: string;
}

const textOf = (result: Json): string => (typeof result === 'string' ? result : JSON.stringify(result));

/** The submitted result, in the model's words. */
export function submissionIn({ calls }: LogState): string | undefined {
  let submission: string | undefined;
  for (const { name, outcome, args } of calls.values()) {
    if (name !== SUBMIT || outcome !== 'succeeded') continue;
    if (typeof args === 'object' && args !== null && !Array.isArray(args)) submission = textOf(args.result ?? null);
  }
  return submission;
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

/**
 * The outcome that the log records; undefined if the sub-agent can continue after a wait or a crash. `error` is the
 * error of its run.
 */
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

/** The outcome of a run that left nothing in its log. */
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
/** The minimum number of bytes to which a text is cut. */
const LEAST = 64;

/** All outcomes as JSON, in this order. Long texts are cut to an equal share of `bytesMax`. */
export function reportOf(ended: readonly { task: Task; ending: Outcome }[], bytesMax: number): string {
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
  let share = bytesMax;
  let report = written(share);
  // JSON escapes make characters longer than they were counted.
  while (bytesOf(report) > bytesMax && share > LEAST) {
    share = Math.min(Math.floor(share / 2), Math.floor(bytesMax / ended.length));
    report = written(share);
  }
  return report;
}

/** True if the parent's usage plus the uncounted usage of its sub-agents reaches a limit. */
export function overBudget({ costUsd, tokens }: Pick<Limits, 'costUsd' | 'tokens'>, spent: () => SpentUsage): boolean {
  if (costUsd === false && tokens === false) return false;
  const { counted, uncounted } = spent();
  const since = uncounted.reduce(addUsage, zeroUsage);
  const spentTokens = counted.tokens + since.usage.inputTokens + since.usage.outputTokens;
  const isPriced = counted.unpriced === 0 && since.costUsd !== null;
  const spentUsd = isPriced ? counted.costUsd + (since.costUsd ?? 0) : Number.POSITIVE_INFINITY;
  return (tokens !== false && spentTokens >= tokens) || (costUsd !== false && spentUsd >= costUsd);
}
