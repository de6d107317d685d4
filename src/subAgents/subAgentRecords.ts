/**
 * What is on record of sub-agents: their entries in the parent's log, the payload of a call that waits for them, the call ids of
 * the whole conversation, and calls that are over. Rule: constant cost an entry; what reads a payload is given any payload.
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

export interface SubAgentRecord {
  /** Seq of the entry that says it ended. */
  ended?: number;
  /** How many entries of its log are counted in. */
  upTo: number;
}

export class SubAgentRecords {
  /** By call and by the sub-agents' ids. */
  readonly #calls = new Map<string, Map<string, SubAgentRecord>>();

  learn(entry: LogEntry): void {
    if (entry.type === 'sub-agent') {
      const record = this.#open(entry.callId, entry.child);
      if (entry.phase === 'ended') record.ended ??= entry.seq;
      return;
    }
    const counted = subAgentUsageOf(entry);
    const record = counted && this.of(counted.callId, counted.conversationId);
    if (record) record.upTo = counted.upTo;
  }

  of(callId: string, id: string): SubAgentRecord | undefined {
    return this.#calls.get(callId)?.get(id);
  }

  /** The calls that spawned any, and whether some of them have not ended. */
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
  /** How many entries its log has. */
  readonly upTo: number;
}

/** Names the calls that wait, with what a person is asked about each; with less of that where it has more than `most` bytes. */
export function waitingPayload(waiting: readonly Waiting[], most: number): Json {
  const written = (details: (call: PendingCall) => Json[]): Json => ({
    waiting: waiting.map(({ task, pending, upTo }) => {
      const shown = pending.flatMap(details);
      const calls = pending.map(({ callId }) => callId);
      return { id: task.id, calls, ...(shown.length > 0 && { pending: shown }), upTo };
    }),
  });
  const whole = written(({ path: _, ...call }) => [call]);
  if (bytesOf(JSON.stringify(whole)) <= most) return whole;
  const short = written(({ callId, name, suspension }) => [{ callId, name, suspension }]);
  return bytesOf(JSON.stringify(short)) <= most ? short : written(() => []);
}

type Fields = { [key: string]: Json };
export const fieldsOf = (value: Json | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};

/** How far the log of the sub-agent of this task had come; nothing where the payload does not say. */
export function waitingPlace(payload: Json | undefined, taskId: string): number | undefined {
  const { waiting } = fieldsOf(payload);
  const own = Array.isArray(waiting) ? waiting.map(fieldsOf).find(({ id }) => id === taskId) : undefined;
  return typeof own?.upTo === 'number' ? own.upTo : undefined;
}

/**
 * Call ids of a root conversation and all its sub-agents: an id means one call, since a person decides by ids at the root. An
 * answer may come long after its question, so an id that a person was asked about is never given again.
 */
export class CallIds {
  readonly #members = new Set<LogState>();
  readonly #asked = new Set<string>();
  /** Ids of calls that are made and may not be in a log yet. */
  readonly #reserved = new Map<string, LogState>();

  join(member: LogState): void {
    this.#members.add(member);
  }

  /** A person was asked about these calls. */
  keep(asked: Iterable<string>): void {
    for (const id of asked) this.#asked.add(id);
  }

  leave(member: LogState, asked: Iterable<string> = []): void {
    this.keep(asked);
    this.#members.delete(member);
    for (const [id, owner] of this.#reserved) if (owner === member) this.#reserved.delete(id);
  }

  /** Keeps the id for a call of this member; false where it means another one's. */
  reserve(member: LogState, id: string): boolean {
    const owner = this.#reserved.get(id);
    if (this.#asked.has(id) || (owner && owner !== member)) return false;
    for (const other of this.#members) if (other !== member && other.calls.has(id)) return false;
    this.#reserved.set(id, member);
    return true;
  }
}

/** Calls of sub-agents that a person was asked about and that are over: a later decision is answered, and nothing continues. */
export class EndedCalls {
  readonly #calls = new Map<string, { record: CallRecord; path: string[] }>();

  /** Keeps those of a sub-agent whose log is closed. Returns their ids. */
  keep(outer: string, { calls }: LogState): string[] {
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
