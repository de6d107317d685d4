/**
 * The state of a projection, its machine, and the effect of an entry on it (docs/internals/model.md, Deterministic
 * Construction). Invariant: the machine is a pure table from state and signal to one move, without entries or views;
 * the folds make the move. An entry that does not fit changes nothing and adds a note. A branch continues without
 * changing its origin.
 */

import type { Json } from '../../machines/vocabulary.ts';
import {
  addCall,
  addResult,
  branchCallTable,
  type CallTable,
  clearRunning,
  emptyCallTable,
  updateCall as followCall,
  leaveCycle,
  listUnanswered,
  placeOf,
  settleCall,
} from './callTable.ts';
import { Lookup } from './collections.ts';
import {
  addMessage,
  addRoundText,
  addStep,
  closeCycle,
  freshId,
  type GroupOf,
  groupName,
  keepOpen,
  openCycle,
  openRound,
  recordReply,
} from './cycles.ts';
import type { ItemReading, MessageReading, Reading } from './readEntry.ts';
import {
  branchQueue,
  branchRecords,
  type CycleRecord,
  dequeue,
  emptyQueue,
  emptyRecords,
  enqueue,
  type Notes,
  noNotes,
  note,
  promote,
  type Queue,
  type Records,
  supersedeCycles,
} from './records.ts';

export type Phase = 'idle' | 'active';

export type Signal =
  | 'message-direct'
  | 'message-steer'
  | 'message-followUp'
  /** A user message without a kind: the receiver chooses it. */
  | 'message-open'
  | 'work'
  | 'boundary'
  | 'suspension'
  | 'resumption';

export type Move =
  | 'open-direct'
  | 'open-followUp'
  | 'steer'
  | 'queue'
  | 'append'
  | 'close'
  /** The cycle stays open and waits: a suspension is no boundary. */
  | 'wait'
  /** The last cycle continues. */
  | 'reopen'
  | 'refuse';

export interface Transition {
  readonly move: Move;
  readonly to: Phase;
  /** The diagnostic's code, if the signal did not fit. */
  readonly odd?: 'kind-overridden' | 'orphan' | 'stop_while_idle';
}

type Table = Readonly<Record<Phase, Readonly<Record<Signal, Transition>>>>;

const IDLE: Table['idle'] = {
  'message-direct': { move: 'open-direct', to: 'active' },
  'message-open': { move: 'open-direct', to: 'active' },
  'message-followUp': { move: 'open-followUp', to: 'active' },
  'message-steer': { move: 'open-direct', to: 'active', odd: 'kind-overridden' },
  work: { move: 'refuse', to: 'idle', odd: 'orphan' },
  boundary: { move: 'refuse', to: 'idle', odd: 'stop_while_idle' },
  suspension: { move: 'refuse', to: 'idle', odd: 'orphan' },
  resumption: { move: 'reopen', to: 'active' },
};

const active = (unnamed: 'steer' | 'queue'): Table['active'] => ({
  'message-direct': { move: unnamed, to: 'active', odd: 'kind-overridden' },
  'message-open': { move: unnamed, to: 'active' },
  'message-followUp': { move: 'queue', to: 'active' },
  'message-steer': { move: 'steer', to: 'active' },
  work: { move: 'append', to: 'active' },
  boundary: { move: 'close', to: 'idle' },
  suspension: { move: 'wait', to: 'active' },
  resumption: { move: 'reopen', to: 'active' },
});

/** The key is the kind that a message without steer or followUp becomes while a cycle is open. */
const TABLES: Readonly<Record<'steer' | 'followUp', Table>> = {
  steer: { idle: IDLE, active: active('steer') },
  followUp: { idle: IDLE, active: active('queue') },
};

export const next = (phase: Phase, signal: Signal, whileActive: 'steer' | 'followUp'): Transition =>
  TABLES[whileActive][phase][signal];

const MESSAGES = {
  direct: 'message-direct',
  steer: 'message-steer',
  followUp: 'message-followUp',
} as const satisfies Record<string, Signal>;

/** Undefined if the entry causes no transition. */
export function signalOf(reading: Reading): Signal | undefined {
  switch (reading.type) {
    case 'user-message':
      return reading.kind === undefined ? 'message-open' : MESSAGES[reading.kind];
    case 'agent-output':
    case 'model-reply':
      return 'work';
    case 'run-stop':
      return 'boundary';
    case 'run-suspended':
      return 'suspension';
    case 'run-resumed':
      return 'resumption';
    default:
      return undefined;
  }
}

export function apply(projection: Projection, reading: Reading, origin: Origin): void {
  const signal = signalOf(reading);
  if (signal === undefined) {
    applyAside(projection, reading, origin.seq);
    return;
  }
  const transition = next(projection.phase, signal, projection.policy.whileActive);
  if (transition.odd !== undefined) noteIn(projection, transition.odd, origin.seq, { type: reading.type });
  if (transition.move === 'refuse') return;
  if (reading.type === 'user-message') applyMessage(projection, reading, transition, origin);
  else applyWork(projection, reading, transition, origin);
}

/** Applies entries that need no open cycle, or that check for one themselves. */
function applyAside(projection: Projection, reading: Reading, seq: number | undefined): void {
  const { records, calls, queue } = projection;
  switch (reading.type) {
    case 'history':
      for (const earlier of reading.readings) apply(projection, earlier, { seq, runId: undefined });
      return;
    case 'odd':
      noteIn(projection, reading.code, seq, reading.detail);
      return;
    case 'noted':
      noteIn(projection, reading.diagnostic.code, seq, reading.diagnostic.detail);
      return;
    case 'reply-boundary':
      records.replying = false;
      return;
    case 'rewound':
      supersedeCycles(records, reading.toSeq);
      projection.phase = 'idle';
      // No run continues a cycle from before.
      projection.run = '';
      return;
    case 'tool-result': {
      const odd = addResult(records, calls, reading.callId, reading.result, projection.phase === 'active');
      if (odd !== undefined) noteIn(projection, odd, seq, { callId: reading.callId });
      return;
    }
    case 'call-settled': {
      const odd = settleCall(records, calls, reading.callId, reading.settlement);
      if (odd !== undefined) noteIn(projection, odd, seq, { callId: reading.callId });
      return;
    }
    case 'tool-started':
    case 'tool-suspended':
    case 'decision':
      followCall(records, calls, reading);
      return;
    case 'message-queued': {
      const { messageId, kind, content } = reading;
      const message = Object.freeze({ messageId, kind, content });
      if (enqueue(queue, records.owner, message, false)) noteIn(projection, 'message_repeated', seq, { messageId });
      return;
    }
    case 'message-returned': {
      const { messageId } = reading;
      if (!dequeue(queue, records.owner, messageId)) noteIn(projection, 'message_missing', seq, { messageId });
      return;
    }
  }
}

function applyMessage(projection: Projection, reading: MessageReading, { move, to }: Transition, origin: Origin): void {
  const { records, queue } = projection;
  const { messageId, content } = reading;
  projection.phase = to;
  if (move === 'queue') {
    enqueue(queue, records.owner, Object.freeze({ messageId, kind: 'followUp', content }), true);
    return;
  }
  dequeue(queue, records.owner, messageId);
  if (move === 'steer') addMessage(records, Object.freeze({ messageId, kind: 'steer', content }));
  else openRoot(projection, move === 'open-direct' ? 'direct' : 'followUp', reading, origin.seq);
  recordRun(projection, origin);
}

function openRoot(
  projection: Projection,
  kind: 'direct' | 'followUp',
  { messageId, content }: Pick<MessageReading, 'messageId' | 'content'>,
  seq: number | undefined,
): void {
  const id = freshId(projection.roots, messageId, projection.records.cycles.size);
  if (id !== messageId) noteIn(projection, 'message_repeated', seq, { messageId });
  projection.run = undefined;
  leaveCycle(projection.records, projection.calls);
  openCycle(projection.records, id, Object.freeze({ messageId, kind, content }), seq);
}

function applyWork(
  projection: Projection,
  reading: Exclude<Reading, MessageReading>,
  { to }: Transition,
  origin: Origin,
): void {
  const { records } = projection;
  switch (reading.type) {
    case 'agent-output':
      for (const item of reading.items) addItem(projection, item, origin.seq);
      break;
    case 'model-reply':
      recordReply(records, reading.usage);
      break;
    case 'run-suspended':
      keepOpen(
        records,
        reading.waiting.map((callId) => waitingCall(projection, callId)),
      );
      break;
    case 'run-resumed':
      reopen(projection, reading.of, to, origin);
      return;
    case 'run-stop':
      recordRun(projection, origin);
      if (reading.unknownReason !== undefined) {
        const detail = { type: reading.type, field: 'reason', value: reading.unknownReason };
        noteIn(projection, 'malformed', origin.seq, detail);
      }
      close(projection, reading.stop, to, origin.seq);
      return;
  }
  recordRun(projection, origin);
}

const waitingCall = ({ records, calls }: Projection, callId: string) => ({
  callId,
  call: placeOf(records, calls, callId) ?? -1,
});

function addItem(projection: Projection, item: ItemReading, seq: number | undefined): void {
  const { records, calls, policy } = projection;
  openRound(records);
  if (item.kind !== 'tool-call') {
    addRoundText(records, item);
    addStep(records, item);
    return;
  }
  const odd = addCall(records, calls, item.call, groupName(item.call.name, item.group, policy.groupOf));
  if (odd !== undefined) noteIn(projection, odd, seq, { callId: item.call.callId });
}

/** A queued followUp becomes the next root at once, for every stop reason. */
function close(projection: Projection, stop: CycleRecord['stop'], to: Phase, seq: number | undefined): void {
  const { records, calls, queue, policy } = projection;
  for (const callId of listUnanswered(records, calls)) noteIn(projection, 'result_missing', seq, { callId });
  for (const callId of calls.early.keys()) noteIn(projection, 'orphan', seq, { type: 'tool-result', callId });
  calls.early.clear();
  clearRunning(records, calls);
  closeCycle(records, stop);
  projection.phase = to;
  const promoted = promote(queue, records.owner);
  if (promoted === undefined) return;
  projection.phase = next(to, 'message-followUp', policy.whileActive).to;
  openRoot(projection, 'followUp', promoted, seq);
}

/** Only the last cycle can be reopened. If its run is unknown, the list may begin after the start of that run. */
function reopen(projection: Projection, resumedRunId: string, to: Phase, origin: Origin): void {
  const { records, run } = projection;
  if (records.cycles.size === 0) {
    noteIn(projection, 'orphan', origin.seq, { type: 'run-resumed' });
  } else if (run !== undefined && run !== resumedRunId) {
    noteIn(projection, 'not_last', origin.seq, { of: resumedRunId });
  } else {
    projection.phase = to;
    keepOpen(records);
    recordRun(projection, origin);
  }
}

/** Remembers which run works on the last cycle. */
function recordRun(projection: Projection, { runId }: Origin): void {
  if (runId !== undefined) projection.run = runId;
}

export interface Policy {
  groupOf: GroupOf | undefined;
  whileActive: 'steer' | 'followUp';
}

export interface Projection {
  readonly policy: Policy;
  phase: Phase;
  records: Records;
  calls: CallTable;
  queue: Queue;
  notes: Notes;
  /** Root message ids. They keep the ids of cycles unique. */
  roots: Lookup<string>;
  /** The run that works on the last cycle, if an entry names one. */
  run: string | undefined;
}

/** The position of an entry in the log. */
interface Origin {
  seq: number | undefined;
  runId: string | undefined;
}

export const emptyProjection = (policy: Policy, owner: number): Projection => ({
  policy,
  phase: 'idle',
  records: emptyRecords(owner),
  calls: emptyCallTable(),
  queue: emptyQueue(owner),
  notes: noNotes(owner),
  roots: new Lookup(),
  run: undefined,
});

/** Returns an independent projection. The original must get a new owner too. */
export const branchProjection = (projection: Projection, owner: number): Projection => ({
  ...projection,
  records: branchRecords(projection.records, owner),
  calls: branchCallTable(projection.calls),
  queue: branchQueue(projection.queue),
  notes: { ...projection.notes },
  roots: new Lookup(projection.roots),
});

export function noteIn(projection: Projection, code: string, seq: number | undefined, detail?: Json): void {
  note(projection.notes, projection.records.owner, code, seq, detail);
}
