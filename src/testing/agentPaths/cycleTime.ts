/**
 * The time of a request in a story, for the policy `limits.runMs`. Invariant: only the move `deadline` uses it up. Waits of
 * retries and of tools take no time.
 */
import type { NewEntry } from '../../../machines/internal.ts';

/** Returns whether the time of the request is up after this entry. `wasUp`: before it. */
export function isTimeUp(wasUp: boolean, entry: NewEntry): boolean {
  if (entry.type === 'run-stop') return wasUp || entry.cause === 'timeout';
  return wasUp && !(entry.type === 'user-message' && entry.kind !== 'steer');
}
