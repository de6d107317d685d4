/**
 * The policies that charts read, one row each: default, check and unit. Types, defaults, checks and the tables of
 * docs/policies.md follow from the rows. Invariant: the comment of a row is its sentence in the document.
 */

export type Check =
  /** One of the choices, or a list of them. */
  | { readonly kind: 'choice' | 'some'; readonly choices: readonly string[] }
  | { readonly kind: 'whole' | 'number'; readonly least: number }
  | { readonly kind: 'flag' };

export interface Row<T> {
  readonly default: T;
  readonly check: Check;
  readonly unit?: string;
  /** False is a value too. */
  readonly isOff?: true;
}
/** Policies below one name. They are merged one by one over their defaults. */
export interface Group<R> {
  readonly rows: R;
  /** The group is false unless one of its policies is given. */
  readonly isOff?: true;
}

/** The values of rows. */
export type ValuesOf<R> = { -readonly [Name in keyof R]: ValueOf<R[Name]> };
/** The type of a policy's value. */
type ValueOf<Cell> = Cell extends { default: infer T }
  ? T
  : Cell extends { rows: infer R; isOff: true }
    ? false | ValuesOf<R>
    : Cell extends { rows: infer R }
      ? ValuesOf<R>
      : never;

interface Numeric {
  readonly least?: number;
  readonly unit?: string;
}
const numeric = <T>(kind: 'whole' | 'number', value: T, { least = 0, unit }: Numeric): Row<T> => ({
  default: value,
  check: { kind, least },
  ...(unit !== undefined && { unit }),
});
export const whole = (value: number, options: Numeric = {}): Row<number> => numeric('whole', value, options);
export const number = (value: number, options: Numeric = {}): Row<number> => numeric('number', value, options);
/** Off by default. */
export const off = <T>(row: Row<T>): Row<T | false> => ({ ...row, default: false, isOff: true });
export const flag = (value: boolean): Row<boolean> => ({ default: value, check: { kind: 'flag' } });
/** The first choice is the default. */
export const choice = <T extends string>(...choices: [T, ...T[]]): Row<T> => ({
  default: choices[0],
  check: { kind: 'choice', choices },
});
/** A list of choices. All of them are the default. */
export const some = <T extends string>(...choices: T[]): Row<readonly T[]> => ({
  default: choices,
  check: { kind: 'some', choices },
});

/** The default of each row. A group that is off is false. */
export const defaultsOf = <R extends object>(rows: R): ValuesOf<R> =>
  Object.fromEntries(
    Object.entries(rows).map(([name, cell]: [string, Row<unknown> | Group<object>]) => [
      name,
      'default' in cell ? cell.default : cell.isOff ? false : defaultsOf(cell.rows),
    ]),
  ) as ValuesOf<R>;

export const messageRows = {
  /** The effect of a plain `send()` during a run. `reject` throws `AgentBusyError`. `steer()` and `followUp()` always work. */
  whileActive: choice('reject', 'steer', 'followUp'),
  /**
   * The delivery of a steer that arrives while tools run. `afterRound` waits for the whole round. `afterTool` waits only for
   * the calls that run already: each call of the round that was not started ends as cancelled with the code `skipped`, and the
   * result names the message. A call that waits for a person keeps waiting. A steer that arrived before the round is
   * delivered after it in both cases.
   */
  steerAt: choice('afterRound', 'afterTool'),
  /**
   * The number of queued messages that are taken at once. With `all`, every steer is delivered together, and a promotion takes every
   * queued followUp: the first begins the next cycle, and the others are delivered as steers before its first model call.
   * Each keeps its id, and all belong to one run.
   */
  queueDrain: choice('one', 'all'),
  /**
   * The stop reasons after which the next followUp starts by itself. A followUp that is not promoted stays in
   * `conversation.queue` until the end of the next run, or `resume()`, promotes it.
   */
  promoteFollowUpOn: some('completed', 'interrupted', 'error'),
  /**
   * The effect of a plain `send()` while the conversation waits for a decision. A `followUp` is queued; if every call is decided, it
   * resumes the suspended cycle first. `denyAndRun` replaces the decisions: every waiting call, decided or not, fails with
   * `denied`. The cycle is stopped (interrupted, `superseded`), and the message starts its run as a new request. If the stop
   * cannot be stored, the message is refused and the cycle keeps waiting. `send(content, { whileSuspended })` replaces the
   * policy for one message.
   */
  whileSuspended: choice('followUp', 'reject', 'denyAndRun'),
};

export const toolRetryRows = {
  /** Executions of one call, the first one included. */
  attempts: whole(3, { least: 1 }),
  /** The wait before the second execution. */
  baseMs: number(500, { unit: 'ms' }),
  /** Each further wait is multiplied by this. */
  factor: number(2, { least: 1 }),
  /** The longest wait, before the random part. */
  capMs: number(5000, { unit: 'ms' }),
  /** The largest random part, as a share of the wait. */
  jitter: number(0.1),
};

export const toolRows = {
  /**
   * The order of the calls of a round. `sequential` runs one call after the other and stops at the first suspended one; the calls
   * after it keep their turn. `parallelIfReadOnly` runs a round in parallel if every tool in it is declared `readOnly`, else
   * in sequence. Results are logged as they arrive and given to the model in the order of the calls.
   */
  toolExecution: choice('parallel', 'sequential', 'parallelIfReadOnly'),
  /** The most calls of a round that run at the same time. */
  maxParallelTools: whole(8, { least: 1, unit: 'calls' }),
  /**
   * The step after a round with suspended and finished calls. `continue` calls the model with a placeholder for each waiting
   * call. `wait` suspends the run until they are decided.
   */
  onPartialSuspend: choice('continue', 'wait'),
  /** The moment for a decision that arrives while tools or the model work: at once, or at the next gate. */
  decisionsDuringRound: choice('immediate', 'atGate'),
  /**
   * The effect of a failed tool. `failRun` ends the run as Error, cause `tool`, with the code and the message of the first failed
   * call, after the other calls have ended and their results are stored. See [failing tools](limits.md#failing-tools).
   */
  onToolFailure: choice('tellModel', 'failRun'),
  /** Repeated executions of a failed tool within its call. See [failing tools](limits.md#failing-tools). */
  toolRetry: { rows: toolRetryRows, isOff: true },
} as const;

export const modelRows = {
  /** The repetition of a failed model call. */
  modelRetry: {
    rows: {
      /** Attempts with one model, the first one included. */
      attempts: whole(4, { least: 1 }),
      /** The wait before the second attempt. */
      baseMs: number(1000, { unit: 'ms' }),
      /** Each further wait is multiplied by this. */
      factor: number(2, { least: 1 }),
      /** The longest wait, before the random part. */
      capMs: number(30_000, { unit: 'ms' }),
      /** The largest random part, as a share of the wait. */
      jitter: number(0.1),
      /** With true, the wait that a server asks for replaces the computed one. */
      respectRetryAfter: flag(true),
      /** A server that asks for a longer wait fails the call at once. */
      maxRetryAfterMs: number(60_000, { unit: 'ms' }),
    },
  },
  /**
   * The effect of a cancel on the streamed text of a reply. `keep` logs it as an interrupted reply. A failed attempt
   * never leaves text.
   */
  partialReply: choice('discard', 'keep'),
};

export const lifeRows = {
  /**
   * The work that opening a conversation starts by itself. `replayDecided` does what `resume()` does if the conversation waits and some
   * calls are decided. `resume` also continues a cycle that a crash interrupted, but none that was cancelled or ended.
   */
  onRestart: choice('idle', 'replayDecided', 'resume'),
  /**
   * The step after a reply without visible text and without calls. `notice` calls the model again with a notice, `retry` repeats
   * the same call, `accept` ends the run with an empty text.
   */
  onEmptyReply: choice('notice', 'retry', 'accept'),
  /** The number of times that a Stop hook may continue one run. */
  maxStopContinues: whole(8, { unit: 'times' }),
};

export const limitRows = {
  /** Model replies in one cycle; a resumed run keeps counting. Ends the run as Stopped, `max_turns`. */
  turns: whole(100, { least: 1, unit: 'replies' }),
  /** The cost of one conversation. Ends the run as Stopped, `max_budget`. Every model needs `prices`, or the agent is refused. */
  costUsd: off(number(0, { unit: 'USD' })),
  /** Tokens in and out in one conversation. Ends the run as Stopped, `max_total_tokens`. */
  tokens: off(whole(0, { unit: 'tokens' })),
  /** The working time of all runs of one cycle, without crashes and waits. Ends the run as Cancelled, `timeout`. */
  runMs: off(number(0, { unit: 'ms' })),
  /** Calls of one reply. Further calls fail with `too_many_calls`. */
  toolCallsPerTurn: whole(128, { unit: 'calls' }),
  /** Successive rounds that make the same call with the same result. Ends the run as Stopped, `no_progress`. */
  identicalCalls: whole(8, { least: 1, unit: 'rounds' }),
  /** Successive empty replies. Ends the run as Stopped, `empty_replies`. */
  emptyReplies: whole(3, { least: 1, unit: 'replies' }),
  /** Messages in the queue. One more is a `LimitError`. */
  queue: whole(100, { unit: 'messages' }),
  /** Decisions that a conversation holds and no call has used. One more is a `LimitError`. */
  decisions: whole(1000, { unit: 'decisions' }),
  /** The number of times that one call may be suspended. Then it fails with `suspend_limit`. */
  suspensionsPerCall: whole(16, { unit: 'times' }),
  /** Sub-agents of a conversation that work at the same time; [more wait for a place](sub-agents.md). 0 starts none. */
  subAgents: whole(8, { unit: 'sub-agents' }),
  /** The duration of one tool call, if its tool has no `timeoutMs`. The call fails with `timeout`. */
  toolMs: number(120_000, { unit: 'ms' }),
  /** Bytes of the text of one result. A longer text is cut in the middle, with a note. */
  resultBytes: whole(262_144, { unit: 'bytes' }),
  /** Bytes of one [file](images.md) of a message. A message with a larger one is refused with a `ConfigurationError`. */
  fileBytes: whole(33_554_432, { unit: 'bytes' }),
  /** The number of times that a run asks again for a [final answer](structured-answers.md) that does not fit its schema. */
  outputRepairs: whole(2, { unit: 'times' }),
};

export const chartRows = {
  ...messageRows,
  ...toolRows,
  ...modelRows,
  ...lifeRows,
  limits: { rows: limitRows },
};
