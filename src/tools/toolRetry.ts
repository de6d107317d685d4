/**
 * Whether a failing tool is executed again (policy `toolRetry`). Rule: an abort or a wrong configuration is never repeated, a
 * returned failure or a time-out only with the host's yes.
 */
import { RunchartError } from '../errors.ts';

interface Retrying {
  /** The host's word on a failure; what it throws is a no. */
  retryable?(error: unknown): boolean;
}
export type RetryPolicy = false | Retrying;
/** `random`: 0 to 1. */
export type Retry = { retry?: { random: number } };

const isNamed = (error: unknown, name: string): boolean =>
  typeof error === 'object' && error !== null && (error as { name?: unknown }).name === name;

function isFinal(error: unknown): boolean {
  if (RunchartError.isRunchartError(error)) return error.code === 'configuration';
  return isNamed(error, 'AbortError');
}

function mayRepeat(error: unknown, { retryable }: Retrying): boolean {
  if (isFinal(error)) return false;
  if (!retryable) return !RunchartError.isRunchartError(error);
  const answer: unknown = retryable(error);
  // A promise is no answer; where it rejects, nobody else hears of it.
  if (answer instanceof Promise) answer.catch(() => undefined);
  return answer === true;
}

/** What the value of a failure says of its repetition. Reading what a tool has thrown may throw: then it is a no. */
export const retryOf =
  ({ toolRetry }: { toolRetry: RetryPolicy }, { random }: { random(): number }) =>
  (error: unknown): Retry => {
    try {
      return toolRetry && mayRepeat(error, toolRetry) ? { retry: { random: random() } } : {};
    } catch {
      return {};
    }
  };
