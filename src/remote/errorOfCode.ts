/**
 * The error of another process, from its code and message. Rule: it has the class that an embedded conversation throws, and so has the
 * error for a request that is no JSON.
 */
import {
  AgentBusyError,
  DecisionRefusedError,
  InvalidDecisionError,
  LimitError,
  RunchartError,
  SessionBusyError,
  thrownText,
} from '../errors.ts';

export function errorOfCode(code: string, message: string, cause?: unknown): RunchartError {
  if (code === 'agent_busy' || code === 'cancellation_in_progress') return new AgentBusyError(code, message);
  if (code === 'invalid_decision') return new InvalidDecisionError(message);
  if (code === 'decision_refused') return new DecisionRefusedError(message);
  if (code === 'limit') return new LimitError(message);
  if (code === 'session_busy') return new SessionBusyError(message);
  return new RunchartError(code, message, cause === undefined ? undefined : { cause });
}

/** The request as JSON. Throws an error with this code for a value that is none. */
export function requestJson(value: object, code = 'configuration'): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw errorOfCode(code, `only JSON can be sent: ${thrownText(error)}`);
  }
}
