/**
 * The interface between a conversation and a terminal, and the plainest implementation: whole lines in, whole lines
 * out. Invariant: the implementation works without cursor control: on a dumb terminal, and with a pipe or a file as
 * output.
 */
import { createInterface, type Interface } from 'node:readline';
import type { Output, Span } from '../screen.ts';
import { ownLine, rowsOf, rowText, type TextLine } from './textRows.ts';

/** The changing part of the terminal, besides the permanent lines. */
export interface TerminalView {
  readonly lines: readonly TextLine[];
  /** Shown before the typed text. */
  readonly question: Span;
  /** The conversation waits for input. */
  readonly isAwaiting: boolean;
}

/** Provides the content of a terminal, and receives the typed text. */
export interface TerminalSource {
  view(): TerminalView;
  /** Removes and returns the lines in progress that will not change any more, but for the last `keep` rows. */
  settle(width: number, keep?: number): TextLine[];
  /** True while a spinner turns or a time advances. */
  isTurning(): boolean;
  /** Earlier lines, the latest last. */
  history(): readonly string[];
  submit(text: string, later: boolean): void;
  escape(): void;
  interrupt(text: string): void;
  end(): void;
  /** Returns the completion of a text, or the text itself. */
  completed(text: string): string;
  /** Chooses another row of the open menu. False if there is none. */
  moveInMenu(text: string, step: number): boolean;
}

export interface ConversationTerminal {
  /** The text in the line. */
  readonly text: string;
  /** The height of the screen. Infinite for a terminal without one. */
  readonly rows: number;
  /** The usable width, if the terminal shows Markdown in colour. */
  readonly textColumns?: number | undefined;
  /** Writes permanent lines. */
  commit(lines: readonly TextLine[]): void;
  /** Replaces the text in the line. */
  fill(text: string): void;
  /** Called when the view has changed. */
  changed(): void;
  /** Leaves the terminal to another program until the work has ended, if that is possible. */
  readonly isHandedOver?: boolean;
  handOver?<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

/** A question appears after this delay, because the last input may start new work. */
const ASK_MS = 60;

export class LineTerminal implements ConversationTerminal {
  readonly text = '';
  readonly rows = Number.POSITIVE_INFINITY;
  readonly #output: Output & { readonly columns: number | undefined };
  readonly #source: TerminalSource;
  readonly #lines: Interface;
  /** The question before the cursor. */
  #shownQuestion: string | undefined;
  #asking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(
    input: NodeJS.ReadableStream,
    output: Output & { readonly columns: number | undefined },
    source: TerminalSource,
  ) {
    this.#output = output;
    this.#source = source;
    // Without `terminal` the line discipline keeps Ctrl-C, so it arrives as a signal.
    this.#lines = createInterface({ input, terminal: false });
    this.#lines.on('line', (text) => {
      this.#shownQuestion = undefined;
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
    if (this.#shownQuestion !== undefined) this.#output.write('\n');
    this.#shownQuestion = undefined;
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
    if (!isAwaiting || this.#shownQuestion === question[1]) return;
    if (this.#shownQuestion !== undefined) this.#output.write('\n');
    this.#shownQuestion = question[1];
    this.#output.write(`${question[1]} `);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#asking);
    if (this.#shownQuestion !== undefined) this.#output.write('\n');
    this.#lines.close();
  }

  #width(): number {
    return this.#output.columns ?? Number.POSITIVE_INFINITY;
  }
}
