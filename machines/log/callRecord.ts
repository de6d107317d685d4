/**
 * The state of tool calls according to a log, and the requests that they belong to. Invariant: the last durable record of a call decides
 * its state. The choices of a message are copied field by field, and an absent field stays absent.
 */
import type { Rerun, RoundCall } from '../calls.ts';
import { canonical, fingerprintOf } from '../fingerprint.ts';
import type {
  Decision,
  DecisionReceipt,
  Json,
  LogEntry,
  NewEntry,
  PendingCall,
  RequestChoices,
  RequestInfo,
  ToolOutcome,
} from '../vocabulary.ts';

/** The message that a cycle began with, without its content. */
export interface CycleRequest extends RequestChoices {
  messageId: string;
}

/** Before the first message. */
export const noRequest: CycleRequest = { messageId: '' };

const FIELDS = [
  'by',
  'context',
  'model',
  'settings',
  'tools',
  'output',
  'outputSchema',
] as const satisfies (keyof RequestChoices)[];
type Fields = { readonly [Field in keyof RequestChoices]?: RequestChoices[Field] | undefined };

/** The choices of a message, without its other fields and without absent ones. */
export const choicesOf = (message: Fields): RequestChoices =>
  Object.fromEntries(FIELDS.flatMap((field) => (message[field] === undefined ? [] : [[field, message[field]]])));

/** The part of a request that tools, plugins and approvals may know. */
export const originOf = ({ messageId, by, context }: CycleRequest): RequestInfo => ({
  messageId,
  ...choicesOf({ by, context }),
});

/** A waiting call with its request, if the request has more than its id. */
export function withOrigin({ origin: _, ...call }: PendingCall, origin: RequestInfo): PendingCall {
  return origin.by === undefined && origin.context === undefined ? call : { ...call, origin };
}

/** The state of a call, by its last durable record. */
export interface CallRecord {
  callId: string;
  name: string;
  args: Json;
  argsText?: string;
  /** `args` differ from those that the model wrote. */
  changed?: true;
  /** The suspension that was decided before its arguments were known. */
  unseen?: number;
  /** The arguments that the model wrote, or their text if they are no JSON. Their fingerprint is made where it is needed. */
  written: Json;
  /** The run whose reply contains the call. */
  runId: string | null;
  /** The message that its cycle began with. */
  request: CycleRequest;
  status: 'called' | 'started' | 'suspended' | 'ended';
  /** The call was executed, even if it was suspended since. */
  ran?: true;
  /** The call runs again or waits for a cycle that has ended. */
  late?: true;
  outcome?: ToolOutcome;
  code?: string;
  /** Number of the last suspension, 0 where there was none. */
  suspension: number;
  reason: string;
  payload?: Json;
  /** The idempotency key of its last start, until it is suspended. It is used wherever that start is repeated. */
  idempotencyKey?: string;
  /** The first durable decision of each suspension. */
  decisions: ReadonlyMap<number, Decision>;
  /** The suspensions whose decision was carried out. */
  used: ReadonlySet<number>;
  settled?: 'ran' | 'didNotRun' | 'retry';
}

/** The calls of a log. */
export interface LoggedCalls {
  calls: Map<string, CallRecord>;
  /** Ids of calls without a result. */
  open: Set<string>;
  /** Ids of calls whose outcome is unknown and not settled. */
  unsettled: Set<string>;
  /** Ids of calls with a decision for a suspension that has not happened yet. */
  early: Set<string>;
  /** Decisions that no call has used and that some call may still use. */
  held: number;
}

/** The outcome of the call was unknown, and the host wants it to run again. */
export const isRetried = ({ status, settled }: CallRecord): boolean => status === 'ended' && settled === 'retry';

/** The call has its result and does not run again. */
export const isOver = (record: CallRecord): boolean => record.status === 'ended' && record.settled !== 'retry';

/** Decisions that a call has not used. A call that is over uses none. */
const heldFor = (record: CallRecord): number =>
  record.decisions.size && !isOver(record)
    ? [...record.decisions.keys()].filter((number) => !record.used.has(number)).length
    : 0;

/** Shared by most calls. */
const UNDECIDED: CallRecord['decisions'] = new Map();
const UNUSED: CallRecord['used'] = new Set();

export function addCall(
  logged: LoggedCalls,
  runId: string | null,
  call: { callId: string; name: string; args: Json; argsText?: string },
  request: CycleRequest,
) {
  if (logged.calls.has(call.callId)) return;
  const { callId, name, args, argsText } = call;
  const record: CallRecord = {
    callId,
    name,
    args,
    written: argsText ?? args,
    runId,
    request,
    status: 'called',
    suspension: 0,
    reason: '',
    decisions: UNDECIDED,
    used: UNUSED,
  };
  logged.calls.set(callId, argsText === undefined ? record : { ...record, argsText });
  logged.open.add(callId);
}

function applyResult(logged: LoggedCalls, record: CallRecord, entry: Extract<LogEntry, { type: 'tool-result' }>) {
  record.status = 'ended';
  record.outcome = entry.outcome;
  // The call ran again, so the settlement of the host is kept.
  if (record.settled === 'retry') delete record.settled;
  if (entry.code !== undefined) record.code = entry.code;
  logged.open.delete(record.callId);
  if (entry.outcome === 'unknown') logged.unsettled.add(record.callId);
  else logged.unsettled.delete(record.callId);
}

/** Records that an early decision has expired. */
export function expireEarlyDecision(logged: LoggedCalls, detail: Json | undefined) {
  if (typeof detail !== 'object' || detail === null || Array.isArray(detail)) return;
  if (typeof detail.callId === 'string') logged.early.delete(detail.callId);
}

/** Early decisions expire with the run in which the call was interrupted. A retry of the call is asked about again. */
function dropEarlyDecisions(logged: LoggedCalls, record: CallRecord) {
  record.decisions = new Map([...record.decisions].filter(([number]) => number <= record.suspension));
  logged.early.delete(record.callId);
}

/** Undefined where nothing changes. */
function changeArgs(record: CallRecord, args: Json | undefined) {
  if (args === undefined) return;
  record.args = args;
  record.changed = true;
}

export function applyCallEntry(logged: LoggedCalls, entry: Extract<LogEntry, { callId: string }>) {
  const record = logged.calls.get(entry.callId);
  if (!record) return;
  logged.held -= heldFor(record);
  changeRecord(logged, record, entry);
  logged.held += heldFor(record);
}

function changeRecord(logged: LoggedCalls, record: CallRecord, entry: Extract<LogEntry, { callId: string }>) {
  switch (entry.type) {
    case 'tool-started':
      if (!isOver(record)) {
        record.status = 'started';
        logged.open.add(record.callId);
      }
      record.ran = true;
      record.used = new Set(record.used).add(record.suspension);
      record.idempotencyKey = entry.idempotencyKey;
      changeArgs(record, entry.args);
      return;
    case 'tool-suspended':
      // A repeated entry does not make a call wait again that has started since.
      if (isOver(record) || entry.suspension <= record.suspension) return;
      record.status = 'suspended';
      logged.open.add(record.callId);
      record.suspension = entry.suspension;
      if (!record.decisions.has(entry.suspension + 1)) logged.early.delete(record.callId);
      record.reason = entry.reason;
      delete record.idempotencyKey;
      if (entry.payload === undefined) delete record.payload;
      else record.payload = entry.payload;
      changeArgs(record, entry.args);
      if (entry.args !== undefined && record.decisions.has(entry.suspension)) record.unseen = entry.suspension;
      return;
    case 'decision':
      if (!record.decisions.has(entry.suspension))
        record.decisions = new Map(record.decisions).set(entry.suspension, entry.decision);
      if (entry.suspension > record.suspension) logged.early.add(record.callId);
      return;
    case 'decision-consumed':
      record.used = new Set(record.used).add(entry.suspension);
      return;
    case 'tool-result':
      return applyResult(logged, record, entry);
    case 'call-settled':
      // Only an unknown outcome is settled.
      if (record.outcome && record.outcome !== 'unknown') return;
      logged.unsettled.delete(entry.callId);
      if ('retry' in entry.how) {
        record.settled = 'retry';
        return dropEarlyDecisions(logged, record);
      }
      [record.settled, record.outcome] = 'ran' in entry.how ? ['ran', 'succeeded'] : ['didNotRun', 'cancelled'];
  }
}

/** The fields by which two decisions are compared. */
function comparedFields(decision: Decision): Json {
  switch (decision.action) {
    case 'approve':
      return ['approve'];
    case 'deny':
      return ['deny', decision.reason ?? null];
    case 'edit':
      return ['edit', decision.args];
    case 'answer':
      return ['answer', decision.payload];
  }
}
const isSameDecision = (a: Decision, b: Decision): boolean =>
  canonical(comparedFields(a)) === canonical(comparedFields(b));

/** Entries for calls that were decided early and never suspended. A call that was suspended is covered by its suspension. */
export const expiredEntries = (runId: string, held: readonly { callId: string; suspension: number }[]): NewEntry[] =>
  held
    .filter(({ suspension }) => suspension === 1)
    .map(({ callId }) => ({ runId, type: 'diagnostic', code: 'decision_expired', detail: { callId } }));

export interface Judgement {
  receipt: DecisionReceipt;
  /** The suspension that the decision is for. */
  suspension: number;
}

/** The effect of a decision on this call now. Decisions that are `applied` or `held` must be made durable. */
export function judgeDecision(record: CallRecord | undefined, decision: Decision): Judgement {
  // A decision without a number is for the current suspension, or for the first one.
  const suspension = decision.suspension ?? Math.max(1, record?.suspension ?? 0);
  const judgement = (receipt: DecisionReceipt): Judgement => ({ receipt, suspension });
  if (!record) return judgement('unknown');
  const first = record.decisions.get(suspension);
  if (suspension < record.suspension) return judgement('stale');
  // A call that was cancelled or never suspended ended without using the decision.
  if (first && record.status === 'ended' && !record.used.has(suspension)) return judgement('stale');
  if (first) return judgement(isSameDecision(first, decision) ? 'duplicate' : 'conflict');
  const current = record.suspension;
  switch (record.status) {
    case 'ended':
      return judgement(suspension > Math.max(1, current) ? 'unknown' : 'stale');
    case 'suspended':
      return judgement(suspension === current ? 'applied' : 'unknown');
    default:
      return judgement(suspension === current + 1 ? 'held' : suspension <= current ? 'stale' : 'unknown');
  }
}

/** A call as gates and replays see it. It always passes the gates again. */
export function replayable({ callId, name, written }: CallRecord): RoundCall {
  return { callId, name, gated: true, readOnly: false, fingerprint: fingerprintOf(name, written) };
}

/** The call as it runs once more. Decisions that were made are not asked for again. */
export function rerunOf(record: CallRecord): Rerun {
  const { suspension, idempotencyKey } = record;
  const decision = record.decisions.get(suspension);
  const rerun = { call: replayable(record), suspension, ...(idempotencyKey !== undefined && { idempotencyKey }) };
  return decision ? { ...rerun, decision } : rerun;
}
