/**
 * The calls that wait for a decision, derived from a log alone. Invariant: while nothing runs they equal
 * `conversation.pending`, sub-agents' calls included: a suspended spawn call lists them.
 */
import type { CallRecord, Json, LogState, PendingCall } from '../../machines/internal.ts';
import { pendingWithin, WAITS } from '../runtime/subAgentPort.ts';
import { pendingCalls } from './run.ts';

/** A decision on a spawn call names the inner call that was decided. */
function decidedWithin({ decisions, suspension }: CallRecord): Json | undefined {
  const decision = decisions.get(suspension);
  const payload = decision?.action === 'answer' ? decision.payload : undefined;
  return typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? payload.decided : undefined;
}

/** `spawns`: the ids of the calls that have sub-agents. */
export function waitingCalls(
  logState: Pick<LogState, 'calls' | 'open'>,
  spawns: { has(callId: string): boolean },
): PendingCall[] {
  const { calls, open } = logState;
  const waitsWithin = ({ callId, reason }: CallRecord): boolean => reason === WAITS && spawns.has(callId);
  const pending = [...open].flatMap((callId) => {
    const record = calls.get(callId);
    if (record?.status !== 'suspended' || !waitsWithin(record)) return [];
    const decided = decidedWithin(record);
    return pendingWithin(callId, record.payload).filter((call) => call.callId !== decided);
  });
  return pendingCalls(logState, { pending, waitsWithin });
}
