/** Where a log holds the stand-in of a value that was taken out before it was written. Rule: the value itself is nowhere. */
import type { LogEntry } from '../../machines/vocabulary.ts';

export const STAND_IN = '[redacted]';

export interface Redaction {
  /** Of the entry. */
  readonly index: number;
  readonly seq: number;
  readonly type: string;
  /** Names of fields and places in lists that lead to the text. */
  readonly path: string;
  /** What stands around the first stand-in. */
  readonly around: string;
  /** How many stand in the text. */
  readonly count: number;
}

const AROUND = 24;

export function redactionsOf(entries: readonly LogEntry[], from = 0): Redaction[] {
  const found: Redaction[] = [];
  for (let index = from; index < entries.length; index++) {
    const entry = entries[index];
    if (!entry) continue;
    const { seq, type } = entry;
    for (const { path, text } of textsOf(entry, '')) {
      const at = text.indexOf(STAND_IN);
      const before = text.slice(Math.max(0, at - AROUND), at);
      const after = text.slice(at + STAND_IN.length, at + STAND_IN.length + AROUND);
      const around = `${before}${STAND_IN}${after}`.replace(/\s+/g, ' ');
      found.push({ index, seq, type, path, around, count: text.split(STAND_IN).length - 1 });
    }
  }
  return found;
}

/** Texts that hold a stand-in, in their order. */
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
