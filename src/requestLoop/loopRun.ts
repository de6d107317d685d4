/**
 * A run for a caller of the contract, from opening its conversation to closing it. Invariant: the first failure (a
 * callback, an abort, the timeout) cancels the run, and the caller receives it. In every case the follower receives
 * the rest of the log, and the conversation and its log are closed.
 */
import type { LogEntry, Message } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunError, type RunResult } from '../conversation/run.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import type { ServingAgent } from './agentCache.ts';
import { CallExecutor } from './loopTools.ts';
import type { RequestCallbacks } from './observation.ts';
import { GlobalRequestTimeoutError, isUserAbort, UserAbortError } from './requestErrors.ts';

/** The failure that the caller receives. */
interface Failure {
  error: unknown;
}

export interface RunEnd {
  failure: Failure | undefined;
  entries: readonly LogEntry[];
  messages: readonly Message[];
}

/** Receives the entries of a run. An error of `take`, or of the promise that it returns, is a failure. */
export interface Follower {
  take(entry: LogEntry): unknown;
  /** Receives streamed text, if anybody listens. */
  hear?: ((delta: string) => unknown) | undefined;
  /** After this no callback is called. */
  quiet(): void;
}

export interface LoopRunOptions {
  serving: ServingAgent;
  setTimer: Ports['setTimer'];
  callbacks: RequestCallbacks;
  follower: Follower;
  /** Called when the user or the timeout has ended the run. */
  aborted?(): void;
}

export interface LoopRequest {
  id: string;
  message: string;
  history: readonly Message[];
  /** 0 means no limit. */
  timeoutSeconds: number;
}

const MS = 1000;

export class LoopRun {
  readonly #options: LoopRunOptions;
  readonly #calls: CallExecutor;
  #conversation: Conversation | undefined;
  #failure: Failure | undefined;
  readonly #failed: Promise<void>;
  #reportFailed = (): void => {};

  constructor(options: LoopRunOptions) {
    this.#options = options;
    this.#calls = new CallExecutor(options.callbacks.toolCallback, (error) => this.#fail(error));
    this.#failed = new Promise((resolve) => {
      this.#reportFailed = resolve;
    });
  }

  async run(request: LoopRequest): Promise<RunEnd> {
    const { signal } = this.#options.callbacks;
    const { timeoutSeconds } = request;
    const onTimeout = (): void => this.#fail(new GlobalRequestTimeoutError(timeoutSeconds));
    const stop = timeoutSeconds > 0 ? this.#options.setTimer(timeoutSeconds * MS, onTimeout) : () => undefined;
    const onAbort = (): void => this.#fail(new UserAbortError(undefined, { cause: signal?.reason }));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return await this.#runInConversation(request);
    } finally {
      stop();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async #runInConversation({ id, message, history }: LoopRequest): Promise<RunEnd> {
    const { agent, store, requests } = this.#options.serving;
    requests.set(id, this.#calls);
    try {
      const conversation = await agent.open(id, history.length > 0 ? { history } : {});
      this.#conversation = conversation;
      try {
        const result = await this.#sendMessage(conversation, message);
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

  /** Resolves when the run has ended and all its text was processed. */
  async #sendMessage(conversation: Conversation, message: string): Promise<RunResult> {
    const { follower } = this.#options;
    const entries = conversation.log$(conversation.log().length).subscribe((entry) => this.#take(entry));
    const deltas = follower.hear
      ? conversation.live$.subscribe((live) => {
          // Text of a sub-agent is not part of this request's answer.
          if (live.type === 'text-delta' && !live.path) this.#hear(live.text);
        })
      : undefined;
    try {
      // An abort while the conversation opened still records the message and its stop.
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
      const pending = this.#options.follower.take(entry);
      if (pending instanceof Promise) this.#await(pending);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Each delta is passed on after those before it were processed. */
  #hear(delta: string): void {
    this.#await(this.#calls.heard.then(() => this.#options.follower.hear?.(delta)));
  }

  /** The request waits for a callback. */
  #await(callback: Promise<unknown>): void {
    const before = this.#calls.heard;
    const settled = callback.catch((error) => this.#fail(error));
    this.#calls.heard = before.then(() => settled).then(() => undefined);
  }

  /** Only the first failure counts. */
  #fail(error: unknown): void {
    if (this.#failure) return;
    this.#failure = { error };
    if (isUserAbort(error) || error instanceof GlobalRequestTimeoutError) this.#options.aborted?.();
    this.#options.follower.quiet();
    this.#reportFailed();
    void this.#conversation?.cancel();
  }

  /** Returns the failure of a run that ended with an error or was cancelled by others. */
  #failureOf(result: RunResult): Failure | undefined {
    const { termination, cause, calls } = result;
    if (termination !== 'Error' && termination !== 'Cancelled') return undefined;
    const failed = calls.find(({ callId, outcome }) => outcome === 'failed' && this.#calls.thrown.has(callId));
    return { error: cause === 'tool' && failed ? this.#calls.thrown.get(failed.callId) : new RunError(result) };
  }
}
