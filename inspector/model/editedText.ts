/**
 * A text that a person edits, and how it differs from what it was: rows to draw, and the text behind an input. Rule: every
 * line of both texts is there once, in one order; an unchanged one counts for both.
 */
import { diffArrays } from 'diff';

export interface DiffRow {
  readonly line: string;
  /** Why it was refused stands below the line that it is about. */
  readonly look: '' | 'added' | 'removed' | 'refused';
  /** Of the line in its own text, from 1. */
  readonly number?: number;
}

export function diffRows(before: string, after: string, refused?: { line: number; why: string }): DiffRow[] {
  const rows: DiffRow[] = [];
  let [old, now] = [0, 0];
  for (const { value, added, removed } of diffArrays(before.split('\n'), after.split('\n'))) {
    for (const line of value) {
      if (!added) old += 1;
      if (!removed) now += 1;
      rows.push({ line, look: added ? 'added' : removed ? 'removed' : '', number: removed ? old : now });
      if (!removed && refused?.line === now) rows.push({ line: refused.why, look: 'refused' });
    }
  }
  return rows;
}

/** The line that a parser's error names, by line or by position; nothing where it names none. */
export function lineOfError(text: string, error: string): number | undefined {
  const line = /\bline (\d+) column\b/.exec(error)?.[1];
  const position = /\bat position (\d+)/.exec(error)?.[1];
  const found = line ?? (position && text.slice(0, Number(position)).split('\n').length);
  if (found !== undefined && found !== '') return Number(found);
  return /^Unexpected end of JSON input/.test(error) ? text.split('\n').length : undefined;
}

/** The text behind an input of the browser's (`InputEvent.inputType`) that is about what lies between two offsets. */
export function changed(
  text: string,
  ends: readonly number[],
  inputType: string,
  given: string,
): { text: string; caret: number } {
  let from = Math.min(...ends, text.length);
  let to = Math.min(Math.max(...ends), text.length);
  // Next to a line that was removed the browser finds nothing to delete.
  if (from === to && inputType === 'deleteContentBackward') from = Math.max(0, from - 1);
  if (from === to && inputType === 'deleteContentForward') to = Math.min(text.length, to + 1);
  const isBreak = inputType === 'insertLineBreak' || inputType === 'insertParagraph';
  const added = isBreak ? '\n' : inputType.startsWith('insert') ? given.replace(/\r\n?/g, '\n') : '';
  return { text: text.slice(0, from) + added + text.slice(to), caret: from + added.length };
}
