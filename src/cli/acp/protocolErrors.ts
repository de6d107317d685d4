/**
 * Errors of the library as errors of the protocol. Invariant: the message contains the expectation, and `data.code` is the library's
 * code. A fault that the editor can correct is an invalid parameter or request; a missing key requires authentication.
 */
import { RequestError } from '@agentclientprotocol/sdk';
import { AgentBusyError, ConfigurationError, LimitError, RunchartError, thrownMessage } from '../../errors.ts';
import type { RunResult } from '../../index.ts';

/** The code of the protocol for a failure of the agent. */
const INTERNAL = -32603;

export function requestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const message = thrownMessage(error);
  if (!RunchartError.isRunchartError(error)) return new RequestError(INTERNAL, message);
  const { code } = error;
  if (error instanceof ConfigurationError && message.startsWith('no API key')) {
    return RequestError.authRequired({ code }, message);
  }
  if (error instanceof ConfigurationError) return RequestError.invalidParams({ code }, message);
  if (error instanceof AgentBusyError || error instanceof LimitError) {
    return RequestError.invalidRequest({ code }, message);
  }
  return new RequestError(INTERNAL, message, { code });
}

/** The error of a run that ended without a reply to show. */
export function runFailure({ error, cause, termination }: RunResult): RequestError {
  const code = error?.code ?? cause ?? termination;
  const budget = 'the budget of the session is used up: raise --max-budget-usd, or begin another session';
  return new RequestError(INTERNAL, error?.message ?? (code === 'max_budget' ? budget : `the run ended: ${code}`), {
    code,
  });
}

/** Runs a handler of a request. An error that it throws becomes an error of the protocol. */
export async function answered<T>(handle: () => Promise<T>): Promise<T> {
  try {
    return await handle();
  } catch (error) {
    throw requestError(error);
  }
}
