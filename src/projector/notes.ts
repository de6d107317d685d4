/**
 * What was odd. Rule: in order, and bounded: behind the first thousand stands one counter of the rest.
 *
 * Codes: `unknown` (no such entry), `reserved` (a name of the machinery), `unreadable` (reading it threw), `malformed`
 * (a known type, a field of another shape), `bad_seq`, `gap`, `conversation_missing` (an entry that says no
 * conversation among others that do), `orphan` (output, result or suspension that belongs to nothing),
 * `stop_while_idle`, `kind-overridden`, `message_repeated`, `message_missing`, `call_repeated`, `result_repeated`,
 * `result_missing`, `settled_already`, `not_last` (only the last cycle reopens), `diagnostics_dropped`.
 * Diagnostics that the log itself holds stand among them under their own codes.
 */
import type { Diagnostic, Json } from '../../machines/vocabulary.ts';
import { freezeList, List } from './collections.ts';

const NOTES_MAX = 1000;

export interface Notes {
  list: List<Diagnostic>;
  dropped: number;
  /** The view made last, until something is added. */
  view: readonly Diagnostic[] | undefined;
}

export const noNotes = (owner: number): Notes => ({ list: new List(owner), dropped: 0, view: undefined });

export function note(notes: Notes, owner: number, code: string, seq: number | undefined, detail?: Json): void {
  notes.view = undefined;
  if (notes.list.size >= NOTES_MAX) {
    notes.dropped++;
    return;
  }
  const diagnostic: Diagnostic = { code };
  if (seq !== undefined) diagnostic.seq = seq;
  // Details are flat, or were copied and so frozen when they were read.
  if (detail !== undefined) diagnostic.detail = typeof detail === 'object' ? frozen(detail) : detail;
  notes.list = notes.list.push(owner, Object.freeze(diagnostic));
}

function frozen(detail: Json): Json {
  Object.freeze(detail);
  return detail;
}

export function notesView(notes: Notes): readonly Diagnostic[] {
  if (notes.view !== undefined) return notes.view;
  const { list, dropped } = notes;
  const views = list.slice(0, list.size);
  if (dropped > 0) views.push(Object.freeze({ code: 'diagnostics_dropped', detail: frozen({ count: dropped }) }));
  notes.view = freezeList(views);
  return notes.view;
}
