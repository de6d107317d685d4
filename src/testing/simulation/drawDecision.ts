/**
 * Draws a decision, including unlikely ones: for calls that wait, do not wait yet, have ended or do not exist, and the
 * same decision twice.
 */
import type { Decision, Json, PendingCall } from '../../../machines/internal.ts';
import type { LoggedCall } from './callLog.ts';
import type { Tape } from './choiceTape.ts';

const TARGETS = { waiting: 12, early: 3, late: 1, twice: 1, nobody: 0.5 } as const;
export type DecisionTarget = keyof typeof TARGETS;

export interface DecisionContext {
  pending: readonly PendingCall[];
  calls: ReadonlyMap<string, LoggedCall>;
  /** The previous decision. */
  last: Decision | undefined;
  /** Returns arguments for the tool of this name. */
  argsOf(name: string): Json;
}

export function drawDecision(
  tape: Tape,
  context: DecisionContext,
  by: string,
): { target: DecisionTarget; decision: Decision } {
  const wanted = tape.weighted<DecisionTarget>(TARGETS);
  const target = wanted === 'waiting' && context.pending.length === 0 ? 'early' : wanted;
  if (target === 'twice' && context.last) return { target, decision: { ...context.last, by } };
  const call = callFor(tape, target, context);
  const { callId, name, suspension } = call ?? { callId: 'nobody', name: '', suspension: undefined };
  const action = tape.pick(['approve', 'approve', 'deny', 'edit', 'answer'] as const);
  const about = suspension !== undefined && tape.chance(0.5) ? { suspension } : {};
  const fields = decisionFields(action, tape.next(3), () => context.argsOf(name));
  return { target: call ? target : 'nobody', decision: { callId, ...about, by, ...fields } as Decision };
}

function callFor(tape: Tape, target: DecisionTarget, { pending, calls }: DecisionContext) {
  if (target === 'nobody') return undefined;
  if (target === 'waiting' && pending.length > 0) return tape.pick(pending);
  const isOver = target === 'late';
  const others = [...calls].filter(([, { isEnded }]) => isEnded === isOver);
  if (others.length === 0) return undefined;
  const [callId, { name }] = tape.pick(others);
  return { callId, name, suspension: undefined };
}

function decisionFields(action: Decision['action'], number: number, args: () => Json) {
  switch (action) {
    case 'edit':
      // Arguments that violate every schema are refused like a model's.
      return { action, args: number === 2 ? 5 : args() };
    case 'answer':
      return { action, payload: [false, 0, ''][number] ?? null };
    case 'deny':
      return { action, reason: `reason ${number}` };
    default:
      return { action };
  }
}
