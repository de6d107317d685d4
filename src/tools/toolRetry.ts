/**
 * Decides whether a failing tool runs again (policy `toolRetry`). Rule: an abort or a wrong configuration is never
 * repeated. Otherwise the host's `retryable` decides. Without it, a thrown error is repeated and a returned failure is
 * not. A time-out is repeated only for an idempotent tool, since the abandoned execution may still have its effect.
 */
import { RunchartError } from '../errors.ts';

interface Retrying {
  /** The host's decision about a failure. Throwing counts as no. */
  retryable?(error: unknown): boolean;
}
export type RetryPolicy = false | Retrying;
/** `random` lies between 0 and 1. */
export type Retry = { retry?: { random: number } };

const isNamed = (error: unknown, name: string): boolean =>
  typeof error === 'object' && error !== null && (error as { name?: unknown }).name === name;

function isFinal(error: unknown): boolean {
  if (RunchartError.isRunchartError(error)) return error.code === 'configuration';
  return isNamed(error, 'AbortError');
}

/** The kind of failure: the tool threw, returned an error, or exceeded its time. */
export type ToolFailure = 'thrown' | 'returned' | 'timeout';

const refusals = new WeakSet<NonNullable<Retrying['retryable']>>();

/**
 * Makes a `retryable` that can only refuse. A failure that it does not refuse is decided as if there were no
 * `retryable`.
 */
export function onlyRefusing(isRefused: (error: unknown) => boolean): (error: unknown) => boolean {
  const retryable = (error: unknown): boolean => !isRefused(error);
  refusals.add(retryable);
  return retryable;
}

function mayRepeat(error: unknown, kind: ToolFailure, isIdempotent: boolean, { retryable }: Retrying): boolean {
  if (isFinal(error)) return false;
  const answer: unknown = retryable ? retryable(error) : true;
  if (!retryable || (answer === true && refusals.has(retryable)))
    return kind === 'timeout' ? isIdempotent : !RunchartError.isRunchartError(error);
  // A promise is no valid answer, and its rejection must not be unhandled.
  if (answer instanceof Promise) answer.catch(() => undefined);
  return answer === true;
}

/** The retry field of a failure's value. Reading a thrown value may throw; then there is no retry. */
export const retryOf =
  ({ toolRetry }: { toolRetry: RetryPolicy }, { random }: { random(): number }) =>
  (error: unknown, kind: ToolFailure, isIdempotent: boolean): Retry => {
    try {
      return toolRetry && mayRepeat(error, kind, isIdempotent, toolRetry) ? { retry: { random: random() } } : {};
    } catch {
      return {};
    }
  };
