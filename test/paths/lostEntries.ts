/**
 * The entries that a failed append contains at a drawn moment of a run. Invariant: only entries that the run can lose
 * at that moment are drawn. The behaviour for any others is not specified.
 */
import type { Slot } from '../../machines/calls.ts';
import type { NewEntry } from '../../machines/index.ts';
import { type RunArgs, type RunContext, roundOf } from '../../machines/run/runContext.ts';
import type { Chance } from '../support/seededChance.ts';
import { idsOf, text } from './runFunctions.ts';

/** Returns the entries of a failed append: each type, of calls in any place. */
export function lostEntries(draw: Chance): NewEntry[] {
  const callId = () => draw.one(['a', 'a', 'b', 's', 's', 't', 'k', 'x']);
  const result = (id: string, rest: object): NewEntry =>
    ({ runId: 'r', type: 'tool-result', callId: id, content: text('lost'), ...rest }) as NewEntry;
  const runId = draw.one(['r', 'r', 'q']);
  const made = Array.from({ length: draw.below(7) }, () =>
    draw.one<() => NewEntry>([
      () => ({
        runId,
        type: 'decision',
        callId: callId(),
        suspension: 1 + draw.below(2),
        decision: { callId: 's', action: 'approve' },
      }),
      () => ({ runId, type: 'agent-output', item: { type: 'tool-call', callId: callId(), name: 'write', args: {} } }),
      () => ({ runId, type: 'agent-output', item: { type: 'assistant', text: 'words' } }),
      () => ({ runId, type: 'tool-started', callId: callId(), idempotencyKey: 'c/a/0' }),
      () => ({ runId, type: 'tool-suspended', callId: callId(), suspension: 1, reason: 'permission' }),
      () => result(callId(), { outcome: 'succeeded' }),
      () => result(callId(), { outcome: 'failed', code: 'denied' }),
      () => result(callId(), { outcome: 'failed', code: 'error' }),
      () => result(callId(), { outcome: 'cancelled', code: 'cancelled' }),
      () => ({ runId, type: 'message-queued', messageId: 'f1', kind: 'followUp', content: [] }),
      () => ({ runId, type: 'user-message', messageId: 'u', kind: 'direct', content: [] }),
      () => ({ runId, type: 'run-started' }),
      () => ({ runId, type: 'run-stop', reason: 'completed' }),
      () => ({ runId, type: 'run-suspended', waiting: ['s'] }),
      () => ({ runId, type: 'diagnostic', code: 'late_result' }),
    ])(),
  );
  const ids = made.map((entry) => (entry.type === 'tool-result' ? entry.callId : ''));
  return made.filter((_, index) => ids[index] === '' || ids.indexOf(ids[index] ?? '') === index);
}

/**
 * Returns true if a failed append can contain an entry at this moment. Replies, suspensions and starts are durable
 * before the work that follows them.
 */
function canBeLost(entry: NewEntry, context: RunContext, slots: readonly Slot[]): boolean {
  const { suspended, kept, reruns, replaying, concluded } = context;
  if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
    return !idsOf([...slots, ...suspended, ...kept, ...reruns]).includes(entry.item.callId);
  }
  const callId = 'callId' in entry ? (entry.callId ?? '') : '';
  const slot = slots.find(({ call }) => call.callId === callId);
  const atGate = replaying.includes(callId);
  const output = atGate ? concluded.find((each) => each.callId === callId) : slot?.output;
  const executes = !output && (atGate || slot?.status === 'running');
  if (entry.type === 'tool-started') return executes;
  if (entry.type === 'tool-suspended') {
    // An early decision opens a gate in the append of the suspension.
    const isEarly = executes && slot?.status === 'suspended';
    return output ? output.outcome === 'suspended' : isEarly || (!atGate && idsOf(suspended).includes(callId));
  }
  return entry.type !== 'tool-result' || !output?.result;
}

export function asStored({ context, event }: RunArgs): RunArgs {
  const ofRound = roundOf(event).slots;
  const slots = ofRound.length > 0 ? ofRound : context.slots;
  const stored = (lost: readonly NewEntry[]): NewEntry[] => lost.filter((entry) => canBeLost(entry, context, slots));
  const { end } = context;
  return {
    context: end.lost ? { ...context, end: { ...end, lost: stored(end.lost) } } : context,
    event: event.type === 'append.failed' ? { ...event, lost: stored(event.lost) } : event,
  };
}
