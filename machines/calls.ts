/**
 * Tool calls between actors, as data: a call of a reply, what becomes of it in its round, and what outlives its run.
 * Rule: ids, counts and outcomes; arguments stay in the log and with the executor, and a result only while plugins hear of it.
 */
import type { Decision, Failure, Json, NewEntry, ToolOutcome } from './vocabulary.ts';

/** A call of a reply as the round sees it; arguments stay with the executor and in the log. */
export interface RoundCall {
  callId: string;
  name: string;
  /** Some gate (approval, plugin) has a say on this call. */
  gated: boolean;
  readOnly: boolean;
  /** Known before any gate: the call cannot run. */
  refused?: { code: string; text: string };
  /** Stands for name and arguments when rounds are compared. */
  fingerprint: string;
}

export type ToolResultEntry = Extract<NewEntry, { type: 'tool-result' }>;

export interface ToolCallOutput {
  callId: string;
  name: string;
  outcome: ToolOutcome | 'suspended';
  code?: string;
  /** Set where the tool itself failed: it was executed, and that is how its last execution ended. */
  failure?: Failure;
  fingerprint: string;
  writes?: { [key: string]: Json };
  /** Number of the last suspension. */
  suspension: number;
  reason?: string;
  /** While AfterToolExecute hears of it; nothing where the call waits. */
  result?: ToolResultEntry | undefined;
}

/** What the call has come to, told before AfterToolExecute has heard of it. */
export type CallConcluded = { type: 'call.concluded'; output: ToolCallOutput };

/** Where a call stands in its round. */
export interface Slot {
  call: RoundCall;
  /** `skipped`: a steer left it unstarted, and it has a result that says so. */
  status: 'queued' | 'running' | 'done' | 'suspended' | 'skipped';
  /** Of a running call: what it has come to, while AfterToolExecute still hears of it. */
  output?: ToolCallOutput;
}

/** One thing to do at the gate. Without a decision the call is started for the first time, or again. */
export interface Replay {
  call: RoundCall;
  suspension: number;
  /** Where it was started before. */
  idempotencyKey?: string;
  decision?: Decision;
  /** Do this only if the call with this id is settled: it kept its turn behind it. */
  behind?: string;
}

export interface SuspendedCall {
  call: RoundCall;
  suspension: number;
}
/** A call that runs once more: what was decided of it still holds. */
export interface Rerun extends SuspendedCall {
  /** That of its first start; the log may be a copy under another id. */
  idempotencyKey?: string;
  decision?: Decision;
}
/** A call of a sequential round that starts after the call it stands behind is settled. */
export interface KeptCall {
  call: RoundCall;
  behind: string;
}
export interface HeldDecision {
  callId: string;
  suspension: number;
  decision: Decision;
}

/** The calls and decisions that outlive a run. */
export interface OpenCalls {
  suspended: readonly SuspendedCall[];
  kept: readonly KeptCall[];
  /** Calls that may run again: idempotent ones a crash cut off, and those the host wants retried. */
  reruns: readonly Rerun[];
  decisions: readonly HeldDecision[];
}
export const noOpenCalls: OpenCalls = { suspended: [], kept: [], reruns: [], decisions: [] };
