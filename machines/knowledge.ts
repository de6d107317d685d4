/**
 * What a log says, kept up to date entry by entry: the calls and where they stand, the queue, the state, the counts.
 * The same fold serves a living conversation and a restored one, so that a restart cannot know anything else. Rule:
 * constant cost an entry.
 */
import type { Decision, Json, LogEntry, QueuedMessage, StopReason, ToolOutcome } from './vocabulary.ts';

/** Where a call stands; the last durable record decides. */
export interface CallRecord {
  callId: string;
  name: string;
  args: Json;
  argsText?: string;
  /** The run whose reply made it. */
  runId: string | null;
  status: 'called' | 'started' | 'suspended' | 'ended';
  outcome?: ToolOutcome;
  code?: string;
  /** Number of the last suspension, 0 where there was none. */
  suspension: number;
  reason: string;
  payload?: Json;
  /** The first durable decision of each suspension. */
  decisions: Map<number, Decision>;
  /** The suspensions whose decision was acted on. */
  used: Set<number>;
  settled?: 'ran' | 'didNotRun' | 'retry';
}

export interface Knowledge {
  cwd: string;
  createdAt: number;
  updatedAt: number;
  /** Seq of the next entry. */
  next: number;
  calls: Map<string, CallRecord>;
  /** Ids of calls without a result. */
  open: Set<string>;
  /** Ids of calls whose outcome is unknown and not settled. */
  unsettled: Set<string>;
  queue: QueuedMessage[];
  state: Map<string, Json>;
  /** The last run; empty where there was none. */
  runId: string;
  /** The cycle the last run belongs to. */
  cycle: 'none' | 'running' | 'suspended' | 'stopped';
  stop?: { reason: StopReason; cause?: string };
  /** Replies in this cycle, and in all. */
  cycleTurns: number;
  turns: number;
  tokens: number;
  costUsd: number | null;
}

export const nothingKnown = (): Knowledge => ({
  cwd: '',
  createdAt: 0,
  updatedAt: 0,
  next: 0,
  calls: new Map(),
  open: new Set(),
  unsettled: new Set(),
  queue: [],
  state: new Map(),
  runId: '',
  cycle: 'none',
  cycleTurns: 0,
  turns: 0,
  tokens: 0,
  costUsd: 0,
});

function learnCall(
  known: Knowledge,
  runId: string | null,
  call: { callId: string; name: string; args: Json; argsText?: string },
) {
  if (known.calls.has(call.callId)) return;
  const { callId, name, args, argsText } = call;
  const record: CallRecord = {
    callId,
    name,
    args,
    runId,
    status: 'called',
    suspension: 0,
    reason: '',
    decisions: new Map(),
    used: new Set(),
  };
  known.calls.set(callId, argsText === undefined ? record : { ...record, argsText });
  known.open.add(callId);
}

function learnResult(known: Knowledge, record: CallRecord, entry: Extract<LogEntry, { type: 'tool-result' }>) {
  record.status = 'ended';
  record.outcome = entry.outcome;
  // It ran again: the word of the host is kept.
  if (record.settled === 'retry') delete record.settled;
  if (entry.code !== undefined) record.code = entry.code;
  known.open.delete(entry.callId);
  if (entry.outcome === 'unknown') known.unsettled.add(entry.callId);
  else known.unsettled.delete(entry.callId);
}

function learnOfCall(known: Knowledge, entry: Extract<LogEntry, { callId: string }>) {
  const record = known.calls.get(entry.callId);
  if (!record) return;
  switch (entry.type) {
    case 'tool-started':
      if (record.status !== 'ended' || record.settled === 'retry') {
        record.status = 'started';
        known.open.add(record.callId);
      }
      record.used.add(record.suspension);
      if (entry.args !== undefined) record.args = entry.args;
      return;
    case 'tool-suspended':
      record.status = 'suspended';
      record.suspension = entry.suspension;
      record.reason = entry.reason;
      if (entry.payload === undefined) delete record.payload;
      else record.payload = entry.payload;
      return;
    case 'decision':
      if (!record.decisions.has(entry.suspension)) record.decisions.set(entry.suspension, entry.decision);
      return;
    case 'decision-consumed':
      record.used.add(entry.suspension);
      return;
    case 'tool-result':
      return learnResult(known, record, entry);
    case 'call-settled':
      record.settled = 'ran' in entry.how ? 'ran' : 'retry' in entry.how ? 'retry' : 'didNotRun';
      known.unsettled.delete(entry.callId);
      if (record.settled === 'ran') record.outcome = 'succeeded';
      if (record.settled === 'didNotRun') record.outcome = 'cancelled';
      return;
  }
}

function unqueue(known: Knowledge, messageId: string) {
  if (known.queue.some((message) => message.messageId === messageId)) {
    known.queue = known.queue.filter((message) => message.messageId !== messageId);
  }
}

/** Takes one more entry into account. */
export function learn(known: Knowledge, entry: LogEntry): void {
  known.next = entry.seq + 1;
  known.updatedAt = entry.at;
  switch (entry.type) {
    case 'conversation':
      known.cwd = entry.cwd;
      known.createdAt = entry.createdAt;
      return;
    case 'run-started':
    case 'run-resumed':
      known.runId = entry.runId ?? '';
      known.cycle = 'running';
      return;
    case 'run-suspended':
      known.cycle = 'suspended';
      return;
    case 'run-stop':
      known.cycle = 'stopped';
      known.stop = entry.cause === undefined ? { reason: entry.reason } : { reason: entry.reason, cause: entry.cause };
      return;
    case 'user-message':
      if (entry.kind !== 'steer') known.cycleTurns = 0;
      return unqueue(known, entry.messageId);
    case 'message-queued': {
      const { messageId, kind, content } = entry;
      known.queue = [...known.queue, { messageId, kind, content }];
      return;
    }
    case 'message-returned':
      return unqueue(known, entry.messageId);
    case 'agent-output':
      if (entry.item.type === 'tool-call') learnCall(known, entry.runId, entry.item);
      return;
    case 'model-reply':
      known.cycleTurns += 1;
      known.turns += 1;
      known.tokens += entry.usage.inputTokens + entry.usage.outputTokens;
      known.costUsd = known.costUsd === null || entry.costUsd === null ? null : known.costUsd + entry.costUsd;
      return;
    case 'state-changed':
      for (const [key, value] of Object.entries(entry.writes)) known.state.set(key, value);
      return;
    default:
      if ('callId' in entry && entry.callId !== undefined)
        learnOfCall(known, entry as Extract<LogEntry, { callId: string }>);
  }
}
