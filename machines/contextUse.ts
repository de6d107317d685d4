/**
 * What the log says of the context window. Rule: what was pruned and whether a warning stands is in the log, so a restored
 * conversation goes on as this one would.
 */
import type { LogEntry } from './vocabulary.ts';

/** An `extension` entry: its results are not shown to the model any more. Value: `{ callIds }`. */
export const PRUNED = 'runchart.pruned';

/** An `extension` entry: use has fallen below the warning again. Value: `{ used, limit }`. */
export const EASED = 'runchart.context-eased';

/** The share of the window that is used; a window without room is full. */
export const shareOf = ({ used, limit }: { used: number; limit: number }): number => (limit > 0 ? used / limit : 1);

/** The calls whose results an entry takes out of the model's sight. */
export function prunedBy(entry: LogEntry): string[] {
  if (entry.type !== 'extension' || entry.name !== PRUNED) return [];
  const { value } = entry;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const { callIds } = value;
  return Array.isArray(callIds) ? callIds.filter((id) => typeof id === 'string') : [];
}

/** Whether a warning stands behind this entry; undefined where the entry does not say. */
export function warnedBy(entry: LogEntry): boolean | undefined {
  if (entry.type === 'context-warning') return true;
  return entry.type === 'extension' && entry.name === EASED ? false : undefined;
}
