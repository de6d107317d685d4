/**
 * Lines of a terminal, laid out: text in styles becomes rows that fit a width. Rule: whatever a text holds, its rows drive no terminal;
 * what does not fit goes on in the next row behind the same margin, and nothing is left out.
 */
import stringWidth from 'string-width';
import { printable, type Span, type Style } from '../screen.ts';

/** One line as it is meant; a terminal may need several rows for it. */
export interface TextLine {
  readonly spans: readonly Span[];
  /** Stands before every row but the first, and counts for the first where that has a mark of its own. */
  readonly margin: string;
}

/** What fits into one row of a terminal, and is safe to be written. */
export interface Row {
  readonly spans: readonly Span[];
  readonly width: number;
}

/** What foreign text stands behind: no line of the program itself begins so. */
export const FOREIGN = '  ';

/** A line of the program: it begins at the first column. What a span of it quotes cannot begin a row. */
export const ownLine = (...spans: Span[]): TextLine => ({ spans, margin: FOREIGN });

/** A line of a model's text, or of anybody else's. */
export const foreignLine = (style: Style, text: string): TextLine => ({
  spans: [
    ['plain', FOREIGN],
    [style, text],
  ],
  margin: FOREIGN,
});

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Printable ASCII is one column a character. */
const ASCII = /^[ -~]*$/;
export const widthOf = (text: string): number => (ASCII.test(text) ? text.length : stringWidth(text));

/** Runs of ASCII, whose characters are one unit each, and what else there is with its neighbours, which may belong to it. */
const RUNS = /(?:[\n -~](?![^\n -~]))+|(?:[\n -~]?[^\n -~]+)+[\n -~]?/g;

/** The characters of a text as a reader counts them. */
export const charactersOf = (text: string): string[] =>
  (text.match(RUNS) ?? []).flatMap((run) =>
    /^[\n -~]*$/.test(run) ? run.split('') : Array.from(graphemes.segment(run), ({ segment }) => segment),
  );

/** Where the character begins, and the one behind it, in which a text has this unit. */
export function characterAround(text: string, at: number): { from: number; to: number } {
  const found = graphemes.segment(text).containing(at);
  return found ? { from: found.index, to: found.index + found.segment.length } : { from: at, to: at };
}

const TAB = '    ';
const safeText = (text: string): string => printable(text).replaceAll('\t', TAB).replaceAll('\n', '\\n');

/** The narrowest width that is laid out for. */
const NARROWEST = 8;

class RowBuilder {
  readonly rows: Row[] = [];
  readonly #width: number;
  readonly #margin: string;
  #spans: Span[] = [];
  #column = 0;
  /** Spaces that count only where a word follows them in this row. */
  #spaces: Span | undefined;

  constructor(width: number, margin: string) {
    this.#width = Math.max(NARROWEST, width);
    this.#margin = margin.length < this.#width - 4 ? margin : '';
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
    // What stands at the beginning of a line is its indentation.
    if (this.#spans.length === 0 && this.rows.length === 0) this.#put(span[0], span[1]);
    else this.#spaces = this.#spaces ? [span[0], this.#spaces[1] + span[1]] : span;
  }

  #word(style: Style, word: string): void {
    const spaces = this.#spaces;
    this.#spaces = undefined;
    const wanted = widthOf(word) + (spaces ? spaces[1].length : 0);
    if (this.#column + wanted <= this.#width) {
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

/** The rows of a line, at least one. */
export function rowsOf({ spans, margin }: TextLine, width: number): Row[] {
  const builder = new RowBuilder(width, margin);
  for (const span of spans) builder.add(span);
  return builder.end();
}

export const rowText = ({ spans }: Row): string => spans.map(([, text]) => text).join('');
