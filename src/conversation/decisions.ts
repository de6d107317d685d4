/**
 * Reads, authorizes and routes decisions of a host. Invariant: nothing from outside reaches a chart unparsed. A decision
 * concerns one call, of this conversation or of a sub-agent. Its answer is sent after the decision is durable there.
 */
import {
  type Decision,
  type DecisionReceipt,
  judgeDecision,
  type LogEntry,
  type PendingCall,
} from '../../machines/internal.ts';
import { DecisionRefusedError, LimitError } from '../errors.ts';
import { ownArgsJson } from '../json.ts';
import { onDemand } from '../onDemand.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { display } from '../validation.ts';
import { field, fieldsOf, readCallId, refuse, textField } from './hostInput.ts';
import { pendingCall } from './run.ts';

const load = onDemand(() => import('./settlements.ts'));
let settlements: typeof import('./settlements.ts') | undefined;
/** Loaded for a conversation that exists already, because only a process that ended early leaves an unknown outcome. */
export const loadSettlements = async (): Promise<typeof import('./settlements.ts')> => {
  settlements ??= await load();
  return settlements;
};

/** Settlements are read in the order of their arrival, after the module is loaded. Rejects with InvalidDecisionError. */
export const settle = async (runtime: Runtime, callId: unknown, how: unknown): Promise<'applied' | 'unknown'> =>
  (settlements ?? (await loadSettlements())).settle(runtime, callId, how);

export interface DecisionContext {
  runtime: Runtime;
  authorize: ((decision: Decision, call: PendingCall) => boolean | Promise<boolean>) | undefined;
  /** Decisions for calls that have not used them. */
  most: number;
  /** Throws where the conversation was closed meanwhile. */
  mustBeOpen(): void;
}

type DecisionEntry = Extract<LogEntry, { type: 'decision' }>;

/** Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
export async function decide({ runtime, authorize, most, mustBeOpen }: DecisionContext, decision: Decision) {
  const { callId } = decision;
  const { logState, log } = runtime;
  const own = logState.calls.get(callId);
  const subAgents = own ? undefined : runtime.subAgents;
  const found = own ? { record: own, path: [callId] } : subAgents?.find(callId);
  if (found && authorize) {
    const call = pendingCall(found.record, found.path, runtime.request.origin(found.path[0]));
    if (!(await isAllowed(() => authorize(decision, call))))
      throw new DecisionRefusedError(`authorize refused the decision on ${callId}; nothing was changed`);
    mustBeOpen();
  }
  if (subAgents && found) return subAgents.decide(decision);
  const command = { type: 'decision.proposed', decision } as const;
  const { outcome, suspension = 1 } = await runtime.commands.decisions.run(callId, () => {
    const { receipt } = judgeDecision(logState.calls.get(callId), decision);
    // A repeated decision is reported as such. A different one counts as one more.
    const isNew = receipt === 'applied' || receipt === 'held' || receipt === 'conflict';
    if (isNew && logState.held + runtime.commands.countOf(command.type) >= most) {
      throw new LimitError(`${most} decisions are held that no call has used (policies.limits.decisions)`);
    }
    return runtime.submit(command);
  });
  const receipt = outcome as DecisionReceipt;
  if (receipt !== 'applied' && receipt !== 'held') return receipt;
  // A decision that the store refused may have been stored with the stop of its run. Stored decisions contain no secrets.
  const written = log.redact.entry({ runId: null, type: 'decision', callId, suspension, decision }) as DecisionEntry;
  const record = logState.calls.get(callId);
  const stored = judgeDecision(record, { ...written.decision, suspension }).receipt;
  const isOwn = record?.decisions.get(suspension)?.by === written.decision.by;
  return stored === 'conflict' || (stored === 'duplicate' && !isOwn) ? stored : receipt;
}

type Action = Decision['action'];
const COMMON = ['callId', 'suspension', 'by', 'action'];
/** The fields that a decision of each action may have. */
const FIELDS: { readonly [action in Action]: readonly string[] } = {
  approve: COMMON,
  deny: [...COMMON, 'reason'],
  edit: [...COMMON, 'args'],
  answer: [...COMMON, 'payload'],
};
const isAction = (value: unknown): value is Action => typeof value === 'string' && Object.hasOwn(FIELDS, value);

/** The decision as it may be logged. Throws InvalidDecisionError. */
export function readDecision(input: unknown): Decision {
  const fields = fieldsOf(input, 'a decision');
  const callId = readCallId(field(fields, 'callId'));
  const suspension = field(fields, 'suspension');
  const action = field(fields, 'action');
  const isValidSuspension = typeof suspension === 'number' && Number.isSafeInteger(suspension) && suspension >= 1;
  if (suspension !== undefined && !isValidSuspension) refuse('suspension to be a whole number from 1 on');
  if (!isAction(action)) return refuse(`action, one of ${Object.keys(FIELDS).join(', ')}`);
  // An approval with new arguments must not run the old ones.
  const stray = Object.keys(fields).find((key) => !FIELDS[action].includes(key));
  if (stray !== undefined) {
    refuse(`no other fields than ${FIELDS[action].join(', ')}, got ${display(stray)}`, `a decision to ${action}`);
  }
  const by = textField(fields, 'by');
  const base = { callId, ...(isValidSuspension && { suspension }), ...(by !== undefined && { by }) };
  switch (action) {
    case 'deny': {
      const reason = textField(fields, 'reason');
      return Object.freeze(reason === undefined ? { ...base, action } : { ...base, action, reason });
    }
    case 'edit': {
      const args = field(fields, 'args');
      if (args === undefined) refuse('args, the new arguments');
      return Object.freeze({ ...base, action, args: ownArgsJson(args) });
    }
    case 'answer': {
      const payload = field(fields, 'payload');
      return payload === undefined ? refuse('payload, the answer') : Object.freeze({ ...base, action, payload });
    }
    default:
      return Object.freeze({ ...base, action: 'approve' as const });
  }
}

/** Only `true` allows. An authorizer that throws refuses. */
export async function isAllowed(ask: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return (await ask()) === true;
  } catch {
    return false;
  }
}
