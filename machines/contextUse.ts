/**
 * How full the context window is before a model call, and what that leads to. Rule: the sizes come from the host; what
 * was pruned and whether a warning stands is in the log, so a restored conversation goes on as this one would.
 */
import type { ContextValue, EffectRequest } from './ports.ts';
import type { RunContext, RunEvent } from './runContext.ts';
import type { LogEntry, NewEntry } from './vocabulary.ts';

type Args = { context: RunContext; event: RunEvent };

/** An `extension` entry: its results are not shown to the model any more. Value: `{ callIds }`. */
const PRUNED = 'runchart.pruned';
/** An `extension` entry: use has fallen below the warning again. Value: `{ used, limit }`. */
const EASED = 'runchart.context-eased';

/** The share of the window that is used; a window without room is full. */
export const shareOf = ({ used, limit }: { used: number; limit: number }): number => (limit > 0 ? used / limit : 1);

/** Asked only where the model has a window and some policy wants to know. */
export function askContext({ context: { runId, turn, settings } }: Args): EffectRequest | undefined {
  if (!settings.context) return undefined;
  const { prune } = settings.context;
  return { kind: 'context', id: `${runId}/t${turn}/context`, ...(prune !== undefined && { pruneAbove: prune }) };
}

const measured = (event: RunEvent): ContextValue | undefined =>
  event.type === 'effect.done' && event.value.kind === 'context' ? event.value : undefined;

/** Above `warn` a warning, once until use has fallen; above `prune` the results that go. */
export function contextEntries({ context: { runId, settings }, event }: Args): NewEntry[] {
  const value = measured(event);
  if (!value || !settings.context) return [];
  const { warn = Number.POSITIVE_INFINITY } = settings.context;
  const { used, limit, warned, prunable } = value;
  const above = shareOf(value) > warn;
  const entries: NewEntry[] = [];
  if (above && !warned) entries.push({ runId, type: 'context-warning', used, limit });
  if (!above && warned) entries.push({ runId, type: 'extension', name: EASED, value: { used, limit } });
  if (prunable) entries.push({ runId, type: 'extension', name: PRUNED, value: { callIds: prunable.callIds } });
  return entries;
}

/** No room for the next reply, whatever could be pruned. */
export function exhausted({ context: { settings }, event }: Args): boolean {
  const value = measured(event);
  const { exhaust } = settings.context ?? {};
  if (!value || exhaust === undefined) return false;
  return shareOf({ used: value.prunable?.used ?? value.used, limit: value.limit }) >= exhaust;
}

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
