/**
 * A terminal of a fixed size: the output of the program becomes cells with a character and a style. Invariant: an unknown
 * escape sequence is an error, so a picture shows all that a terminal would show.
 */
import stringWidth from 'string-width';

const ESCAPE = '\u001b';
const SEQUENCE = new RegExp(`${ESCAPE}\\[(\\??[\\d;]*)([A-Za-z])`, 'y');
const HALF = new RegExp(`${ESCAPE}(?:\\[[?\\d;]*)?$`);
const PLAIN = { color: '', bold: false, dim: false, italic: false, underline: false, inverse: false };
const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/** The fields of a style that a parameter of `CSI m` sets. */
const STYLES = new Map([
  [0, PLAIN],
  [1, { bold: true }],
  [2, { dim: true }],
  [3, { italic: true }],
  [4, { underline: true }],
  [7, { inverse: true }],
  [22, { bold: false, dim: false }],
  [23, { italic: false }],
  [24, { underline: false }],
  [27, { inverse: false }],
  [39, { color: '' }],
  ...COLORS.flatMap((color, index) => [
    [30 + index, { color }],
    [90 + index, { color }],
  ]),
]);
const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export class TerminalCells {
  #columns;
  #rows;
  #lines;
  #at = { row: 0, column: 0 };
  #style = PLAIN;
  #rest = '';

  constructor(columns, rows) {
    this.#columns = columns;
    this.#rows = rows;
    this.#lines = Array.from({ length: rows }, () => []);
  }

  /** The rows of the screen, each a list of cells. A cell is missing where nothing was written. */
  get lines() {
    return this.#lines;
  }

  get cursor() {
    return this.#at;
  }

  /** The text of the screen, without spaces at the ends of rows. */
  get text() {
    const rows = this.#lines.map((cells) =>
      Array.from(cells, (cell) => cell?.text ?? ' ')
        .join('')
        .trimEnd(),
    );
    return rows.join('\n').trimEnd();
  }

  write(piece) {
    const text = this.#rest + piece;
    const [half = ''] = HALF.exec(text) ?? [];
    this.#rest = half;
    const whole = half === '' ? text : text.slice(0, -half.length);
    for (let at = 0; at < whole.length; ) {
      if (whole[at] === ESCAPE) {
        SEQUENCE.lastIndex = at;
        const found = SEQUENCE.exec(whole);
        if (!found) throw new Error(`an unknown sequence: ${JSON.stringify(whole.slice(at, at + 20))}`);
        this.#sequence(found[1], found[2]);
        at += found[0].length;
      } else {
        const [{ segment }] = segmenter.segment(whole.slice(at, at + 40));
        this.#put(segment);
        at += segment.length;
      }
    }
  }

  #put(character) {
    if (character === '\r' || character === '\r\n') this.#at.column = 0;
    if (character === '\n' || character === '\r\n') this.#down();
    if (character === '\b') this.#at.column = Math.max(0, this.#at.column - 1);
    if (/^[\r\n\b]/.test(character)) return;
    const width = stringWidth(character);
    if (this.#at.column + width > this.#columns) {
      this.#at.column = 0;
      this.#down();
    }
    const cells = this.#lines[this.#at.row];
    cells[this.#at.column] = { text: character, style: this.#style };
    for (let beside = 1; beside < width; beside += 1)
      cells[this.#at.column + beside] = { text: '', style: this.#style };
    this.#at.column += width;
  }

  #down() {
    if (this.#at.row < this.#rows - 1) this.#at.row += 1;
    else this.#lines = [...this.#lines.slice(1), []];
  }

  #sequence(parameters, kind) {
    const count = Number(parameters || '1');
    const { row, column } = this.#at;
    if (kind === 'm') this.#setStyle(parameters);
    else if (/^\?(25|2004|2026)$/.test(parameters)) return;
    else if (kind === 'A') this.#at.row = Math.max(0, row - count);
    else if (kind === 'C') this.#at.column = Math.min(this.#columns - 1, column + count);
    else if (kind === 'H' && parameters === '') this.#at = { row: 0, column: 0 };
    else if (kind === 'J' && parameters === '') {
      this.#lines = this.#lines.map((cells, at) => (at < row ? cells : at === row ? cells.slice(0, column) : []));
    } else if (kind === 'J' && /^[23]$/.test(parameters)) this.#lines = this.#lines.map(() => []);
    else throw new Error(`an unknown sequence: CSI ${parameters}${kind}`);
  }

  #setStyle(parameters) {
    for (const parameter of parameters.split(';')) {
      const change = STYLES.get(Number(parameter));
      if (!change) throw new Error(`an unknown style: ${parameters}`);
      this.#style = { ...this.#style, ...change };
    }
  }
}
