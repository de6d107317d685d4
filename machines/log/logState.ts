/**
 * The state of a log, updated entry by entry: the calls and their states, the queue, the state, the counts. The same fold
 * serves a living conversation and a restored one, so a restart gives the same result. Invariant: an entry costs constant
 * time.
 */
import type { HeldDecision, KeptCall, OpenCalls, Rerun, SuspendedCall } from '../calls.ts';
import { type Counters, countReply, countResults, countUsage, freshCounters, newCycle, usageOf } from '../counters.ts';
import { fingerprintOf, resultFingerprint } from '../fingerprint.ts';
import { warnedBy } from '../transcript/contextEntries.ts';
import { isVisible } from '../transcript/transcript.ts';
import type { AgentItem, Json, LogEntry, QueuedMessage, StopReason } from '../vocabulary.ts';
import {
  addCall,
  applyCallEntry,
  type CycleRequest,
  choicesOf,
  expireEarlyDecision,
  isRetried,
  type LoggedCalls,
  noRequest,
  replayable,
  rerunOf,
} from './callRecord.ts';
import { eachEarlierEntry } from './earlierMessages.ts';

/** The fold takes an entry only if it has none. */
export { unusableField } from './entryKinds.ts';

export interface LogState extends LoggedCalls {
  cwd: string;
  createdAt: number;
  /** Seq of the next entry. */
  next: number;
  queue: QueuedMessage[];
  state: Map<string, Json>;
  /** The last run; empty where there was none. */
  runId: string;
  /** The cycle the last run belongs to. */
  cycle: 'none' | 'running' | 'suspended' | 'stopped';
  stop?: { reason: StopReason; cause?: string };
  /** The log contains the message that started the last run. */
  asked: boolean;
  /** The message that the last cycle began with, without its content. */
  request: CycleRequest;
  /** A reply of the last cycle contains a call. */
  called: boolean;
  /** The last moment at which a run of this cycle worked, and the duration of its runs, in milliseconds. */
  workedUntil: number;
  cycleMs: number;
  /** The number of replies. */
  turns: number;
  /** Without the entries in `uncounted`. `countersOf` includes both. */
  counters: Counters;
  /** Entries since the last call of `countersOf`. Most runs end without one, and counting results takes time for long rounds. */
  uncounted: (Counted | (Extract<LogEntry, { type: 'model-reply' }> & LogState['reply']))[];
  /** The reply under way: whether it has visible text, and its calls. */
  reply: { empty: boolean; calls: { callId: string }[] };
  /** The usage of the context window was last above the limit of the warning. */
  warned: boolean;
}

type Counted = Exclude<LogEntry, { type: 'model-reply' }>;

const noReply = (): LogState['reply'] => ({ empty: true, calls: [] });

export const emptyLogState = (): LogState => ({
  cwd: '',
  createdAt: 0,
  next: 0,
  calls: new Map(),
  open: new Set(),
  unsettled: new Set(),
  early: new Set(),
  held: 0,
  queue: [],
  state: new Map(),
  runId: '',
  cycle: 'none',
  asked: false,
  request: noRequest,
  called: false,
  workedUntil: 0,
  cycleMs: 0,
  turns: 0,
  counters: freshCounters,
  uncounted: [],
  reply: noReply(),
  warned: false,
});

/**
 * Whether a run at work wrote the entry. Entries that replace those of an interrupted run do not extend its time: results
 * that no tool returned, and a stop without a checkpoint after it.
 */
function isOfWork({ cycle }: LogState, entry: LogEntry): boolean {
  if (entry.type === 'checkpoint') return entry.boundary === 'RunFinished' || cycle === 'running';
  if (cycle !== 'running') return false;
  if (entry.type === 'tool-result') return entry.outcome === 'succeeded' || entry.outcome === 'failed';
  return entry.type !== 'run-stop' && entry.type !== 'user-message' && entry.type !== 'diagnostic';
}

/** The clock may have been set back in between. */
function addWorkTime(logState: LogState, entry: LogEntry) {
  if (!isOfWork(logState, entry)) return;
  logState.cycleMs += Math.max(0, entry.at - logState.workedUntil);
  logState.workedUntil = entry.at;
}

/** An unknown stop reason, for example from a later version, ends its cycle as an error. */
function stopOf({ reason, cause }: { reason: StopReason; cause?: string }): NonNullable<LogState['stop']> {
  const reasonOrError = reason === 'completed' || reason === 'interrupted' ? reason : 'error';
  return cause === undefined ? { reason: reasonOrError } : { reason: reasonOrError, cause };
}

function enqueue(logState: LogState, entry: QueuedMessage) {
  const { messageId, kind, content } = entry;
  logState.queue = [...logState.queue, { messageId, kind, content, ...choicesOf(entry) }];
}

function unqueue(logState: LogState, messageId: string) {
  logState.queue = logState.queue.filter((message) => message.messageId !== messageId);
}

function addItem(logState: LogState, runId: string | null, item: AgentItem) {
  if (item.type === 'assistant') logState.reply.empty &&= !isVisible(item.text);
  if (item.type !== 'tool-call') return;
  logState.reply.empty = false;
  logState.reply.calls.push(item);
  logState.called = true;
  addCall(logState, runId, item, logState.request);
}

/** Only results of calls that ran are compared. */
function addCountedResult({ uncounted }: LogState, entry: Extract<LogEntry, { type: 'tool-result' }>) {
  if (entry.outcome === 'succeeded' || entry.outcome === 'failed') uncounted.push(entry);
}

/** Outside of a run an entry of a call does not change the cycle. A run may take the call up again. */
function changeLate({ calls, cycle }: LogState, callId: string) {
  const record = calls.get(callId);
  if (!record) return;
  if (cycle === 'stopped') record.late = true;
  else if (record.late) delete record.late;
}

function applyToCall(logState: LogState, entry: LogEntry) {
  if (entry.type === 'tool-result') addCountedResult(logState, entry);
  if (entry.type === 'tool-started' || entry.type === 'tool-suspended') changeLate(logState, entry.callId);
  if ('callId' in entry && entry.callId !== undefined)
    applyCallEntry(logState, entry as Extract<LogEntry, { callId: string }>);
}

/** The counts that limits are compared with. */
export function countersOf(logState: LogState): Counters {
  const results: { callId: string; fingerprint: string }[] = [];
  let { counters } = logState;
  for (const entry of logState.uncounted.splice(0)) {
    if (entry.type === 'tool-result') {
      const { callId } = entry;
      const call = logState.calls.get(callId);
      if (call) results.push({ callId, fingerprint: resultFingerprint(fingerprintOf(call.name, call.written), entry) });
    } else if (entry.type === 'model-reply') {
      counters = countReply(countResults(counters, results.splice(0)), entry);
    } else counters = countUsage(counters, usageOf(entry));
  }
  logState.counters = countResults(counters, results);
  return logState.counters;
}

/** The counts of tokens and cost. A new cycle drops the others, so they are not brought up to date. */
function usageCounted({ counters, uncounted }: LogState): Counters {
  return uncounted.splice(0).reduce((sum, entry) => countUsage(sum, usageOf(entry)), counters);
}

function beginCycle(logState: LogState, entry: Extract<LogEntry, { type: 'user-message' }>) {
  logState.asked = true;
  logState.request = { messageId: entry.messageId, ...choicesOf(entry) };
  logState.called = false;
  logState.counters = newCycle(usageCounted(logState));
  logState.cycleMs = 0;
}

function beginRun(logState: LogState, { type, runId, at }: LogEntry) {
  if (type === 'run-started') logState.asked = false;
  logState.runId = runId ?? '';
  logState.cycle = 'running';
  logState.reply = noReply();
  logState.workedUntil = at;
}

/** No run continues a cycle from before. */
function rewind(logState: LogState) {
  logState.cycle = 'none';
  logState.asked = false;
  logState.warned = false;
}

/** Text of the model counts for the current reply only, and there is none. */
const nothing = (): void => {};

/** Adds one entry. */
export function applyEntry(logState: LogState, entry: LogEntry): void {
  logState.next = entry.seq + 1;
  addWorkTime(logState, entry);
  switch (entry.type) {
    case 'conversation':
      logState.cwd = entry.cwd;
      logState.createdAt = entry.createdAt;
      return;
    case 'history':
      eachEarlierEntry(entry, (earlier) => applyEntry(logState, earlier), nothing);
      return;
    case 'run-started':
    case 'run-resumed':
      return beginRun(logState, entry);
    case 'run-suspended':
      logState.cycle = 'suspended';
      return;
    case 'run-stop':
      // The entries that end a waiting cycle are not work.
      if (logState.cycle === 'suspended') logState.workedUntil = entry.at;
      logState.cycle = 'stopped';
      logState.stop = stopOf(entry);
      return;
    case 'user-message':
      if (entry.kind !== 'steer') beginCycle(logState, entry);
      return unqueue(logState, entry.messageId);
    case 'message-queued':
      return enqueue(logState, entry);
    case 'message-returned':
      return unqueue(logState, entry.messageId);
    case 'agent-output':
      return addItem(logState, entry.runId, entry.item);
    case 'model-reply':
      logState.turns += 1;
      logState.uncounted.push({ ...entry, ...logState.reply });
      logState.reply = noReply();
      return;
    case 'compaction':
    case 'context-warning':
    case 'extension':
      logState.warned = warnedBy(entry) ?? logState.warned;
      logState.uncounted.push(entry);
      return;
    case 'diagnostic':
      if (entry.code === 'decision_expired') expireEarlyDecision(logState, entry.detail);
      return;
    case 'rewound':
      return rewind(logState);
    case 'state-changed':
      for (const [key, value] of Object.entries(entry.writes)) logState.state.set(key, value);
      return;
    default:
      return applyToCall(logState, entry);
  }
}

/** Whether the last cycle can continue without a new message: it was interrupted, or some of its calls are open. */
export function goesOn({ asked, calls, cycle, open, stop }: LogState): boolean {
  if (cycle === 'suspended') return true;
  // A cycle that is under way without a run has lost its end.
  const stopped = cycle === 'running' || (cycle === 'stopped' && stop?.reason !== 'completed');
  // A run without its message has not opened a cycle.
  return (asked && stopped) || [...open].some((callId) => !calls.get(callId)?.late);
}

/** Whether a resume has something to do: in the last cycle, or for calls of cycles that have ended. */
export function isUnfinished(logState: LogState): boolean {
  return goesOn(logState) || [...logState.calls.values()].some(isRetried) || logState.open.size > 0;
}

/** The open calls of a log at rest. */
export function openCalls(logState: LogState): OpenCalls {
  const suspended: SuspendedCall[] = [];
  const kept: KeptCall[] = [];
  const reruns: Rerun[] = [];
  const held: HeldDecision[] = [];
  let last = '';
  for (const callId of logState.open) {
    const record = logState.calls.get(callId);
    if (!record) continue;
    const { suspension, status } = record;
    const call = replayable(record);
    if (status === 'suspended') suspended.push({ call, suspension });
    else if (status === 'started') reruns.push(rerunOf(record));
    else kept.push({ call, behind: last });
    last = callId;
    const awaited = status === 'suspended' ? suspension : suspension + 1;
    const decision = record.decisions.get(awaited);
    if (decision) held.push({ callId, suspension: awaited, decision });
  }
  return { suspended, kept, reruns, decisions: held };
}
