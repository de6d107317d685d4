/**
 * The commands of a host, and what each comes to at its delivery. Rule: a command is judged at its delivery, against what is
 * durable then; so of two that race the first in order counts, and the caller of the other one is told.
 */
import {
  type Completion,
  type Continued,
  type ConversationEvent,
  countersOf,
  type Decision,
  type DecisionReceipt,
  type EffectRequest,
  type Failure,
  goesOn,
  type Json,
  judge,
  type Knowledge,
  type NewEntry,
  openCalls,
  rerunOf,
  type Settlement,
  type StoredPart,
  type SubAgentChange,
} from '../../machines/internal.ts';
import { InvalidDecisionError } from '../errors.ts';

export type Command =
  /** `aborted`: the run that this starts was cancelled before its delivery. */
  | {
      type: 'message.sent';
      messageId: string;
      content: StoredPart[];
      kind: 'direct' | 'steer' | 'followUp';
      aborted?: boolean;
      /** The content, while its images are being stored; the command is put when they are. */
      kept?: Promise<StoredPart[]>;
    }
  | { type: 'resume.requested'; runId: string; continuation?: string; aborted?: boolean }
  | { type: 'promotion.requested'; aborted?: boolean }
  | { type: 'message.returned'; messageId: string; why: string }
  | { type: 'cancel.requested'; partial?: string }
  | { type: 'decision.proposed'; decision: Decision }
  | { type: 'settlement.proposed'; callId: string; how: Settlement }
  | SubAgentChange
  /** Somebody who watches threw, and is not to be ignored. */
  | { type: 'observer.failed'; error: Failure };

export type MessageCommand = Extract<Command, { type: 'message.sent' }>;
/** Commands that start a run when their turn comes. */
export type StartingCommand = Extract<Command, { type: 'message.sent' | 'resume.requested' | 'promotion.requested' }>;

export interface Admission {
  /** Events for the chart, in order. */
  events: readonly ConversationEvent[];
  /** What the host is told once the events' entries are durable. */
  answer?: DecisionReceipt | 'applied' | 'unknown' | 'returned';
  /** The command is refused; nothing changes. */
  refused?: Error;
  /** What is only put on record. */
  note?: readonly NewEntry[];
}

/** The state of the chart that commands are judged by. */
export interface ChartState {
  /** A message of this kind starts a run. */
  isStartedBy(kind: 'direct' | 'steer' | 'followUp'): boolean;
  /** The stop of what the chart carries out is in the log, and nothing follows it by itself: the status that is left. */
  settledStatus(log: Knowledge): 'idle' | 'error' | undefined;
  /** A message would start a run. */
  readonly isIdle: boolean;
  /** A run is under way that can still end otherwise. */
  readonly isOpenEnded: boolean;
  /** The run under way. */
  readonly runId: string | undefined;
}

/** A call that waits for a permission is allowed, denied or changed; there is no answer to give it. */
function takesNoAnswer(known: Knowledge, { action, callId, suspension }: Decision): boolean {
  const record = known.calls.get(callId);
  if (action !== 'answer' || record?.status !== 'suspended' || record.reason !== 'permission') return false;
  return suspension === undefined || suspension === record.suspension;
}

function admitDecision(known: Knowledge, decision: Decision): Admission {
  if (takesNoAnswer(known, decision)) {
    const expected = 'approve, deny or edit';
    return {
      events: [],
      refused: new InvalidDecisionError(
        `the call ${decision.callId} waits for approval: it takes ${expected}, not answer`,
      ),
    };
  }
  const { receipt, suspension } = judge(known.calls.get(decision.callId), decision);
  if (receipt !== 'applied' && receipt !== 'held') return { events: [], answer: receipt };
  const held = { callId: decision.callId, suspension, decision };
  const event: ConversationEvent = { type: 'decision.arrived', held };
  return { events: [event], answer: receipt };
}

function admitSettlement(known: Knowledge, callId: string, how: Settlement): Admission {
  const record = known.calls.get(callId);
  if (!record || !known.unsettled.has(callId)) return { events: [], answer: 'unknown' };
  const retry = 'retry' in how ? { retry: rerunOf(record) } : {};
  const event: ConversationEvent = { type: 'outcome.settled', callId, how, ...retry };
  return { events: [event], answer: 'applied' };
}

/** Whether a command that is not delivered yet starts a run when it is. `isQueued`: it was not put to the chart yet. */
export function startsRun(command: Command, chart: ChartState, log: Knowledge, isQueued: boolean): boolean {
  // What was put before the end is taken by the chart that has not heard of it.
  if (command.type === 'message.sent')
    return (isQueued && chart.settledStatus(log) !== undefined) || chart.isStartedBy(command.kind);
  return command.type === 'resume.requested' || command.type === 'promotion.requested';
}

/** What a run follows. `isLogged`: the log has heard of everything that the chart has done. */
function logged(known: Knowledge, isLogged: boolean): Continued {
  const of = { runId: known.runId, counters: countersOf(known), ended: !goesOn(known) };
  if (!isLogged) return of;
  const { suspended, decisions } = openCalls(known);
  return { ...of, waits: { suspended, decisions, queue: known.queue } };
}

export function admitCommand(
  command: { type: string },
  known: Knowledge,
  chart: ChartState,
  isLogged: boolean,
): Admission {
  const given = command as Command;
  switch (given.type) {
    case 'decision.proposed':
      return admitDecision(known, given.decision);
    case 'settlement.proposed':
      return admitSettlement(known, given.callId, given.how);
    case 'message.sent':
    case 'resume.requested':
    case 'promotion.requested': {
      const { aborted, ...asked } = given;
      const event = { ...asked, of: logged(known, isLogged) };
      if (!aborted) return { events: [event] };
      // A message that nobody wants any more is not queued; the run that it would have to wait for goes on.
      if (event.type === 'message.sent' ? !chart.isIdle : chart.runId !== undefined)
        return { events: [], answer: 'returned' };
      return { events: [event, { type: 'cancel.requested' }] };
    }
    case 'observer.failed': {
      const { error } = given;
      if (chart.isOpenEnded) return { events: [{ type: 'effect.failed', id: '', cause: 'internal', error }] };
      return { events: [], note: [diagnostic(known.runId, 'observer_error', { message: error.message })] };
    }
    default:
      return { events: [given] };
  }
}

/** An entry that no chart has a say in. */
export function diagnostic(runId: string, code: string, detail?: Json): NewEntry {
  const entry: NewEntry = { runId: runId === '' ? null : runId, type: 'diagnostic', code };
  return detail === undefined ? entry : { ...entry, detail };
}

/** A tool that was left behind said something after all: that is on record, and nothing else. */
export function lateResult(request: EffectRequest, completion: Completion): NewEntry[] {
  const value = completion.type === 'effect.done' ? completion.value : undefined;
  if (request.kind !== 'tool' || value?.kind !== 'succeeded') return [];
  return [diagnostic(request.runId, 'late_result', { callId: request.callId })];
}
