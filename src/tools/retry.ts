/**
 * Whether a failed tool is executed again (policy `toolRetry`). Rule: what was aborted and what is configured wrongly
 * never is; what the tool returned is its own word, and a time-out may have had an effect: both need the host's yes.
 */
import { RunchartError } from '../errors.ts';

export interface ToolRetrying {
  /** The host's word on a failure; what it throws is a no. */
  retryable?(error: unknown): boolean;
  /** 0 to 1. */
  random(): number;
}

const isNamed = (error: unknown, name: string): boolean =>
  typeof error === 'object' && error !== null && (error as { name?: unknown }).name === name;

function isFinal(error: unknown): boolean {
  if (RunchartError.isRunchartError(error)) return error.code === 'configuration';
  return isNamed(error, 'AbortError');
}

function mayRepeat(error: unknown, { retryable }: ToolRetrying): boolean {
  if (isFinal(error)) return false;
  if (!retryable) return !RunchartError.isRunchartError(error);
  const answer: unknown = retryable(error);
  // A promise is no answer; where it rejects, nobody else hears of it.
  if (answer instanceof Promise) answer.catch(() => undefined);
  return answer === true;
}

/** What the value of a failure says of its repetition. Reading what a tool has thrown may throw: then it is a no. */
export function retryOf(error: unknown, retrying: ToolRetrying | undefined): { retry?: { random: number } } {
  if (!retrying) return {};
  try {
    return mayRepeat(error, retrying) ? { retry: { random: retrying.random() } } : {};
  } catch {
    return {};
  }
}
