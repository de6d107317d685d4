/**
 * A call whose sub-agents wait is gone on with like any other that waits: by a decision on it. Rule: the call is decided
 * behind the decision within it, once a suspension, so that nothing is gone on with that is not on record.
 */
import type { CallRecord, Decision, Knowledge, NewEntry } from '../../machines/internal.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** What somebody said of a call within. */
export type Word = Pick<Decision, 'callId' | 'by'>;

/** What a decision within the call comes to for the call itself; nothing where that is over or decided already. */
function answerTo(record: CallRecord | undefined, within?: Word): (Decision & { suspension: number }) | undefined {
  if (!record || record.status === 'ended') return undefined;
  const { callId, status } = record;
  const suspension = status === 'suspended' ? record.suspension : record.suspension + 1;
  if (record.decisions.has(suspension)) return undefined;
  const by = within?.by === undefined ? {} : { by: within.by };
  return { callId, suspension, ...by, action: 'answer', payload: within ? { decided: within.callId } : null };
}

/** For a log whose chart does not run yet. */
export function wakingEntries({ calls, runId }: Knowledge, callId: string): NewEntry[] {
  const decision = answerTo(calls.get(callId));
  return decision ? [{ runId, type: 'decision', callId, suspension: decision.suspension, decision }] : [];
}

/** Resolves when it is durable. A call that a crash cut off needs none: it runs again when it is resumed. */
export async function wakeCall(runtime: Runtime, callId: string, within: Word): Promise<void> {
  const record = runtime.known.calls.get(callId);
  const cutOff = record?.status === 'started' && (runtime.status === 'idle' || runtime.status === 'error');
  const decision = cutOff ? undefined : answerTo(record, within);
  if (decision) await runtime.act({ type: 'decision.proposed', decision });
}
