/**
 * Calls of sub-agents that a person was asked about and that are over. Rule: who decides later is told what became of
 * the call, and nothing goes on.
 */
import {
  type CallRecord,
  type Decision,
  type DecisionReceipt,
  judge,
  type Knowledge,
} from '../../machines/internal.ts';

export class PastCalls {
  readonly #calls = new Map<string, { record: CallRecord; path: string[] }>();

  /** Keeps those of a sub-agent whose log is closed. */
  keep(outer: string, { calls }: Knowledge): void {
    for (const record of calls.values()) {
      const { callId, suspension, decisions } = record;
      if (suspension === 0 && decisions.size === 0) continue;
      this.#calls.set(callId, { record: { ...record, status: 'ended' }, path: [outer, callId] });
    }
  }

  find(callId: string): { record: CallRecord; path: string[] } | undefined {
    return this.#calls.get(callId);
  }

  receipt(decision: Decision): DecisionReceipt {
    return judge(this.#calls.get(decision.callId)?.record, decision).receipt;
  }
}
