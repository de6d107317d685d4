/**
 * One request of a caller of the contract (agent-loop-contract 1.1, 2.4, 6): a conversation of its own that begins with the
 * session's history. Rule: what happens is decided by the charts and read off their log; the first thing that goes wrong
 * ends the run by a cancel and is what the caller is given; the session is whole behind it.
 */
import { hash, type Message } from '../../machines/internal.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunError, type RunResult } from '../conversation/run.ts';
import { callback, checkOptionsOf, object, withMethods } from '../validation.ts';
import type { CachedAgent } from './agentCache.ts';
import { type AgentRun, agentRun, sessionMessages } from './agentRun.ts';
import { RunFollower } from './follow.ts';
import { CallExecutor } from './loopTools.ts';
import type { RequestCallbacks } from './observation.ts';
import { type CleanedUp, cleanHistory, prepareHistory } from './preparation.ts';
import { GlobalRequestTimeoutError, UserAbortError } from './requestErrors.ts';
import { type OpenSession, type RequestState, sessionOf } from './session.ts';
import { checkedSettings } from './settings.ts';

const callbackForm = object({
  toolCallback: callback,
  streamingCallback: callback,
  toolResultCallback: callback,
  toolStartCallback: callback,
  noticeCallback: callback,
  signal: { wanted: 'an AbortSignal', takes: (value) => withMethods(value, 'addEventListener'), secret: true },
});

/** Throws ConfigurationError. */
export const checkCallbacks = (callbacks: RequestCallbacks): void => {
  checkOptionsOf('a request', callbacks, callbackForm);
};

const REQUEST_ID = 8;
const MS = 1000;

/** Why a request cannot go on. */
interface Failure {
  error: unknown;
}

class Request {
  readonly #own: OpenSession;
  readonly #cached: CachedAgent;
  readonly #callbacks: RequestCallbacks;
  readonly #follower: RunFollower;
  readonly #calls: CallExecutor;
  #conversation: Conversation | undefined;
  #failure: Failure | undefined;
  readonly #hasFailed: Promise<void>;
  #tellFailed = (): void => {};

  constructor(own: OpenSession, cached: CachedAgent, callbacks: RequestCallbacks) {
    this.#own = own;
    this.#cached = cached;
    this.#callbacks = callbacks;
    this.#follower = new RunFollower(own, callbacks, (error) => this.#fail(error));
    this.#calls = new CallExecutor(callbacks.toolCallback, (error) => this.#abort(error));
    this.#hasFailed = new Promise((resolve) => {
      this.#tellFailed = resolve;
    });
  }

  async run(id: string, message: string, timeoutSeconds: number): Promise<AgentRun> {
    const { session, ports } = this.#own;
    const baseline = session.conversation.messages.length;
    const history = this.#without(prepareHistory(session.conversation.messages));
    const stopTimer =
      timeoutSeconds > 0
        ? ports.setTimer(timeoutSeconds * MS, () => this.#abort(new GlobalRequestTimeoutError(timeoutSeconds)))
        : () => undefined;
    const aborted = (): void => this.#abort(new UserAbortError(undefined, { cause: this.#callbacks.signal?.reason }));
    this.#callbacks.signal?.addEventListener('abort', aborted, { once: true });
    try {
      return await this.#held(id, message, history, baseline);
    } finally {
      stopTimer();
      this.#callbacks.signal?.removeEventListener('abort', aborted);
    }
  }

  async #held(id: string, message: string, history: readonly Message[], baseline: number): Promise<AgentRun> {
    const { agent, store, requests } = this.#cached;
    requests.set(id, this.#calls);
    const conversation = await agent.open(id, history.length > 0 ? { history } : {});
    this.#conversation = conversation;
    try {
      const result = await this.#sent(conversation, message);
      const failure = this.#failure ?? this.#failureOf(result);
      const messages = sessionMessages(conversation.messages(), conversation.log());
      this.#keep(failure ? this.#without(cleanHistory(messages)) : messages, baseline);
      if (failure) throw failure.error;
      return agentRun(conversation.log(), this.#follower.fold.nodes, messages);
    } finally {
      await conversation.close();
      requests.delete(id);
      await store.delete(id);
    }
  }

  /** Resolves when the run is over and everything it said was heard. */
  async #sent(conversation: Conversation, message: string): Promise<RunResult> {
    const entries = conversation.log$(conversation.log().length).subscribe((entry) => this.#follower.take(entry));
    const deltas = this.#callbacks.streamingCallback
      ? conversation.live$.subscribe((live) => {
          this.#calls.heard = this.#follower.hear(live, this.#calls.heard);
        })
      : undefined;
    try {
      // What was aborted while the conversation was opened has its message and its stop on record all the same.
      const run = conversation.send(message, this.#failure ? { signal: AbortSignal.abort() } : {});
      const result = await run.result;
      await Promise.race([this.#calls.heard, this.#hasFailed]);
      if (result.termination === 'Suspended') await conversation.cancel();
      return result;
    } finally {
      deltas?.unsubscribe();
      entries.unsubscribe();
    }
  }

  /** The first one counts; from then on nothing is told, and the run ends. */
  #fail(error: unknown): void {
    if (this.#failure) return;
    this.#failure = { error };
    this.#follower.quiet();
    this.#tellFailed();
    void this.#conversation?.cancel();
  }

  /** As `#fail`, and the next request gets another agent (agent-loop-contract 6). */
  #abort(error: unknown): void {
    this.#own.agents.drop(this.#cached);
    this.#fail(error);
  }

  /** Why this end is none that the caller is given a run for. */
  #failureOf(result: RunResult): Failure | undefined {
    const { termination, cause, calls } = result;
    if (termination !== 'Error' && termination !== 'Cancelled') return undefined;
    const failed = calls.find(({ callId, outcome }) => outcome === 'failed' && this.#calls.thrown.has(callId));
    return { error: cause === 'tool' && failed ? this.#calls.thrown.get(failed.callId) : new RunError(result) };
  }

  /** The messages that are left; a call that went is registered no more. */
  #without({ messages, removedCalls }: CleanedUp): readonly Message[] {
    for (const callId of removedCalls) this.#own.session.runtime.toolRegistry.remove(callId);
    return messages;
  }

  /** What the run says of the conversation counts, and what others appended meanwhile stands behind it. */
  #keep(messages: readonly Message[], baseline: number): void {
    this.#own.session.conversation.messages.splice(0, baseline, ...messages);
  }
}

/**
 * Runs one request to its end. Rejects with UserAbortError, GlobalRequestTimeoutError, what a callback or a failing tool
 * threw, RunError where the model failed, ConfigurationError.
 */
export async function processRequest(
  message: string,
  model: string,
  state: RequestState,
  callbacks: RequestCallbacks = {},
): Promise<AgentRun> {
  const own = sessionOf(state);
  checkCallbacks(callbacks);
  const settings = checkedSettings(own.settings);
  if (callbacks.signal?.aborted) throw new UserAbortError(undefined, { cause: callbacks.signal.reason });
  const cached = own.agents.acquire(model, settings);
  const id = own.ports.newId();
  own.begin(message, hash(id).padStart(REQUEST_ID, '0').slice(-REQUEST_ID));
  own.requests += 1;
  try {
    return await new Request(own, cached, callbacks).run(id, message, settings.globalRequestTimeoutSeconds ?? 0);
  } finally {
    own.requests -= 1;
    await own.agents.release(cached);
  }
}
