/**
 * How a failed execution of a tool is repeated. Rule: the host says what may be repeated (`retry` in its answer), the
 * policy how often and when; every repetition is announced in the log before its wait begins.
 */

import type { RoundCall } from '../calls.ts';
import { backoffMs, type ToolRetry } from '../policies.ts';
import type { EffectDone, EffectRequest, TimerElapsed, ToolValue } from '../ports.ts';
import type { NewEntry } from '../vocabulary.ts';

export interface ToolAttempts {
  runId: string;
  /** Prefix of the ids of everything the call asks for. */
  id: string;
  call: RoundCall;
  retry: false | ToolRetry;
  /** Counts from 1. */
  attempt: number;
}
type Args = { context: ToolAttempts; event: EffectDone | TimerElapsed };
type Erred = Extract<ToolValue, { kind: 'erred' }>;

/** A failure that the host allows to be repeated. */
function repeatable(event: Args['event']): Erred | undefined {
  return event.type === 'effect.done' && event.value.kind === 'erred' && event.value.retry ? event.value : undefined;
}

/** The tool failed, and another execution is allowed and left. */
export const retries = ({ context: { retry, attempt }, event }: Args): boolean =>
  repeatable(event) !== undefined && retry !== false && attempt < retry.attempts;

/** `attempt` already counts the execution that follows. */
function waitMs({ retry, attempt }: ToolAttempts, { retry: allowed }: Erred): number {
  return retry === false ? 0 : backoffMs(retry, attempt - 1, allowed?.random ?? 0);
}

export function retryNotice({ context, event }: Args): NewEntry[] {
  const { runId, call, retry, attempt } = context;
  const erred = repeatable(event);
  if (!erred || retry === false) return [];
  const again = `attempt ${attempt} of ${retry.attempts} follows in ${waitMs(context, erred)} ms`;
  const text = `The tool ${call.name} failed in call ${call.callId} (${erred.code}); ${again}.`;
  return [{ runId, type: 'notice', code: 'tool_retry', text }];
}

const waitId = ({ id, attempt }: ToolAttempts): string => `${id}/wait/${attempt}`;

/** The timer is the wait that this call asked for. */
export const waitIsOver = ({ context, event }: Args): boolean =>
  event.type === 'timer.elapsed' && event.id === waitId(context);

export function askWait({ context, event }: Args): EffectRequest | undefined {
  const erred = repeatable(event);
  return erred && { kind: 'timer', id: waitId(context), ms: waitMs(context, erred) };
}
