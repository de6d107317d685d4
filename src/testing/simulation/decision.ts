/** What a person may decide, the odd included: on a call that waits, on one that does not, on one nobody made. */
import type { Decision, PendingCall } from '../../../machines/index.ts';
import type { Tape } from './tape.ts';

export function drawDecision(
  tape: Tape,
  pending: readonly PendingCall[],
  callIds: readonly string[],
  by: string,
): Decision {
  const waits = pending.length > 0 && !tape.chance(0.2) ? tape.pick(pending) : undefined;
  const callId = waits?.callId ?? tape.pick([...callIds, 'nobody']);
  const suspension = waits && tape.chance(0.5) ? { suspension: waits.suspension } : {};
  const action = tape.pick(['approve', 'approve', 'deny', 'edit', 'answer'] as const);
  return { callId, ...suspension, by, ...said(action, tape.next(3)) } as Decision;
}

const said = (action: 'approve' | 'deny' | 'edit' | 'answer', number: number) => {
  switch (action) {
    case 'edit':
      return { action, args: { text: `edited ${number}` } };
    case 'answer':
      return { action, payload: [false, 0, ''][number] ?? null };
    case 'deny':
      return { action, reason: `reason ${number}` };
    default:
      return { action };
  }
};
