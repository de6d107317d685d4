/**
 * A text that a person edits, as a diff: the rows to draw, and the text after an input. Invariant: each line of both
 * texts has one row, and an unchanged line has one for both.
 */
import { diffArrays } from 'diff';

export interface DiffRow {
  readonly line: string;
  /** The reason of a refusal is shown below its line. */
  readonly look: '' | 'added' | 'removed' | 'refused';
  /** The line number in its own text, from 1. */
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

/** Returns the line that a parser's error names, by line or by position, or undefined. */
export function lineOfError(text: string, error: string): number | undefined {
  const line = /\bline (\d+) column\b/.exec(error)?.[1];
  const position = /\bat position (\d+)/.exec(error)?.[1];
  const lineNumber = line ?? (position && text.slice(0, Number(position)).split('\n').length);
  if (lineNumber !== undefined && lineNumber !== '') return Number(lineNumber);
  return /^Unexpected end of JSON input/.test(error) ? text.split('\n').length : undefined;
}

/** Returns the text after a browser input (`InputEvent.inputType`) on the range between two offsets. */
export function changed(
  text: string,
  ends: readonly number[],
  inputType: string,
  inserted: string,
): { text: string; caret: number } {
  let from = Math.min(...ends, text.length);
  let to = Math.min(Math.max(...ends), text.length);
  // Beside a removed line the selection is empty, so the browser would delete nothing.
  if (from === to && inputType === 'deleteContentBackward') from = Math.max(0, from - 1);
  if (from === to && inputType === 'deleteContentForward') to = Math.min(text.length, to + 1);
  const isBreak = inputType === 'insertLineBreak' || inputType === 'insertParagraph';
  const added = isBreak ? '\n' : inputType.startsWith('insert') ? inserted.replace(/\r\n?/g, '\n') : '';
  return { text: text.slice(0, from) + added + text.slice(to), caret: from + added.length };
}
