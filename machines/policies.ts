/**
 * The policies that charts read, in their JSON form, and their defaults. Invariant: the defaults here are the documented
 * ones. What is not JSON (models, predicates) stays with the host; here it has an id or a count.
 */

export interface Limits {
  turns: number;
  costUsd: number | false;
  tokens: number | false;
  runMs: number | false;
  toolCallsPerTurn: number;
  identicalCalls: number;
  emptyReplies: number;
  queue: number;
  decisions: number;
  suspensionsPerCall: number;
  subAgents: number;
  toolMs: number;
  resultBytes: number;
  outputRepairs: number;
}

/** The wait before another attempt: exponential up to a cap, then jitter from a number of the host. */
export interface Backoff {
  /** Milliseconds before the second attempt. */
  baseMs: number;
  /** Each further wait is multiplied by this. */
  factor: number;
  capMs: number;
  /** The largest random part, as a fraction of the wait. */
  jitter: number;
}

/** How a failed execution of a tool is repeated; `attempts` counts the first one. */
export interface ToolRetry extends Backoff {
  attempts: number;
}

export interface ChartPolicies {
  whileActive: 'reject' | 'steer' | 'followUp';
  steerAt: 'afterRound' | 'afterTool';
  queueDrain: 'one' | 'all';
  promoteFollowUpOn: readonly ('completed' | 'interrupted' | 'error')[];
  whileSuspended: 'followUp' | 'reject' | 'denyAndRun';
  toolExecution: 'parallel' | 'sequential' | 'parallelIfReadOnly';
  maxParallelTools: number;
  onPartialSuspend: 'continue' | 'wait';
  decisionsDuringRound: 'immediate' | 'atGate';
  onToolFailure: 'tellModel' | 'failRun';
  toolRetry: false | ToolRetry;
  modelRetry: Backoff & {
    attempts: number;
    respectRetryAfter: boolean;
    maxRetryAfterMs: number;
  };
  partialReply: 'discard' | 'keep';
  onRestart: 'idle' | 'replayDecided' | 'resume';
  onEmptyReply: 'notice' | 'retry' | 'accept';
  maxStopContinues: number;
  limits: Limits;
}

export const defaultLimits: Limits = {
  turns: 100,
  costUsd: false,
  tokens: false,
  runMs: false,
  toolCallsPerTurn: 128,
  identicalCalls: 8,
  emptyReplies: 3,
  queue: 100,
  decisions: 1000,
  suspensionsPerCall: 16,
  subAgents: 8,
  toolMs: 120_000,
  resultBytes: 262_144,
  outputRepairs: 2,
};

export const defaultPolicies: ChartPolicies = {
  whileActive: 'reject',
  steerAt: 'afterRound',
  queueDrain: 'one',
  promoteFollowUpOn: ['completed', 'interrupted', 'error'],
  whileSuspended: 'followUp',
  toolExecution: 'parallel',
  maxParallelTools: 8,
  onPartialSuspend: 'continue',
  decisionsDuringRound: 'immediate',
  onToolFailure: 'tellModel',
  toolRetry: false,
  modelRetry: {
    attempts: 4,
    baseMs: 1000,
    factor: 2,
    capMs: 30_000,
    jitter: 0.1,
    respectRetryAfter: true,
    maxRetryAfterMs: 60_000,
  },
  partialReply: 'discard',
  onRestart: 'idle',
  onEmptyReply: 'notice',
  maxStopContinues: 8,
  limits: defaultLimits,
};

/** Milliseconds before the attempt that follows `failed` failed ones; `random` is 0 to 1. */
export function backoffMs({ baseMs, factor, capMs, jitter }: Backoff, failed: number, random: number): number {
  return Math.round(Math.min(capMs, baseMs * factor ** (failed - 1)) * (1 + jitter * random));
}
