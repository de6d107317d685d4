/**
 * What an entry does to a projection. Rule: the machine says which move it is, the folds make it, one entry after the
 * other in order; what does not fit leaves everything as it is, with a note.
 */
import { leaveCycle, placeOf } from './callBook.ts';
import { addCall, addResult, follow as followCall, rest, settle, unanswered } from './calls.ts';
import { addRoundText, openRound, recordReply } from './inferenceRound.ts';
import type { CycleRecord } from './ledger.ts';
import { next, type Phase, signalOf, type Transition } from './machine.ts';
import { type Origin, type Projection, remark } from './projection.ts';
import { dequeue, enqueue, promote } from './queue.ts';
import type { ItemReading, MessageReading, Reading } from './reading.ts';
import { addMessage, closeCycle, freshId, keepOpen, openCycle } from './requestCycle.ts';
import { addStep } from './resolutionStep.ts';
import { groupName } from './toolGroup.ts';

export function apply(projection: Projection, reading: Reading, origin: Origin): void {
  const signal = signalOf(reading);
  if (signal === undefined) {
    applyAside(projection, reading, origin.seq);
    return;
  }
  const transition = next(projection.phase, signal, projection.policy.whileActive);
  if (transition.odd !== undefined) remark(projection, transition.odd, origin.seq, { type: reading.type });
  if (transition.move === 'refuse') return;
  if (reading.type === 'user-message') applyMessage(projection, reading, transition, origin);
  else applyWork(projection, reading, transition, origin);
}

/** What needs no open cycle, or asks for it itself. */
function applyAside(projection: Projection, reading: Reading, seq: number | undefined): void {
  const { ledger, calls, queue } = projection;
  switch (reading.type) {
    case 'odd':
      remark(projection, reading.code, seq, reading.detail);
      return;
    case 'noted':
      remark(projection, reading.diagnostic.code, seq, reading.diagnostic.detail);
      return;
    case 'reply-boundary':
      ledger.replying = false;
      return;
    case 'tool-result': {
      const odd = addResult(ledger, calls, reading.callId, reading.result, projection.phase === 'active');
      if (odd !== undefined) remark(projection, odd, seq, { callId: reading.callId });
      return;
    }
    case 'call-settled': {
      const odd = settle(ledger, calls, reading.callId, reading.settlement);
      if (odd !== undefined) remark(projection, odd, seq, { callId: reading.callId });
      return;
    }
    case 'tool-started':
    case 'tool-suspended':
    case 'decision':
      followCall(ledger, calls, reading);
      return;
    case 'message-queued': {
      const { messageId, kind, content } = reading;
      const message = Object.freeze({ messageId, kind, content });
      if (enqueue(queue, ledger.owner, message, false)) remark(projection, 'message_repeated', seq, { messageId });
      return;
    }
    case 'message-returned': {
      const { messageId } = reading;
      if (!dequeue(queue, ledger.owner, messageId)) remark(projection, 'message_missing', seq, { messageId });
      return;
    }
  }
}

function applyMessage(projection: Projection, reading: MessageReading, { move, to }: Transition, origin: Origin): void {
  const { ledger, queue } = projection;
  const { messageId, content } = reading;
  projection.phase = to;
  if (move === 'queue') {
    enqueue(queue, ledger.owner, Object.freeze({ messageId, kind: 'followUp', content }), true);
    return;
  }
  dequeue(queue, ledger.owner, messageId);
  if (move === 'steer') addMessage(ledger, Object.freeze({ messageId, kind: 'steer', content }));
  else openRoot(projection, move === 'open-direct' ? 'direct' : 'followUp', reading, origin.seq);
  follow(projection, origin);
}

function openRoot(
  projection: Projection,
  kind: 'direct' | 'followUp',
  { messageId, content }: Pick<MessageReading, 'messageId' | 'content'>,
  seq: number | undefined,
): void {
  const id = freshId(projection.roots, messageId, projection.ledger.cycles.size);
  if (id !== messageId) remark(projection, 'message_repeated', seq, { messageId });
  projection.run = undefined;
  leaveCycle(projection.ledger, projection.calls);
  openCycle(projection.ledger, id, Object.freeze({ messageId, kind, content }));
}

function applyWork(
  projection: Projection,
  reading: Exclude<Reading, MessageReading>,
  { to }: Transition,
  origin: Origin,
): void {
  const { ledger } = projection;
  switch (reading.type) {
    case 'agent-output':
      for (const item of reading.items) addItem(projection, item, origin.seq);
      break;
    case 'model-reply':
      recordReply(ledger, reading.usage);
      break;
    case 'run-suspended':
      keepOpen(
        ledger,
        reading.waiting.map((callId) => waitingCall(projection, callId)),
      );
      break;
    case 'run-resumed':
      reopen(projection, reading.of, to, origin);
      return;
    case 'run-stop':
      follow(projection, origin);
      if (reading.odd) remark(projection, 'malformed', origin.seq, { type: reading.type, field: reading.odd });
      close(projection, reading.stop, to, origin.seq);
      return;
  }
  follow(projection, origin);
}

const waitingCall = ({ ledger, calls }: Projection, callId: string) => ({
  callId,
  call: placeOf(ledger, calls, callId) ?? -1,
});

function addItem(projection: Projection, item: ItemReading, seq: number | undefined): void {
  const { ledger, calls, policy } = projection;
  openRound(ledger);
  if (item.kind !== 'tool-call') {
    addRoundText(ledger, item);
    addStep(ledger, item);
    return;
  }
  const odd = addCall(ledger, calls, item.call, groupName(item.call.name, item.group, policy.groupOf));
  if (odd !== undefined) remark(projection, odd, seq, { callId: item.call.callId });
}

/** A queued followUp becomes the next root at once, whatever the reason of the stop. */
function close(projection: Projection, stop: CycleRecord['stop'], to: Phase, seq: number | undefined): void {
  const { ledger, calls, queue, policy } = projection;
  for (const callId of unanswered(ledger, calls)) remark(projection, 'result_missing', seq, { callId });
  for (const callId of calls.early.keys()) remark(projection, 'orphan', seq, { type: 'tool-result', callId });
  calls.early.clear();
  rest(ledger, calls);
  closeCycle(ledger, stop);
  projection.phase = to;
  const promoted = promote(queue, ledger.owner);
  if (promoted === undefined) return;
  projection.phase = next(to, 'message-followUp', policy.whileActive).to;
  openRoot(projection, 'followUp', promoted, seq);
}

/** Only the last cycle goes on. Where its run is not known, the list may have begun behind it. */
function reopen(projection: Projection, of: string, to: Phase, origin: Origin): void {
  const { ledger, run } = projection;
  if (ledger.cycles.size === 0) {
    remark(projection, 'orphan', origin.seq, { type: 'run-resumed' });
  } else if (run !== undefined && run !== of) {
    remark(projection, 'not_last', origin.seq, { of });
  } else {
    projection.phase = to;
    keepOpen(ledger);
    follow(projection, origin);
  }
}

/** Remembers which run works on the last cycle. */
function follow(projection: Projection, { runId }: Origin): void {
  if (runId !== undefined) projection.run = runId;
}
