/**
 * One request of the contract (docs/internals/contracts.md, 1.1, 2.4 and 6): a conversation that begins with the
 * history of the session. Invariant: the charts decide, and the session is read from their log. The session is
 * consistent after every end.
 */
import { hash, type Message } from '../../machines/internal.ts';
import { callback, checkOptionsOf, hasMethods, object } from '../validation.ts';
import { type AgentRun, agentRun, sessionMessages } from './agentRun.ts';
import { RequestFollower } from './followLog.ts';
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

/** Throws ConfigurationError for an invalid callback, and UserAbortError if the signal is already aborted. */
export function checkCallbacks(callbacks: RequestCallbacks): void {
  checkOptionsOf('a request', callbacks, callbacksValidator);
  if (callbacks.signal?.aborted) throw new UserAbortError(undefined, { cause: callbacks.signal.reason });
}

/** Removes the deleted calls from the registry, and returns the remaining messages. */
function removeCalls({ session }: OpenSession, { messages, removedCalls }: CleanedUp): readonly Message[] {
  for (const callId of removedCalls) session.runtime.toolRegistry.remove(callId);
  return messages;
}

const REQUEST_ID = 8;

async function runRequest(
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
    const history = removeCalls(own, prepareHistory(session.conversation.messages));
    const follower = new RequestFollower(own, callbacks);
    const aborted = (): void => agents.drop(cached);
    const run = new LoopRun({ serving: cached, setTimer: ports.setTimer, callbacks, follower, aborted });
    const timeoutSeconds = settings.globalRequestTimeoutSeconds ?? 0;
    const { failure, entries, messages: logged } = await run.run({ id, message, history, timeoutSeconds });
    const messages = sessionMessages(logged, entries);
    // The run's messages replace the old ones. Messages that others appended meanwhile come after them.
    session.conversation.messages.splice(
      0,
      baseline,
      ...(failure ? removeCalls(own, cleanHistory(messages)) : messages),
    );
    if (failure) throw failure.error;
    return agentRun(entries, follower.fold.nodes, messages);
  } finally {
    own.end();
    await agents.release(cached);
  }
}

/**
 * Runs one request to its end. Rejects with UserAbortError, GlobalRequestTimeoutError, ConfigurationError, the error
 * of a callback or a failing tool, or RunError if the model failed.
 */
export async function processRequest(
  message: string,
  model: string,
  state: Pick<RequestState, 'session'>,
  callbacks: RequestCallbacks = {},
): Promise<AgentRun> {
  const own = sessionOf(state);
  checkCallbacks(callbacks);
  return runRequest(own, { message, model, settings: checkedSettings(own.settings) }, callbacks);
}
