/**
 * What a conversation wants of a terminal, and the plainest of them: whole lines out, whole lines in. Rule: it works where nothing can be
 * drawn: on a dumb terminal, and where the output is a pipe or a file. Nothing it writes moves a cursor.
 */
import { createInterface, type Interface } from 'node:readline';
import type { Output, Span } from '../screen.ts';
import { ownLine, rowsOf, rowText, type TextLine } from './rows.ts';

/** What is shown now, besides the lines that stay. */
export interface TerminalView {
  readonly lines: readonly TextLine[];
  /** Stands before what is typed. */
  readonly question: Span;
  /** Something is to be typed before anything goes on. */
  readonly isAwaiting: boolean;
}

/** Whom a terminal asks what to show, and tells what was typed. */
export interface TerminalSource {
  view(): TerminalView;
  /** Lines of what is under way that will not change any more. */
  settle(width: number): TextLine[];
  /** Something turns, or a time goes on. */
  isTurning(): boolean;
  /** Lines of before, the latest last. */
  history(): readonly string[];
  submit(text: string, later: boolean): void;
  escape(): void;
  interrupt(text: string): void;
  end(): void;
  /** What a text may go on as; the text itself where nothing is known. */
  completed(text: string): string;
}

export interface ConversationTerminal {
  /** What stands in the line. */
  readonly text: string;
  /** Lines that stay. */
  commit(lines: readonly TextLine[]): void;
  /** What is typed begins with this. */
  fill(text: string): void;
  /** The view is another one. */
  changed(): void;
  close(): void;
}

/** A question waits for what was typed last to begin something. */
const ASK_MS = 60;

export class LineTerminal implements ConversationTerminal {
  readonly text = '';
  readonly #output: Output & { readonly columns: number | undefined };
  readonly #source: TerminalSource;
  readonly #lines: Interface;
  /** The question that the cursor stands behind. */
  #asked: string | undefined;
  #asking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    input: NodeJS.ReadableStream,
    output: Output & { readonly columns: number | undefined },
    source: TerminalSource,
  ) {
    this.#output = output;
    this.#source = source;
    // Without `terminal` the line discipline keeps Ctrl-C, which then is a signal.
    this.#lines = createInterface({ input, terminal: false });
    this.#lines.on('line', (text) => {
      this.#asked = undefined;
      source.submit(text, false);
      this.changed();
    });
    this.#lines.on('close', () => {
      if (!this.#isClosed) source.end();
    });
    this.changed();
  }

  commit(lines: readonly TextLine[]): void {
    if (lines.length === 0) return;
    if (this.#asked !== undefined) this.#output.write('\n');
    this.#asked = undefined;
    const rows = lines.flatMap((line) => rowsOf(line, this.#width()));
    for (const row of rows) this.#output.write(`${rowText(row)}\n`);
    this.changed();
  }

  fill(text: string): void {
    if (text !== '') this.commit([ownLine(['plain', `in the line: ${text}`])]);
  }

  changed(): void {
    if (this.#isClosed) return;
    const settled = this.#source.settle(this.#width());
    if (settled.length > 0) return this.commit(settled);
    this.#asking ??= setTimeout(() => this.#ask(), ASK_MS);
  }

  #ask(): void {
    this.#asking = undefined;
    const { question, isAwaiting } = this.#source.view();
    if (!isAwaiting || this.#asked === question[1]) return;
    if (this.#asked !== undefined) this.#output.write('\n');
    this.#asked = question[1];
    this.#output.write(`${question[1]} `);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#asking);
    if (this.#asked !== undefined) this.#output.write('\n');
    this.#lines.close();
  }

  #width(): number {
    return this.#output.columns ?? Number.POSITIVE_INFINITY;
  }
}
