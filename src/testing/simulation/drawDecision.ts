/**
 * Draws a decision, unlikely ones included: for a call that waits, one that does not wait yet, one that is over, the same
 * twice, and for a call that does not exist.
 */
import type { Decision, Json, PendingCall } from '../../../machines/internal.ts';
import type { LoggedCall } from './callLog.ts';
import type { Tape } from './choiceTape.ts';

const TARGETS = { waiting: 12, early: 3, late: 1, twice: 1, nobody: 0.5 } as const;
export type DecisionTarget = keyof typeof TARGETS;

export interface DecisionContext {
  pending: readonly PendingCall[];
  calls: ReadonlyMap<string, LoggedCall>;
  /** The decision before this one. */
  last: Decision | undefined;
  /** Arguments that the tool of this name takes. */
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
  const found = callFor(tape, target, context);
  const { callId, name, suspension } = found ?? { callId: 'nobody', name: '', suspension: undefined };
  const action = tape.pick(['approve', 'approve', 'deny', 'edit', 'answer'] as const);
  const about = suspension !== undefined && tape.chance(0.5) ? { suspension } : {};
  const words = said(action, tape.next(3), () => context.argsOf(name));
  return { target: found ? target : 'nobody', decision: { callId, ...about, by, ...words } as Decision };
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

function said(action: Decision['action'], number: number, args: () => Json) {
  switch (action) {
    case 'edit':
      // Arguments that no schema takes are refused like a model's.
      return { action, args: number === 2 ? 5 : args() };
    case 'answer':
      return { action, payload: [false, 0, ''][number] ?? null };
    case 'deny':
      return { action, reason: `reason ${number}` };
    default:
      return { action };
  }
}
