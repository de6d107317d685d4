/**
 * What a store tolerated when it opened a log, as entries. Rule: one diagnostic a notice, and none that the log holds
 * already with the same code and detail: damage that stays in a file is noticed at every opening.
 */
import type { Diagnostic, LogEntry, NewEntry } from '../../machines/vocabulary.ts';

export function toleratedBy(notices: readonly Diagnostic[], entries: readonly LogEntry[]): NewEntry[] {
  if (notices.length === 0) return [];
  const known = new Set(entries.flatMap((entry) => (entry.type === 'diagnostic' ? [nameOf(entry)] : [])));
  return notices
    .filter((notice) => !known.has(nameOf(notice)))
    .map(({ code, detail }) => ({ runId: null, type: 'diagnostic', code, ...(detail !== undefined && { detail }) }));
}

const nameOf = ({ code, detail = null }: { code: string; detail?: unknown }): string => JSON.stringify([code, detail]);
