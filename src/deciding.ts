/**
 * How a decision of the host is taken. Rule: it is about one call, of this conversation or of a sub-agent within it;
 * whoever may not decide changes nothing; what it is answered is true once it is durable where the call is.
 */
import { type CallRecord, type Decision, type DecisionReceipt, judge, type PendingCall } from '../machines/internal.ts';
import { DecisionRefusedError, LimitError } from './errors.ts';
import { isAllowed } from './inbox.ts';
import type { Runtime } from './runtime/runtime.ts';
import { nestedIn } from './subAgents/nested.ts';

export interface Desk {
  runtime: Runtime;
  authorize: ((decision: Decision, call: PendingCall) => boolean | Promise<boolean>) | undefined;
  /** Decisions that the conversation holds for calls that have not used them. */
  most: number;
  /** Throws where the conversation was closed meanwhile. */
  mustBeOpen(): void;
}

/** What the host's authorizer is shown. */
function shown({ callId, name, args, reason, payload, suspension }: CallRecord, path: string[]): PendingCall {
  const call = { callId, name, args, reason, suspension, path };
  return payload === undefined ? call : { ...call, payload };
}

/** Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
export async function decideAt({ runtime, authorize, most, mustBeOpen }: Desk, decision: Decision) {
  const { callId } = decision;
  const { known } = runtime;
  const own = known.calls.get(callId);
  const nested = own ? undefined : nestedIn(known);
  const found = own ? { record: own, path: [callId] } : nested?.find(callId);
  if (found && authorize) {
    const call = shown(found.record, found.path);
    if (!(await isAllowed(() => authorize(decision, call))))
      throw new DecisionRefusedError(`authorize refused the decision on ${callId}; nothing was changed`);
    mustBeOpen();
  }
  if (nested && found) return nested.decide(decision);
  const act = { type: 'decision.proposed', decision } as const;
  return (await runtime.tickets.turns.take(callId, () => {
    const { receipt } = judge(known.calls.get(callId), decision);
    // Who says the same again is told so; another word would be one more.
    const isNew = receipt === 'applied' || receipt === 'held' || receipt === 'conflict';
    if (isNew && known.held + runtime.tickets.underWay(act.type) >= most) {
      throw new LimitError(`${most} decisions are held that no call has used (policies.limits.decisions)`);
    }
    return runtime.act(act);
  })) as DecisionReceipt;
}
