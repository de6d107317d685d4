/**
 * Whether a failing tool is executed again (policy `toolRetry`). Rule: an abort or a wrong configuration is never repeated. The
 * host's word decides the rest; without it a thrown error is repeated, a returned failure is not, and a time-out is where the tool
 * is idempotent, since the execution that was left may still have its effect.
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

/** What failed: the tool threw, it returned a failure, or its time was up. */
export type ToolFailure = 'thrown' | 'returned' | 'timeout';

const refusals = new WeakSet<NonNullable<Retrying['retryable']>>();

/** A word on failures that only ever refuses: what it does not refuse is decided as if nobody had said anything. */
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
  // A promise is no answer; where it rejects, nobody else hears of it.
  if (answer instanceof Promise) answer.catch(() => undefined);
  return answer === true;
}

/** What the value of a failure says of its repetition. Reading what a tool has thrown may throw: then it is a no. */
export const retryOf =
  ({ toolRetry }: { toolRetry: RetryPolicy }, { random }: { random(): number }) =>
  (error: unknown, kind: ToolFailure, isIdempotent: boolean): Retry => {
    try {
      return toolRetry && mayRepeat(error, kind, isIdempotent, toolRetry) ? { retry: { random: random() } } : {};
    } catch {
      return {};
    }
  };
