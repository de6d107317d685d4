/** How long to wait before another attempt. Rule: exponential up to a cap, then jitter from a number the host gives. */
export interface Backoff {
  /** Milliseconds before the second attempt. */
  baseMs: number;
  /** What each further wait is multiplied by. */
  factor: number;
  capMs: number;
  /** The largest random part, as a share of the wait. */
  jitter: number;
}

/** Milliseconds before the attempt that follows `failed` failed ones; `random` is 0 to 1. */
export function backoffMs({ baseMs, factor, capMs, jitter }: Backoff, failed: number, random: number): number {
  return Math.round(Math.min(capMs, baseMs * factor ** (failed - 1)) * (1 + jitter * random));
}
