/**
 * The redrawn bottom of a terminal: new permanent rows are written above it, and it is drawn again. Invariant: a pure
 * function of the previous and the next state. Nothing above the foot is touched.
 */

import { printable } from '../../printable.ts';
import type { Span } from '../screen.ts';
import { characterAround, charactersOf, FOREIGN, type Row, rowsOf, type TextLine, widthOf } from './textRows.ts';

export interface Foot {
  readonly rows: readonly Row[];
  /** The position of the cursor: row and column in the foot. */
  readonly cursor: { readonly row: number; readonly column: number };
}

export const noFoot: Foot = { rows: [], cursor: { row: 0, column: 0 } };

/** The contents of the foot. */
export interface FootContent {
  /** The lines in progress. */
  readonly lines: readonly TextLine[];
  /** Shown before the typed text. */
  readonly question: Span;
  readonly line: { readonly text: string; readonly cursor: number };
}

/** A long text is shown in part, around the cursor. */
const TYPED_MAX = 10;

/** Returns at most `rowsMax` rows: the latest lines in progress, and the typed rows around the cursor. */
export function footOf({ lines, question, line }: FootContent, width: number, rowsMax: number): Foot {
  const typed = typedRows(question, aroundCursor(line, width * rowsMax), width);
  const room = Math.max(1, Math.min(typed.rows.length, rowsMax, TYPED_MAX));
  const first = Math.min(Math.max(0, typed.cursor.row - room + 1), typed.rows.length - room);
  const shown = typed.rows.slice(first, first + room);
  const above = rowsMax > room ? lines.flatMap((each) => rowsOf(each, width)).slice(room - rowsMax) : [];
  const { row, column } = typed.cursor;
  return { rows: [...above, ...shown], cursor: { row: above.length + row - first, column } };
}

interface TypedText {
  readonly text: string;
  readonly cursor: number;
  /** The text starts at the beginning of the line, so the question precedes it. */
  readonly isFromStart: boolean;
}

/**
 * Returns the part of a long text around the cursor that can be visible. Its start stays the same while the cursor
 * moves a little.
 */
function aroundCursor({ text, cursor }: FootContent['line'], units: number): TypedText {
  const to = characterAround(text, cursor + units).from;
  const near = (Math.floor(cursor / units) - 1) * units;
  if (near <= 0) return { text: text.slice(0, to), cursor, isFromStart: true };
  const end = text.indexOf('\n', near);
  const from = end !== -1 && end < cursor - units ? end + 1 : characterAround(text, near).from;
  return { text: text.slice(from, to), cursor: cursor - from, isFromStart: false };
}

function typedRows(question: Span, line: TypedText, width: number): Foot {
  const rows = line.isFromStart ? rowsOf({ spans: [question], margin: FOREIGN }, width) : [];
  const last = rows.pop();
  // A row ends without the space between question and typed text.
  let spans: Span[] = last ? [...last.spans, ['plain', ' ']] : [['plain', FOREIGN]];
  let column = last ? last.width + 1 : FOREIGN.length;
  let cursor = { row: 0, column };
  const breakRow = (): void => {
    rows.push({ spans, width: column });
    spans = [['plain', FOREIGN]];
    column = FOREIGN.length;
  };
  let at = 0;
  for (const character of charactersOf(line.text)) {
    const shown = character === '\n' ? '' : printable(character).replaceAll('\t', ' ');
    if (character === '\n' || column + widthOf(shown) > width) {
      if (at === line.cursor) cursor = { row: rows.length, column: Math.min(column, width) };
      breakRow();
      if (at === line.cursor && character !== '\n') cursor = { row: rows.length, column };
    } else if (at === line.cursor) cursor = { row: rows.length, column };
    spans.push(['plain', shown]);
    column += widthOf(shown);
    at += character.length;
  }
  if (line.cursor >= at) {
    if (column >= width) breakRow();
    cursor = { row: rows.length, column };
  }
  rows.push({ spans, width: column });
  return { rows, cursor };
}

const SYNC = ['\x1b[?2026h', '\x1b[?2026l'] as const;
const HIDE = '\x1b[?25l';
const SHOW = '\x1b[?25h';
const CLEAR_BELOW = '\x1b[J';
const up = (rows: number): string => (rows > 0 ? `\x1b[${rows}A` : '');
const right = (columns: number): string => (columns > 0 ? `\x1b[${columns}C` : '');

/** Returns how many rows a terminal uses for a row. A terminal that became narrower has wrapped it. */
const heightOf = ({ width }: Row, columns: number): number => Math.max(1, Math.ceil(width / Math.max(1, columns)));

/** Returns the output that removes the foot and moves the cursor to its start. */
function cleared({ rows, cursor }: Foot, columns: number): string {
  if (rows.length === 0) return '';
  const above = rows.slice(0, cursor.row).reduce((sum, row) => sum + heightOf(row, columns), 0);
  return `${up(above + Math.floor(cursor.column / Math.max(1, columns)))}\r${CLEAR_BELOW}`;
}

/** Returns the output that puts `settled` above `next`. `columns` is the current width of the terminal. */
export function redrawn(
  previous: Foot,
  settled: readonly Row[],
  next: Foot,
  columns: number,
  paint: (row: Row) => string,
): string {
  const written = settled.map((row) => `${paint(row)}\r\n`).join('');
  const foot = next.rows.map(paint).join('\r\n');
  const below = next.rows.length - 1 - next.cursor.row;
  const cursor = next.rows.length === 0 ? '' : `${up(below)}\r${right(next.cursor.column)}`;
  return `${SYNC[0]}${HIDE}${cleared(previous, columns)}${written}${foot}${cursor}${SHOW}${SYNC[1]}`;
}
