/**
 * Records about sub-agents: their entries in the parent's log, the payload of a waiting call, the call ids of the whole
 * conversation, and ended calls. Rule: each entry costs constant time. Payload readers accept any JSON.
 */
import {
  type CallRecord,
  type Decision,
  type DecisionReceipt,
  type Json,
  judgeDecision,
  type LogEntry,
  type LogState,
  type PendingCall,
  subAgentUsageOf,
} from '../../machines/internal.ts';
import { bytesOf } from '../json.ts';
import { WAITS } from '../runtime/subAgentPort.ts';

export interface SubAgentRecord {
  /** The seq of the entry that records its end. */
  ended?: number;
  /** The number of entries of its log whose usage is counted. */
  upTo: number;
}

/** A text for a call and one of its tasks. */
const taskKey = (callId: string, taskId: string): string => JSON.stringify([callId, taskId]);

export class SubAgentRecords {
  /** By call id, then by sub-agent id. */
  readonly #calls = new Map<string, Map<string, SubAgentRecord>>();
  /** Calls of sub-agents that a person was asked about, by task. */
  readonly #asked = new Map<string, Set<string>>();

  apply(entry: LogEntry): void {
    if (entry.type === 'sub-agent') {
      const record = this.#open(entry.callId, entry.child);
      if (entry.phase === 'ended') record.ended ??= entry.seq;
      return;
    }
    if (entry.type === 'tool-suspended' && entry.reason === WAITS) this.#markAsked(entry.callId, entry.payload);
    const counted = subAgentUsageOf(entry);
    const record = counted && this.recordOf(counted.callId, counted.conversationId);
    if (record) record.upTo = counted.upTo;
  }

  recordOf(callId: string, id: string): SubAgentRecord | undefined {
    return this.#calls.get(callId)?.get(id);
  }

  /** The calls of this task's sub-agent that a person was asked about. */
  askedOf(callId: string, taskId: string): string[] {
    return [...(this.#asked.get(taskKey(callId, taskId)) ?? [])];
  }

  #markAsked(callId: string, payload: Json | undefined): void {
    for (const { id } of waitingIn(payload)) {
      if (typeof id !== 'string') continue;
      const key = taskKey(callId, id);
      this.#asked.set(key, new Set([...(this.#asked.get(key) ?? []), ...waitingCalls(payload, id)]));
    }
  }

  /** The calls that spawned sub-agents, and whether some of these have not ended. */
  *calls(): Generator<{ callId: string; unended: boolean }> {
    for (const [callId, records] of this.#calls) {
      yield { callId, unended: [...records.values()].some(({ ended }) => ended === undefined) };
    }
  }

  #open(callId: string, id: string): SubAgentRecord {
    const ofCall = this.#calls.get(callId) ?? new Map<string, SubAgentRecord>();
    this.#calls.set(callId, ofCall);
    const record = ofCall.get(id) ?? { upTo: 0 };
    ofCall.set(id, record);
    return record;
  }
}

interface Waiting {
  readonly task: { id: string };
  readonly pending: readonly PendingCall[];
  /** The number of entries in its log. */
  readonly upTo: number;
}

/**
 * Lists the waiting calls, each with the question to the person. Details are left out if the list exceeds `bytesMax`.
 */
export function waitingPayload(waiting: readonly Waiting[], bytesMax: number): Json {
  const written = (details: (call: PendingCall) => Json[]): Json => ({
    waiting: waiting.map(({ task, pending, upTo }) => {
      const shown = pending.flatMap(details);
      const calls = pending.map(({ callId }) => callId);
      return { id: task.id, calls, ...(shown.length > 0 && { pending: shown }), upTo };
    }),
  });
  const whole = written(({ path: _, ...call }) => [call]);
  if (bytesOf(JSON.stringify(whole)) <= bytesMax) return whole;
  const short = written(({ callId, name, suspension }) => [{ callId, name, suspension }]);
  return bytesOf(JSON.stringify(short)) <= bytesMax ? short : written(() => []);
}

type Fields = { [key: string]: Json };
export const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** The calls of this task's sub-agent that the payload contains. */
export function waitingCalls(payload: Json | undefined, taskId: string): string[] {
  const calls = waitingOf(payload, taskId)?.calls;
  return Array.isArray(calls) ? calls.filter((callId) => typeof callId === 'string') : [];
}

/** The position of this task's sub-agent in its log; undefined if the payload does not contain it. */
export function waitingPlace(payload: Json | undefined, taskId: string): number | undefined {
  const upTo = waitingOf(payload, taskId)?.upTo;
  return typeof upTo === 'number' ? upTo : undefined;
}

function waitingOf(payload: Json | undefined, taskId: string): Fields | undefined {
  return waitingIn(payload).find(({ id }) => id === taskId);
}

function waitingIn(payload: Json | undefined): Fields[] {
  const { waiting } = fieldsOf(payload);
  return Array.isArray(waiting) ? waiting.map(fieldsOf) : [];
}

/**
 * Call ids of a root conversation and all its sub-agents. Each id names one call, because decisions at the root name
 * calls by id. An id that a person was asked about is never reused, since an answer may come late.
 */
export class CallIds {
  readonly #members = new Set<LogState>();
  readonly #asked = new Set<string>();
  /** Ids of calls that may not be in a log yet. */
  readonly #reserved = new Map<string, LogState>();
  readonly #isTaken: (id: string) => boolean;

  /** `isTaken`: a conversation of another process has the id. */
  constructor(isTaken: (id: string) => boolean = () => false) {
    this.#isTaken = isTaken;
  }

  join(member: LogState): void {
    this.#members.add(member);
  }

  /** Marks ids that a person was asked about. */
  markAsked(askedIds: Iterable<string>): void {
    for (const id of askedIds) this.#asked.add(id);
  }

  leave(member: LogState, askedIds: Iterable<string> = []): void {
    this.markAsked(askedIds);
    this.#members.delete(member);
    for (const [id, owner] of this.#reserved) if (owner === member) this.#reserved.delete(id);
  }

  /** Reserves the id for a call of this member. Returns false if it belongs to another member. */
  reserve(member: LogState, id: string): boolean {
    const owner = this.#reserved.get(id);
    if (this.#asked.has(id) || (owner && owner !== member) || this.#isTaken(id)) return false;
    for (const other of this.#members) if (other !== member && other.calls.has(id)) return false;
    this.#reserved.set(id, member);
    return true;
  }
}

/**
 * Ended calls of sub-agents that a person was asked about. A later decision on one gets a receipt, and nothing
 * continues.
 */
export class EndedCalls {
  readonly #calls = new Map<string, { record: CallRecord; path: string[] }>();

  /** Adds the calls of a sub-agent whose log is closed. Returns their ids. */
  add(outer: string, { calls }: LogState): string[] {
    return [...calls.values()].flatMap((record) => {
      const { callId, suspension, decisions } = record;
      if (suspension === 0 && decisions.size === 0) return [];
      this.#calls.set(callId, { record: { ...record, status: 'ended' }, path: [outer, callId] });
      return [callId];
    });
  }

  find(callId: string): { record: CallRecord; path: string[] } | undefined {
    return this.#calls.get(callId);
  }

  receipt(decision: Decision): DecisionReceipt {
    return judgeDecision(this.#calls.get(decision.callId)?.record, decision).receipt;
  }
}
