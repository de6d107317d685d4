/**
 * The exit codes of the program. Invariant: a code has one meaning in every command, and scripts may rely on it.
 * Explanations go to standard error.
 */
import { ConfigurationError, SessionBusyError } from '../errors.ts';
import type { RunResult } from '../index.ts';

export const FAILED = 1;
export const USAGE = 2;
export const WAITING = 3;
export const MAX_TURNS = 4;
export const MAX_BUDGET = 5;
export const BUSY = 6;
export const CANCELLED = 130;

/** The summary at the end of the help texts. */
export const EXIT_CODES = `Exit codes: 0 completed, 1 error, 2 usage and an unknown session, 3 a call waits for a decision, 4 the turns are used up,
5 the budget is used up, 6 another process holds the session, 130 cancelled.`;

/** The exit code of a run that has ended or waits. */
export function exitCodeOf({ reason, subtype }: Pick<RunResult, 'reason' | 'subtype'>): number {
  if (reason === 'completed') return 0;
  if (reason === 'interrupted') return CANCELLED;
  if (reason === null) return WAITING;
  if (subtype === 'error_max_turns') return MAX_TURNS;
  return subtype === 'error_max_budget_usd' ? MAX_BUDGET : FAILED;
}

/** The exit code of an error. An error that the caller can fix with other arguments is a usage error. */
export function exitCodeOfError(error: unknown): number {
  if (error instanceof ConfigurationError) return USAGE;
  return error instanceof SessionBusyError ? BUSY : FAILED;
}
