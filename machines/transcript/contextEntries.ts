/** Entries about the use of the context window. Invariant: only the log determines the messages that the model no longer receives. */
import type { LogEntry } from '../vocabulary.ts';

/** An `extension` entry: the model no longer receives these results. Value: `{ callIds }`. */
export const PRUNED = 'runchart.pruned';

/** An `extension` entry: usage has fallen below the warning again. Value: `{ used, limit }`. */
export const EASED = 'runchart.context-eased';

/** The used fraction of the window. A window without space counts as full. */
export const shareOf = ({ used, limit }: { used: number; limit: number }): number => (limit > 0 ? used / limit : 1);

/** The calls whose results an entry hides from the model. */
export function prunedBy(entry: LogEntry): string[] {
  if (entry.type !== 'extension' || entry.name !== PRUNED) return [];
  const { value } = entry;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const { callIds } = value;
  return Array.isArray(callIds) ? callIds.filter((id) => typeof id === 'string') : [];
}

/** Whether a warning is active after this entry; undefined where the entry does not say. */
export function warnedBy(entry: LogEntry): boolean | undefined {
  if (entry.type === 'context-warning') return true;
  return entry.type === 'extension' && entry.name === EASED ? false : undefined;
}
