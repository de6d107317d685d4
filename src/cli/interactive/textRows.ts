/**
 * Lays out terminal lines: styled text becomes rows that fit a width. Invariant: no text of a row controls the
 * terminal. Text that does not fit continues in the next row after the same margin, and nothing is omitted.
 */
import stringWidth from 'string-width';
import { printable } from '../../printable.ts';
import type { Span, Style } from '../screen.ts';

/** A logical line. A terminal may need several rows for it. */
export interface TextLine {
  readonly spans: readonly Span[];
  /** Printed before every row but the first. The first row has it in its own text or has a mark. */
  readonly margin: string;
}

/** Text that fits one row of a terminal, and is safe to write. */
export interface Row {
  readonly spans: readonly Span[];
  readonly width: number;
}

/** Foreign text comes after this margin. No line of the program itself begins with it. */
export const FOREIGN = '  ';

/** A line of the program, which begins in the first column. A quoted span cannot begin a row. */
export const ownLine = (...spans: Span[]): TextLine => ({ spans, margin: FOREIGN });

/** A line of a model's text, or of other foreign text. */
export const foreignLine = (style: Style, text: string): TextLine => ({
  spans: [
    ['plain', FOREIGN],
    [style, text],
  ],
  margin: FOREIGN,
});

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Printable ASCII characters are one column wide. */
const ASCII = /^[ -~]*$/;
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : stringWidth(text));

/**
 * Matches runs of ASCII, where each character is one unit, and other runs with their neighbours, which may combine
 * with them.
 */
const RUNS = /(?:[\n -~](?![^\n -~]))+|(?:[\n -~]?[^\n -~]+)+[\n -~]?/g;

/** Splits a text into characters as a reader counts them. */
export const charactersOf = (text: string): string[] =>
  (text.match(RUNS) ?? []).flatMap((run) =>
    /^[\n -~]*$/.test(run) ? run.split('') : Array.from(graphemes.segment(run), ({ segment }) => segment),
  );

/** Returns the start of the character at this unit, and the start of the next one. */
export function characterAround(text: string, at: number): { from: number; to: number } {
  const segment = graphemes.segment(text).containing(at);
  return segment ? { from: segment.index, to: segment.index + segment.segment.length } : { from: at, to: at };
}

const TAB = '    ';
/** The text as rows show it. */
export const safeText = (text: string): string => printable(text).replaceAll('\t', TAB).replaceAll('\n', '\\n');

/** The narrowest supported width. */
const NARROWEST = 8;

class RowBuilder {
  readonly rows: Row[] = [];
  readonly #width: number;
  readonly #margin: string;
  #spans: Span[] = [];
  #column = 0;
  /** Spaces that are written only if a word follows in the same row. */
  #spaces: Span | undefined;

  constructor(width: number, margin: string) {
    this.#width = Math.max(NARROWEST, width);
    // The first columns of a margin say whose text it is.
    this.#margin = margin.length < this.#width - 4 ? margin : margin.slice(0, FOREIGN.length);
  }

  add([style, text]: Span): void {
    for (const piece of safeText(text).match(/ +|[^ ]+/g) ?? []) {
      if (piece.startsWith(' ')) this.#space([style, piece]);
      else this.#word(style, piece);
    }
  }

  end(): Row[] {
    this.#break();
    return this.rows;
  }

  #space(span: Span): void {
    // Spaces at the beginning of a line are its indentation.
    if (this.#spans.length === 0 && this.rows.length === 0) this.#put(span[0], span[1]);
    else this.#spaces = this.#spaces ? [span[0], this.#spaces[1] + span[1]] : span;
  }

  #word(style: Style, word: string): void {
    const spaces = this.#spaces;
    this.#spaces = undefined;
    const neededWidth = widthOf(word) + (spaces ? spaces[1].length : 0);
    if (this.#column + neededWidth <= this.#width) {
      if (spaces) this.#put(...spaces);
      return this.#put(style, word);
    }
    if (widthOf(word) <= this.#width - this.#margin.length) {
      this.#break();
      return this.#put(style, word);
    }
    if (spaces && this.#column + spaces[1].length < this.#width) this.#put(...spaces);
    for (const character of charactersOf(word)) {
      if (this.#column + widthOf(character) > this.#width) this.#break();
      this.#put(style, character);
    }
  }

  #put(style: Style, text: string): void {
    if (this.#spans.length === 0 && this.rows.length > 0 && this.#margin !== '') {
      this.#spans.push(['plain', this.#margin]);
      this.#column = this.#margin.length;
    }
    const last = this.#spans.at(-1);
    if (last?.[0] === style) this.#spans[this.#spans.length - 1] = [style, last[1] + text];
    else this.#spans.push([style, text]);
    this.#column += widthOf(text);
  }

  #break(): void {
    this.rows.push({ spans: this.#spans, width: this.#column });
    this.#spans = [];
    this.#column = 0;
    this.#spaces = undefined;
  }
}

/** Returns the rows of a line, at least one. */
export function rowsOf({ spans, margin }: TextLine, width: number): Row[] {
  const builder = new RowBuilder(width, margin);
  for (const span of spans) builder.add(span);
  return builder.end();
}

export const rowText = ({ spans }: Row): string => spans.map(([, text]) => text).join('');
