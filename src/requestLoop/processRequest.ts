/**
 * One request of a caller of the contract (agent-loop-contract 1.1, 2.4, 6): a conversation of its own that begins with the
 * session's history. Rule: what happens is decided by the charts and read off their log, and the session is whole behind it,
 * however it ended.
 */
import { hash, type Message } from '../../machines/internal.ts';
import { callback, checkOptionsOf, hasMethods, object } from '../validation.ts';
import { type AgentRun, agentRun, sessionMessages } from './agentRun.ts';
import { RequestFollower } from './follow.ts';
import { LoopRun } from './loopRun.ts';
import type { RequestCallbacks } from './observation.ts';
import { type CleanedUp, cleanHistory, prepareHistory } from './preparation.ts';
import { UserAbortError } from './requestErrors.ts';
import { type OpenSession, type RequestState, sessionOf } from './session.ts';
import { checkedSettings, type LoopSettings } from './settings.ts';

const callbacksValidator = object({
  toolCallback: callback,
  streamingCallback: callback,
  toolResultCallback: callback,
  toolStartCallback: callback,
  noticeCallback: callback,
  signal: { expected: 'an AbortSignal', test: (value) => hasMethods(value, 'addEventListener'), secret: true },
});

/** Throws ConfigurationError for what is no callback, and UserAbortError where nothing is to begin. */
export function checkCallbacks(callbacks: RequestCallbacks): void {
  checkOptionsOf('a request', callbacks, callbacksValidator);
  if (callbacks.signal?.aborted) throw new UserAbortError(undefined, { cause: callbacks.signal.reason });
}

/** The messages that are left; a call that went is registered no more. */
function without({ session }: OpenSession, { messages, removedCalls }: CleanedUp): readonly Message[] {
  for (const callId of removedCalls) session.runtime.toolRegistry.remove(callId);
  return messages;
}

const REQUEST_ID = 8;

async function processed(
  own: OpenSession,
  { message, model, settings }: { message: string; model: string; settings: LoopSettings },
  callbacks: RequestCallbacks,
): Promise<AgentRun> {
  const { agents, ports, session } = own;
  const cached = agents.acquire(model, settings);
  const id = ports.newId();
  own.begin(message, hash(id).padStart(REQUEST_ID, '0').slice(-REQUEST_ID));
  try {
    const baseline = session.conversation.messages.length;
    const history = without(own, prepareHistory(session.conversation.messages));
    const follower = new RequestFollower(own, callbacks);
    const aborted = (): void => agents.drop(cached);
    const run = new LoopRun({ serving: cached, setTimer: ports.setTimer, callbacks, follower, aborted });
    const timeoutSeconds = settings.globalRequestTimeoutSeconds ?? 0;
    const { failure, entries, messages: said } = await run.run({ id, message, history, timeoutSeconds });
    const messages = sessionMessages(said, entries);
    // What the run says of the conversation counts, and what others appended meanwhile stands behind it.
    session.conversation.messages.splice(0, baseline, ...(failure ? without(own, cleanHistory(messages)) : messages));
    if (failure) throw failure.error;
    return agentRun(entries, follower.fold.nodes, messages);
  } finally {
    own.end();
    await agents.release(cached);
  }
}

/**
 * Runs one request to its end. Rejects with UserAbortError, GlobalRequestTimeoutError, what a callback or a failing tool
 * threw, RunError where the model failed, ConfigurationError.
 */
export async function processRequest(
  message: string,
  model: string,
  state: Pick<RequestState, 'session'>,
  callbacks: RequestCallbacks = {},
): Promise<AgentRun> {
  const own = sessionOf(state);
  checkCallbacks(callbacks);
  return processed(own, { message, model, settings: checkedSettings(own.settings) }, callbacks);
}
