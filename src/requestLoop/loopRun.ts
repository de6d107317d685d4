/**
 * A run for a caller of the contract, from the opening of its conversation to its close. Rule: the first thing that goes wrong
 * (a callback, an abort, the time) ends the run by a cancel and is what the caller is given; whatever happens, what the log
 * then says is told, the conversation is closed and its log let go.
 */
import type { LogEntry, Message } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunError, type RunResult } from '../conversation/run.ts';
import type { Ports } from '../runtime/ports.ts';
import type { ServingAgent } from './agentCache.ts';
import { CallExecutor } from './loopTools.ts';
import type { RequestCallbacks } from './observation.ts';
import { GlobalRequestTimeoutError, isUserAbort, UserAbortError } from './requestErrors.ts';

/** Why a caller is given no run. */
interface Failure {
  error: unknown;
}

export interface RunEnd {
  failure: Failure | undefined;
  entries: readonly LogEntry[];
  messages: readonly Message[];
}

/** What hears of a run as it goes. What `take` throws is a failure. */
export interface Follower {
  take(entry: LogEntry): void;
  /** Where somebody listens to what is streamed. */
  hear?: ((delta: string) => unknown) | undefined;
  /** Nobody is to be told anything any more. */
  quiet(): void;
}

export interface LoopRunOptions {
  serving: ServingAgent;
  setTimer: Ports['setTimer'];
  callbacks: RequestCallbacks;
  follower: Follower;
  /** The user or the time has ended the run. */
  aborted?(): void;
}

export interface Asked {
  id: string;
  message: string;
  history: readonly Message[];
  /** 0 for no limit. */
  timeoutSeconds: number;
}

const MS = 1000;

export class LoopRun {
  readonly #options: LoopRunOptions;
  readonly #calls: CallExecutor;
  #conversation: Conversation | undefined;
  #failure: Failure | undefined;
  readonly #failed: Promise<void>;
  #tellFailed = (): void => {};

  constructor(options: LoopRunOptions) {
    this.#options = options;
    this.#calls = new CallExecutor(options.callbacks.toolCallback, (error) => this.#fail(error));
    this.#failed = new Promise((resolve) => {
      this.#tellFailed = resolve;
    });
  }

  async run(asked: Asked): Promise<RunEnd> {
    const { signal } = this.#options.callbacks;
    const { timeoutSeconds } = asked;
    const late = (): void => this.#fail(new GlobalRequestTimeoutError(timeoutSeconds));
    const stop = timeoutSeconds > 0 ? this.#options.setTimer(timeoutSeconds * MS, late) : () => undefined;
    const aborted = (): void => this.#fail(new UserAbortError(undefined, { cause: signal?.reason }));
    signal?.addEventListener('abort', aborted, { once: true });
    try {
      return await this.#held(asked);
    } finally {
      stop();
      signal?.removeEventListener('abort', aborted);
    }
  }

  async #held({ id, message, history }: Asked): Promise<RunEnd> {
    const { agent, store, requests } = this.#options.serving;
    requests.set(id, this.#calls);
    try {
      const conversation = await agent.open(id, history.length > 0 ? { history } : {});
      this.#conversation = conversation;
      try {
        const result = await this.#sent(conversation, message);
        const failure = this.#failure ?? this.#failureOf(result);
        return { failure, entries: conversation.log(), messages: conversation.messages() };
      } finally {
        await conversation.close();
        await store.delete(id);
      }
    } finally {
      requests.delete(id);
    }
  }

  /** Resolves when the run is over and everything it said was heard. */
  async #sent(conversation: Conversation, message: string): Promise<RunResult> {
    const { follower } = this.#options;
    const entries = conversation.log$(conversation.log().length).subscribe((entry) => this.#take(entry));
    const deltas = follower.hear
      ? conversation.live$.subscribe((live) => {
          // What a sub-agent says is not this request's answer.
          if (live.type === 'text-delta' && !live.path) this.#hear(live.text);
        })
      : undefined;
    try {
      // What was aborted while the conversation was opened has its message and its stop on record all the same.
      const run = conversation.send(message, this.#failure ? { signal: AbortSignal.abort() } : {});
      const result = await run.result;
      await Promise.race([this.#calls.heard, this.#failed]);
      if (result.termination === 'Suspended') await conversation.cancel();
      return result;
    } finally {
      deltas?.unsubscribe();
      entries.unsubscribe();
    }
  }

  #take(entry: LogEntry): void {
    try {
      this.#options.follower.take(entry);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A delta is told when those before it were heard. */
  #hear(delta: string): void {
    const before = this.#calls.heard;
    this.#calls.heard = before
      .then(() => this.#options.follower.hear?.(delta))
      .then(
        () => undefined,
        (error) => this.#fail(error),
      );
  }

  /** The first one counts. */
  #fail(error: unknown): void {
    if (this.#failure) return;
    this.#failure = { error };
    if (isUserAbort(error) || error instanceof GlobalRequestTimeoutError) this.#options.aborted?.();
    this.#options.follower.quiet();
    this.#tellFailed();
    void this.#conversation?.cancel();
  }

  /** Why this end is none that the caller is given a run for. */
  #failureOf(result: RunResult): Failure | undefined {
    const { termination, cause, calls } = result;
    if (termination !== 'Error' && termination !== 'Cancelled') return undefined;
    const failed = calls.find(({ callId, outcome }) => outcome === 'failed' && this.#calls.thrown.has(callId));
    return { error: cause === 'tool' && failed ? this.#calls.thrown.get(failed.callId) : new RunError(result) };
  }
}
