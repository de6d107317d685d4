/**
 * A terminal, as far as the program uses one: written text becomes rows. Invariant: an unknown escape sequence is an
 * error, so nothing reaches a terminal unnoticed. It contains no code under test.
 */
import stringWidth from 'string-width';

const ESCAPE = '\u001b';
const SEQUENCE = new RegExp(`${ESCAPE}\\[(\\??[\\d;]*)([A-Za-z])`, 'y');
const HALF = new RegExp(`${ESCAPE}(?:\\[[?\\d;]*)?$`);
const RUN = new RegExp(`^[^${ESCAPE}\\r\\n\\b]+`);
const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export class TerminalScreen {
  #columns: number;
  #rows: string[][] = [[]];
  #row = 0;
  #column = 0;
  #rest = '';

  constructor(columns = 80) {
    this.#columns = columns;
  }

  /** All text that was ever shown, including rows that scrolled away, without trailing spaces. */
  get rows(): string[] {
    const shown = this.#rows.map((cells) =>
      Array.from(cells, (cell) => cell ?? ' ')
        .join('')
        .trimEnd(),
    );
    while (shown.length > 1 && shown.at(-1) === '') shown.pop();
    return shown;
  }

  get text(): string {
    return this.rows.join('\n');
  }

  get cursor(): { row: number; column: number } {
    return { row: this.#row, column: this.#column };
  }

  /** Sets another width. Rows that are too long are broken, as terminals do; none are joined. */
  resize(columns: number): void {
    const before = this.#rows;
    this.#columns = columns;
    this.#rows = [];
    let row = 0;
    let column = 0;
    for (const [at, cells] of before.entries()) {
      if (at === this.#row) {
        row = this.#rows.length + Math.floor(this.#column / columns);
        column = this.#column % columns;
      }
      for (let from = 0; from === 0 || from < cells.length; from += columns)
        this.#rows.push(cells.slice(from, from + columns));
    }
    this.#row = row;
    this.#column = column;
  }

  write(piece: string): void {
    const text = this.#rest + piece;
    // An incomplete sequence waits for its remainder.
    const [half = ''] = HALF.exec(text) ?? [];
    this.#rest = half;
    this.#take(half === '' ? text : text.slice(0, -half.length));
  }

  #take(text: string): void {
    for (let at = 0; at < text.length; ) {
      const character = text[at] ?? '';
      if (character === ESCAPE) {
        SEQUENCE.lastIndex = at;
        const match = SEQUENCE.exec(text);
        if (!match) throw new Error(`an unknown sequence: ${JSON.stringify(text.slice(at, at + 20))}`);
        this.#sequence(match[1] ?? '', match[2] ?? '');
        at += match[0].length;
      } else if (character === '\r' || character === '\n' || character === '\b') {
        this.#control(character);
        at += 1;
      } else {
        const [run = ''] = RUN.exec(text.slice(at)) ?? [];
        if (/\p{Cc}/u.test(run)) throw new Error(`a control character: ${JSON.stringify(run)}`);
        for (const { segment } of segmenter.segment(run)) this.#put(segment);
        at += run.length;
      }
    }
  }

  #control(character: string): void {
    if (character === '\r') this.#column = 0;
    else if (character === '\b') this.#column = Math.max(0, this.#column - 1);
    else this.#down();
  }

  #down(): void {
    this.#row += 1;
    this.#rows[this.#row] ??= [];
  }

  #put(character: string): void {
    const width = stringWidth(character);
    if (this.#column + width > this.#columns) {
      this.#column = 0;
      this.#down();
    }
    const cells = this.#rows[this.#row] ?? [];
    cells[this.#column] = character;
    for (let beside = 1; beside < width; beside += 1) cells[this.#column + beside] = '';
    this.#column += width;
  }

  #sequence(parameters: string, kind: string): void {
    const count = Number(parameters || '1');
    if (kind === 'm' || /^\?(25|2004|2026)$/.test(parameters)) return;
    if (kind === 'A') this.#row = Math.max(0, this.#row - count);
    else if (kind === 'C') this.#column = Math.min(this.#columns - 1, this.#column + count);
    else if (kind === 'J' && parameters === '') {
      this.#rows.length = this.#row + 1;
      this.#rows[this.#row]?.splice(this.#column);
    } else throw new Error(`an unknown sequence: CSI ${parameters}${kind}`);
  }
}
