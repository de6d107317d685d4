/**
 * Tool calls as data that actors exchange: a call of a reply, its outcome in the round, and the calls and decisions that outlive a run.
 * Invariant: these types hold ids, counts and outcomes. Arguments stay in the log and with the executor; a result is held only
 * until the plugins of AfterToolExecute have answered.
 */
import type { Decision, Failure, Json, NewEntry, ToolOutcome } from './vocabulary.ts';

/** A call of a reply as the round sees it. Arguments stay with the executor and in the log. */
export interface RoundCall {
  /** The id of the call. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** An approval or a plugin can change or refuse this call. */
  gated: boolean;
  /** The tool is declared `readOnly`. */
  readOnly: boolean;
  /** The reason why the call cannot run, known before any gate. */
  refused?: { code: string; text: string };
  /** Represents name and arguments when rounds are compared. */
  fingerprint: string;
}

/** The entry with the result of a call, before it is logged. */
export type ToolResultEntry = Extract<NewEntry, { type: 'tool-result' }>;

/** The output of the chart TOOL_CALL. */
export interface ToolCallOutput {
  /** The id of the call. */
  callId: string;
  /** The name of the tool. */
  name: string;
  /** The outcome of the call. */
  outcome: ToolOutcome | 'suspended';
  /** The code of a failure. */
  code?: string;
  /** The outcome of the last execution, where the tool itself failed. */
  failure?: Failure;
  /** Represents name and arguments when rounds are compared. */
  fingerprint: string;
  /** The keys of the state that the call writes. */
  writes?: { [key: string]: Json };
  /** Number of the last suspension. */
  suspension: number;
  /** The reason of a suspension. */
  reason?: string;
  /** The result while AfterToolExecute runs; absent for a suspended call. */
  result?: ToolResultEntry | undefined;
}

/** The outcome of the call, reported before AfterToolExecute has run. */
export type CallConcluded = { type: 'call.concluded'; output: ToolCallOutput };

/** The position of a call in its round. */
export interface Slot {
  /** The call. */
  call: RoundCall;
  /** `skipped`: a steer kept the call from starting, and its result explains that. */
  status: 'queued' | 'running' | 'done' | 'suspended' | 'skipped';
  /** The outcome of a running call while AfterToolExecute runs. */
  output?: ToolCallOutput;
}

/** One call to process at the gate. Without a decision the call starts for the first time, or runs again. */
export interface Replay {
  /** The call. */
  call: RoundCall;
  /** The number of its last suspension. */
  suspension: number;
  /** The key of the earlier start, if there was one. */
  idempotencyKey?: string;
  /** The decision that is applied. */
  decision?: Decision;
  /** The id of the call before this one. This call runs only if that call is settled. */
  behind?: string;
}

/** A call that waits for a decision. */
export interface SuspendedCall {
  /** The call. */
  call: RoundCall;
  /** The number of its last suspension. */
  suspension: number;
}
/** A call that runs once more. Its decisions still hold. */
export interface Rerun extends SuspendedCall {
  /** The idempotency key of its first start. The log may be a copy under another id. */
  idempotencyKey?: string;
  /** The decision that still holds. */
  decision?: Decision;
}
/** A call of a sequential round. It starts after the call named by `behind` is settled. */
export interface KeptCall {
  /** The call. */
  call: RoundCall;
  /** The id of the call that must be settled first. */
  behind: string;
}
/** A decision that came before its suspension. */
export interface HeldDecision {
  /** The id of the call. */
  callId: string;
  /** The number of the suspension that the decision answers. */
  suspension: number;
  /** The decision. */
  decision: Decision;
}

/** The calls and decisions that outlive a run. */
export interface OpenCalls {
  /** The calls that wait for a decision. */
  suspended: readonly SuspendedCall[];
  /** The calls that wait for the call before them. */
  kept: readonly KeptCall[];
  /** Calls that may run again: idempotent calls that a crash interrupted, and calls that the host wants retried. */
  reruns: readonly Rerun[];
  /** The decisions that no call has used. */
  decisions: readonly HeldDecision[];
}
/** No calls and no decisions. */
export const noOpenCalls: OpenCalls = { suspended: [], kept: [], reruns: [], decisions: [] };
