/**
 * The notes of the Steps panel and the marks of the time line, by their entries. Invariant: a note is shown at the
 * place of its entry.
 */
import type { LogEntry } from '../../machines/vocabulary.ts';
import { type EntryNote, markLabel, stepNote } from '../../src/words/entryWords.ts';

export interface Mark {
  readonly label: string;
  readonly at: number;
}

/** An event between two turns, on the model's lane. */
export function markOf(entry: LogEntry, at: number): Mark | undefined {
  const label = markLabel(entry);
  return label === undefined ? undefined : { at, label };
}

export interface PlacedNote extends EntryNote {
  readonly at: number;
}

/** Returns the notes of the entries `from` to `to`, both included. */
export function notesOf(entries: readonly LogEntry[], from: number, to: number): PlacedNote[] {
  const notes: PlacedNote[] = [];
  for (let at = from; at <= to; at++) {
    const entry = entries[at];
    const note = entry && stepNote(entry, entry.type === 'model-retry' ? modelBefore(entries, at) : undefined);
    if (note) notes.push({ ...note, at });
  }
  return notes;
}

function modelBefore(entries: readonly LogEntry[], index: number): string | undefined {
  for (let at = index - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type === 'model-reply' || entry?.type === 'model-retry') return entry.model;
  }
  return undefined;
}
