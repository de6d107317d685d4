/**
 * What a person may decide, the odd included: on a call that waits, on one that has yet to, on one that is over, twice,
 * and on one nobody made.
 */
import type { Decision, Json, PendingCall } from '../../../machines/internal.ts';
import type { Tape } from './tape.ts';
import type { WatchedCall } from './watch/callWatch.ts';

const WHOM = { waiting: 12, early: 3, late: 1, twice: 1, nobody: 0.5 } as const;
export type Whom = keyof typeof WHOM;

export interface Asked {
  pending: readonly PendingCall[];
  calls: ReadonlyMap<string, WatchedCall>;
  /** The decision before this one. */
  last: Decision | undefined;
  /** Arguments that the tool of this name takes. */
  argsOf(name: string): Json;
}

export function drawDecision(tape: Tape, asked: Asked, by: string): { whom: Whom; decision: Decision } {
  const wanted = tape.weighted<Whom>(WHOM);
  const whom = wanted === 'waiting' && asked.pending.length === 0 ? 'early' : wanted;
  if (whom === 'twice' && asked.last) return { whom, decision: { ...asked.last, by } };
  const found = callFor(tape, whom, asked);
  const { callId, name, suspension } = found ?? { callId: 'nobody', name: '', suspension: undefined };
  const action = tape.pick(['approve', 'approve', 'deny', 'edit', 'answer'] as const);
  const about = suspension !== undefined && tape.chance(0.5) ? { suspension } : {};
  const words = said(action, tape.next(3), () => asked.argsOf(name));
  return { whom: found ? whom : 'nobody', decision: { callId, ...about, by, ...words } as Decision };
}

function callFor(tape: Tape, whom: Whom, { pending, calls }: Asked) {
  if (whom === 'nobody') return undefined;
  if (whom === 'waiting' && pending.length > 0) return tape.pick(pending);
  const isOver = whom === 'late';
  const others = [...calls].filter(([, { status }]) => (status === 'ended') === isOver);
  if (others.length === 0) return undefined;
  const [callId, { name }] = tape.pick(others);
  return { callId, name, suspension: undefined };
}

function said(action: Decision['action'], number: number, args: () => Json) {
  switch (action) {
    case 'edit':
      // What no schema takes is refused like a model's.
      return { action, args: number === 2 ? 5 : args() };
    case 'answer':
      return { action, payload: [false, 0, ''][number] ?? null };
    case 'deny':
      return { action, reason: `reason ${number}` };
    default:
      return { action };
  }
}
