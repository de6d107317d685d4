/**
 * The policies that charts read, in their JSON form, and their defaults, as `policyRows.ts` declares them. Values that are not JSON
 * (models, predicates) stay with the host, and have an id or a count here.
 */
import { chartRows, defaultsOf, limitRows, type toolRetryRows, type ValuesOf } from './policyRows.ts';

/** The policy `limits`: docs/policies.md describes each limit. */
export type Limits = ValuesOf<typeof limitRows>;

/** The wait before another attempt: exponential up to a cap, then jitter from a number of the host. */
export interface Backoff {
  /** Milliseconds before the second attempt. */
  baseMs: number;
  /** Each further wait is multiplied by this. */
  factor: number;
  /** The longest wait in milliseconds. */
  capMs: number;
  /** The largest random part, as a fraction of the wait. */
  jitter: number;
}

/** How a failed execution of a tool is repeated; `attempts` counts the first one. */
export type ToolRetry = ValuesOf<typeof toolRetryRows>;
/** The policies that charts decide by: docs/policies.md describes each of them. */
export type ChartPolicies = ValuesOf<typeof chartRows>;

/** The defaults of the policy `limits`. */
export const defaultLimits: Limits = defaultsOf(limitRows);
/** The defaults of the policies that charts decide by. */
export const defaultPolicies: ChartPolicies = { ...defaultsOf(chartRows), limits: defaultLimits };

/** Milliseconds before the attempt that follows `failed` failed ones; `random` is 0 to 1. */
export function backoffMs({ baseMs, factor, capMs, jitter }: Backoff, failed: number, random: number): number {
  // The power may be Infinity, and 0 times that is NaN.
  return baseMs && Math.round(Math.min(capMs, baseMs * factor ** (failed - 1)) * (1 + jitter * random));
}
