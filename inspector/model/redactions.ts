/**
 * Finds the placeholders of values that were redacted before the log was written. Invariant: the log does not contain
 * the values themselves.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';

export const STAND_IN = '[redacted]';

export interface Redaction {
  /** The index of the entry. */
  readonly index: number;
  readonly seq: number;
  readonly type: string;
  /** Field names and list indexes that lead to the text. */
  readonly path: string;
  /** The text around the first placeholder. */
  readonly around: string;
  /** The number of placeholders in the text. */
  readonly count: number;
}

const AROUND = 24;

export function redactionsOf(entries: readonly LogEntry[], from = 0): Redaction[] {
  const redactions: Redaction[] = [];
  for (let index = from; index < entries.length; index++) {
    const entry = entries[index];
    if (!entry) continue;
    const { seq, type } = entry;
    for (const { path, text } of textsOf(entry, '')) {
      const at = text.indexOf(STAND_IN);
      const before = text.slice(Math.max(0, at - AROUND), at);
      const after = text.slice(at + STAND_IN.length, at + STAND_IN.length + AROUND);
      const around = `${before}${STAND_IN}${after}`.replace(/\s+/g, ' ');
      redactions.push({ index, seq, type, path, around, count: text.split(STAND_IN).length - 1 });
    }
  }
  return redactions;
}

/** Yields the texts with a placeholder, in order. */
function* textsOf(value: unknown, path: string): Generator<{ path: string; text: string }> {
  if (typeof value === 'string') {
    if (value.includes(STAND_IN)) yield { path, text: value };
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    yield* textsOf(inner, path === '' ? key : Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
  }
}
