/**
 * Reads, authorizes and routes decisions and settlements of a host. Rule: nothing from outside reaches a chart unparsed;
 * each is about one call, of this conversation or of a sub-agent within it; the answer is true once it is durable there.
 */
import {
  type Decision,
  type DecisionReceipt,
  type Json,
  judgeDecision,
  type PendingCall,
  type Settlement,
} from '../../machines/internal.ts';
import { DecisionRefusedError, InvalidDecisionError, LimitError } from '../errors.ts';
import { exactJson, ownArgsJson } from '../json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { pendingCall } from './run.ts';

export interface DecisionContext {
  runtime: Runtime;
  authorize: ((decision: Decision, call: PendingCall) => boolean | Promise<boolean>) | undefined;
  /** Decisions that the conversation holds for calls that have not used them. */
  most: number;
  /** Throws where the conversation was closed meanwhile. */
  mustBeOpen(): void;
}

/** Rejects with InvalidDecisionError, DecisionRefusedError or LimitError. */
export async function decide({ runtime, authorize, most, mustBeOpen }: DecisionContext, decision: Decision) {
  const { callId } = decision;
  const { known } = runtime;
  const own = known.calls.get(callId);
  const subAgents = own ? undefined : runtime.subAgents;
  const found = own ? { record: own, path: [callId] } : subAgents?.find(callId);
  if (found && authorize) {
    const call = pendingCall(found.record, found.path);
    if (!(await isAllowed(() => authorize(decision, call))))
      throw new DecisionRefusedError(`authorize refused the decision on ${callId}; nothing was changed`);
    mustBeOpen();
  }
  if (subAgents && found) return subAgents.decide(decision);
  const command = { type: 'decision.proposed', decision } as const;
  return (await runtime.commands.decisions.run(callId, () => {
    const { receipt } = judgeDecision(known.calls.get(callId), decision);
    // Who says the same again is told so; another word would be one more.
    const isNew = receipt === 'applied' || receipt === 'held' || receipt === 'conflict';
    if (isNew && known.held + runtime.commands.countOf(command.type) >= most) {
      throw new LimitError(`${most} decisions are held that no call has used (policies.limits.decisions)`);
    }
    return runtime.submit(command);
  })) as DecisionReceipt;
}

export type Settled = 'applied' | 'unknown';

export async function settle(runtime: Runtime, callId: string, how: Settlement): Promise<Settled> {
  const subAgents = runtime.known.calls.has(callId) ? undefined : runtime.subAgents;
  if (subAgents) return subAgents.settle(callId, how);
  const command = { type: 'settlement.proposed', callId, how } as const;
  return (await runtime.commands.decisions.run(callId, () => runtime.submit(command))) as Settled;
}

const BYTES_MAX = 1_048_576;
const ACTIONS: readonly string[] = ['approve', 'deny', 'edit', 'answer'];
type Fields = { readonly [key: string]: Json };

function refuse(expected: string, what = 'a decision'): never {
  throw new InvalidDecisionError(`${what} needs ${expected}; nothing was changed`);
}

/** The fields of an object that is JSON already. */
function fieldsOf(input: unknown, what: string): Fields {
  const json = exactJson(input, BYTES_MAX);
  if (json.kind === 'refused') refuse(`to be JSON of at most ${BYTES_MAX} bytes (${json.why})`, what);
  const { value } = json;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('to be an object', what);
  return value;
}

/** Own fields only: `constructor` and its like are on every object. */
const field = (given: Fields, key: string): Json | undefined => (Object.hasOwn(given, key) ? given[key] : undefined);

function textField(given: Fields, key: string): string | undefined {
  const value = field(given, key);
  if (value === undefined || typeof value === 'string') return value;
  return refuse(`${key} to be a text`);
}

/** The id of the call that is meant. Throws InvalidDecisionError. */
export function readCallId(callId: unknown, what = 'a decision'): string {
  return typeof callId === 'string' && callId !== '' ? callId : refuse('callId, the id of the call', what);
}

/** A decision as it may enter the log. Throws InvalidDecisionError. */
export function readDecision(input: unknown): Decision {
  const given = fieldsOf(input, 'a decision');
  const callId = readCallId(field(given, 'callId'));
  const suspension = field(given, 'suspension');
  const action = field(given, 'action');
  const known = typeof suspension === 'number' && Number.isSafeInteger(suspension) && suspension >= 1;
  if (suspension !== undefined && !known) refuse('suspension to be a whole number from 1 on');
  if (typeof action !== 'string' || !ACTIONS.includes(action)) refuse(`action, one of ${ACTIONS.join(', ')}`);
  const by = textField(given, 'by');
  const base = { callId, ...(known && { suspension }), ...(by !== undefined && { by }) };
  switch (action) {
    case 'deny': {
      const reason = textField(given, 'reason');
      return Object.freeze(reason === undefined ? { ...base, action } : { ...base, action, reason });
    }
    case 'edit': {
      const args = field(given, 'args');
      if (args === undefined) refuse('args, the new arguments');
      return Object.freeze({ ...base, action, args: ownArgsJson(args) });
    }
    case 'answer': {
      const payload = field(given, 'payload');
      return payload === undefined ? refuse('payload, the answer') : Object.freeze({ ...base, action, payload });
    }
    default:
      return Object.freeze({ ...base, action: 'approve' as const });
  }
}

/** How an unknown outcome is settled, as it may enter the log. Throws InvalidDecisionError. */
export function readSettlement(input: unknown): Settlement {
  const what = 'a settlement';
  const given = fieldsOf(input, what);
  const keys = Object.keys(given);
  const [key] = keys;
  if (keys.length === 1 && key === 'ran') return Object.freeze({ ran: given.ran ?? null });
  if (keys.length === 1 && key === 'didNotRun' && given.didNotRun === true) return Object.freeze({ didNotRun: true });
  if (keys.length === 1 && key === 'retry' && given.retry === true) return Object.freeze({ retry: true });
  return refuse('one of { ran: result }, { didNotRun: true } and { retry: true }', what);
}

/** Only a plain yes is one; an authorizer that throws has not said it. */
export async function isAllowed(ask: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return (await ask()) === true;
  } catch {
    return false;
  }
}
