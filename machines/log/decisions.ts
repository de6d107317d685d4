/**
 * Decision matching (run-lifecycle, RESUME_TOOL_CALL). Rule: a decision names a call and a suspension; the first
 * durable one wins; every other one is told why it changes nothing.
 */

import { canonical } from '../fingerprint.ts';
import type { Decision, DecisionReceipt, Json, NewEntry } from '../vocabulary.ts';
import type { CallRecord } from './callRecord.ts';

/** The part of a decision that two of them are compared by. */
function substance(decision: Decision): Json {
  switch (decision.action) {
    case 'approve':
      return ['approve'];
    case 'deny':
      return ['deny', decision.reason ?? null];
    case 'edit':
      return ['edit', decision.args];
    case 'answer':
      return ['answer', decision.payload];
  }
}
const same = (a: Decision, b: Decision): boolean => canonical(substance(a)) === canonical(substance(b));

/** What is put on record of calls that were decided early and never suspended; of one that did, its suspension tells. */
export const expiredEntries = (runId: string, held: readonly { callId: string; suspension: number }[]): NewEntry[] =>
  held
    .filter(({ suspension }) => suspension === 1)
    .map(({ callId }) => ({ runId, type: 'diagnostic', code: 'decision_expired', detail: { callId } }));

export interface Judgement {
  receipt: DecisionReceipt;
  /** The suspension that the decision is for. */
  suspension: number;
}

/** The suspension a decision without a number means: the current one, or the first that may come. */
function meant(record: CallRecord, decision: Decision): number {
  return decision.suspension ?? Math.max(1, record.suspension);
}

/** What a decision would do to this call now. `applied` and `held` are to be made durable. */
export function judgeDecision(record: CallRecord | undefined, decision: Decision): Judgement {
  if (!record) return { receipt: 'unknown', suspension: decision.suspension ?? 1 };
  const suspension = meant(record, decision);
  const told = (receipt: DecisionReceipt): Judgement => ({ receipt, suspension });
  const first = record.decisions.get(suspension);
  if (suspension < record.suspension) return told('stale');
  // A call that was cancelled, or never suspended, ended without its decision.
  if (first && record.status === 'ended' && !record.used.has(suspension)) return told('stale');
  if (first) return told(same(first, decision) ? 'duplicate' : 'conflict');
  const current = record.suspension;
  switch (record.status) {
    case 'ended':
      return told(suspension > Math.max(1, current) ? 'unknown' : 'stale');
    case 'suspended':
      return told(suspension === current ? 'applied' : 'unknown');
    default:
      return told(suspension === current + 1 ? 'held' : suspension <= current ? 'stale' : 'unknown');
  }
}
