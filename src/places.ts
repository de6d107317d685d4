/** Places in a log, as callers name them. Rule: a place is a count of entries from the front; what counts none is refused. */
import { ConfigurationError } from './errors.ts';

const shown = (value: unknown): string => (typeof value === 'string' ? JSON.stringify(value) : String(value));

/** Throws ConfigurationError for what is given and is no whole number of at least `least`. */
export function refuseNoPlace(until: unknown, least: number): void {
  if (until === undefined || (Number.isSafeInteger(until) && (until as number) >= least)) return;
  throw new ConfigurationError(
    `until counts entries: expected a whole number of at least ${least}, got ${shown(until)}; leave it out for all`,
  );
}
