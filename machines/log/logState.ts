/**
 * What a log says, kept up to date entry by entry: the calls and where they stand, the queue, the state, the counts.
 * The same fold serves a living conversation and a restored one, so that a restart cannot know anything else. Rule:
 * constant cost an entry.
 */
import type { HeldDecision, KeptCall, OpenCalls, Rerun, SuspendedCall } from '../calls.ts';
import { type Counters, countReply, countResults, countUsage, freshCounters, newCycle, usageOf } from '../counters.ts';
import { resultFingerprint } from '../fingerprint.ts';
import { isVisible, warnedBy } from '../transcript/transcript.ts';
import type { AgentItem, Json, LogEntry, QueuedMessage, StopReason } from '../vocabulary.ts';
import { type CallsKnown, learnCall, learnExpired, learnOfCall, replayable, rerunOf } from './callRecord.ts';
import { eachEarlierEntry } from './earlierMessages.ts';

export interface LogState extends CallsKnown {
  cwd: string;
  createdAt: number;
  updatedAt: number;
  /** Seq of the next entry. */
  next: number;
  queue: QueuedMessage[];
  state: Map<string, Json>;
  /** The last run; empty where there was none. */
  runId: string;
  /** The cycle the last run belongs to. */
  cycle: 'none' | 'running' | 'suspended' | 'stopped';
  stop?: { reason: StopReason; cause?: string };
  /** The message that the last run was started for is on record. */
  asked: boolean;
  /** Until when a run of this cycle is known to have been at work, and how long its runs were, in milliseconds. */
  workedUntil: number;
  cycleMs: number;
  /** Replies in all. */
  turns: number;
  /** Without `results`: `countersOf` has both. */
  counters: Counters;
  /** Of calls, since results were countUsage last: they are counted by the round, since a round may be long. */
  results: { callId: string; print: string }[];
  /** Of the reply under way: something to see, and its calls. */
  reply: { empty: boolean; calls: { callId: string }[] };
  /** The context window was last known to be fuller than the warning allows. */
  warned: boolean;
}

const noReply = (): LogState['reply'] => ({ empty: true, calls: [] });

export const emptyLogState = (): LogState => ({
  cwd: '',
  createdAt: 0,
  updatedAt: 0,
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
  workedUntil: 0,
  cycleMs: 0,
  turns: 0,
  counters: freshCounters,
  results: [],
  reply: noReply(),
  warned: false,
});

/**
 * Whether a run at work wrote the entry. What is written in the place of one that a crash or a store cut off says nothing
 * of its time: results that nobody brought, and a stop without a checkpoint behind it.
 */
function isOfWork({ cycle }: LogState, entry: LogEntry): boolean {
  if (entry.type === 'checkpoint') return entry.boundary === 'RunFinished' || cycle === 'running';
  if (cycle !== 'running') return false;
  if (entry.type === 'tool-result') return entry.outcome === 'succeeded' || entry.outcome === 'failed';
  return entry.type !== 'run-stop' && entry.type !== 'user-message' && entry.type !== 'diagnostic';
}

/** Clocks may have been set back meanwhile. */
function learnWork(known: LogState, entry: LogEntry) {
  if (!isOfWork(known, entry)) return;
  known.cycleMs += Math.max(0, entry.at - known.workedUntil);
  known.workedUntil = entry.at;
}

/** A reason of a version that nobody knows here ends its cycle as an error. */
function stopOf({ reason, cause }: { reason: StopReason; cause?: string }): NonNullable<LogState['stop']> {
  const known = reason === 'completed' || reason === 'interrupted' ? reason : 'error';
  return cause === undefined ? { reason: known } : { reason: known, cause };
}

function enqueue(known: LogState, { messageId, kind, content }: QueuedMessage) {
  known.queue = [...known.queue, { messageId, kind, content }];
}

function unqueue(known: LogState, messageId: string) {
  if (known.queue.some((message) => message.messageId === messageId)) {
    known.queue = known.queue.filter((message) => message.messageId !== messageId);
  }
}

function learnItem(known: LogState, runId: string | null, item: AgentItem) {
  if (item.type === 'assistant') known.reply.empty &&= !isVisible(item.text);
  if (item.type !== 'tool-call') return;
  known.reply.empty = false;
  known.reply.calls.push(item);
  learnCall(known, runId, item);
}

/** A result that says that a call did not run, or that nobody knows, is none to compare. */
function learnCounted(known: LogState, { callId, outcome, ...result }: Extract<LogEntry, { type: 'tool-result' }>) {
  const record = known.calls.get(callId);
  if (!record || (outcome !== 'succeeded' && outcome !== 'failed')) return;
  known.results.push({ callId, print: resultFingerprint(record.print, { outcome, ...result }) });
}

/** Outside of every run a call goes on for nobody but itself; a run may take it up again. */
function learnLate({ calls, cycle }: LogState, callId: string) {
  const record = calls.get(callId);
  if (!record) return;
  if (cycle === 'stopped') record.late = true;
  else if (record.late) delete record.late;
}

function learnOfItsCall(known: LogState, entry: LogEntry) {
  if (entry.type === 'tool-result') learnCounted(known, entry);
  if (entry.type === 'tool-started' || entry.type === 'tool-suspended') learnLate(known, entry.callId);
  if ('callId' in entry && entry.callId !== undefined)
    learnOfCall(known, entry as Extract<LogEntry, { callId: string }>);
}

/** What limits are held against. */
export function countersOf(known: LogState): Counters {
  if (known.results.length > 0) {
    known.counters = countResults(known.counters, known.results);
    known.results = [];
  }
  return known.counters;
}

/** Takes one more entry into account. */
export function applyEntry(known: LogState, entry: LogEntry): void {
  known.next = entry.seq + 1;
  known.updatedAt = entry.at;
  learnWork(known, entry);
  switch (entry.type) {
    case 'conversation':
      known.cwd = entry.cwd;
      known.createdAt = entry.createdAt;
      return;
    case 'history':
      eachEarlierEntry(entry, (earlier) => applyEntry(known, earlier));
      return;
    case 'run-started':
    case 'run-resumed':
      if (entry.type === 'run-started') known.asked = false;
      known.runId = entry.runId ?? '';
      known.cycle = 'running';
      known.reply = noReply();
      known.workedUntil = entry.at;
      return;
    case 'run-suspended':
      known.cycle = 'suspended';
      return;
    case 'run-stop':
      // What ends a cycle that waits is no work.
      if (known.cycle === 'suspended') known.workedUntil = entry.at;
      known.cycle = 'stopped';
      known.stop = stopOf(entry);
      return;
    case 'user-message':
      if (entry.kind !== 'steer') {
        known.asked = true;
        known.counters = newCycle(countersOf(known));
        known.cycleMs = 0;
      }
      return unqueue(known, entry.messageId);
    case 'message-queued':
      return enqueue(known, entry);
    case 'message-returned':
      return unqueue(known, entry.messageId);
    case 'agent-output':
      return learnItem(known, entry.runId, entry.item);
    case 'model-reply':
      known.turns += 1;
      known.counters = countReply(countersOf(known), { ...entry, ...known.reply });
      known.reply = noReply();
      return;
    case 'compaction':
    case 'context-warning':
    case 'extension':
      known.warned = warnedBy(entry) ?? known.warned;
      known.counters = countUsage(known.counters, usageOf(entry));
      return;
    case 'diagnostic':
      if (entry.code === 'decision_expired') learnExpired(known, entry.detail);
      return;
    case 'state-changed':
      for (const [key, value] of Object.entries(entry.writes)) known.state.set(key, value);
      return;
    default:
      return learnOfItsCall(known, entry);
  }
}

/** Whether the last cycle can be continued without a new message: it was cut short, or some of its calls are open. */
export function goesOn({ asked, calls, cycle, open, stop }: LogState): boolean {
  if (cycle === 'suspended') return true;
  // A cycle that is under way though nothing runs has lost its end.
  const stopped = cycle === 'running' || (cycle === 'stopped' && stop?.reason !== 'completed');
  // Without its message a run has opened no cycle.
  return (asked && stopped) || [...open].some((callId) => !calls.get(callId)?.late);
}

/** Whether there is something to do without a new message: for the last cycle, or for calls of those that have ended. */
export function isUnfinished(known: LogState): boolean {
  const retried = [...known.calls.values()].some((call) => call.settled === 'retry' && call.status === 'ended');
  return goesOn(known) || retried || known.open.size > 0;
}

/** The calls that are open in a log at rest. */
export function openCalls(known: LogState): OpenCalls {
  const suspended: SuspendedCall[] = [];
  const kept: KeptCall[] = [];
  const reruns: Rerun[] = [];
  const held: HeldDecision[] = [];
  let last = '';
  for (const callId of known.open) {
    const record = known.calls.get(callId);
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
