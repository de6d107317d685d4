/**
 * A terminal with cursor control: committed lines above, the progress and the typed line at the bottom. Invariant:
 * this is a thin shell. `readline.emitKeypressEvents` reads the keys, and pure functions compute edits and layout.
 * The terminal's mode is restored at the end.
 */
import { emitKeypressEvents, type Interface } from 'node:readline';
import { type Output, paintOf } from '../screen.ts';
import type { ConversationTerminal, TerminalSource } from './conversationTerminal.ts';
import { type EditedLine, editedBy, emptyLine, inserted, type Key, lineWith } from './lineEditor.ts';
import { footOf, noFoot, redrawn } from './screenFoot.ts';
import { type Row, rowsOf, type TextLine } from './textRows.ts';

/** This delay separates Escape from the beginning of a longer key sequence. */
const ESCAPE_MS = 50;
const DRAW_MS = 16;
const TURN_MS = 100;
const PASTES = ['\x1b[?2004h', '\x1b[?2004l'] as const;
const CLEAR = '\x1b[2J\x1b[3J\x1b[H';

export class DrawnTerminal implements ConversationTerminal {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  readonly #source: TerminalSource;
  readonly #paint: (row: Row) => string;
  #line: EditedLine = emptyLine;
  #foot = noFoot;
  #settled: TextLine[] = [];
  #pasted: string | undefined;
  #drawing: NodeJS.Timeout | undefined;
  readonly #turning: NodeJS.Timeout;
  readonly #onKey = (_: string | undefined, key: Key): void => this.#handleKey(key);
  readonly #onResize = (): void => this.changed();
  readonly #onExit = (): void => this.#restore();

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream, styled: boolean, source: TerminalSource) {
    this.#input = input;
    this.#output = output;
    this.#source = source;
    const paint = paintOf({ styled } as Output);
    this.#paint = ({ spans }) => spans.map(([style, text]) => paint(style)(text)).join('');
    // Node uses only this field of an interface here.
    emitKeypressEvents(input, { escapeCodeTimeout: ESCAPE_MS } as unknown as Interface);
    input.on('keypress', this.#onKey);
    input.on('end', () => source.end());
    output.on('resize', this.#onResize);
    process.once('exit', this.#onExit);
    input.setRawMode(true);
    input.resume();
    output.write(PASTES[0]);
    this.#turning = setInterval(() => {
      if (source.isTurning()) this.changed();
    }, TURN_MS);
    this.changed();
  }

  get text(): string {
    return this.#line.text;
  }

  commit(lines: readonly TextLine[]): void {
    this.#settled.push(...lines);
    this.changed();
  }

  fill(text: string): void {
    this.#line = lineWith(text);
    this.changed();
  }

  changed(): void {
    this.#drawing ??= setTimeout(() => this.#draw(), DRAW_MS);
  }

  close(): void {
    clearTimeout(this.#drawing);
    clearInterval(this.#turning);
    this.#input.off('keypress', this.#onKey);
    this.#output.off('resize', this.#onResize);
    process.off('exit', this.#onExit);
    this.#drawing = undefined;
    const { columns } = this.#size();
    const rows = this.#takeSettled(columns - 1);
    this.#output.write(redrawn(this.#foot, rows, noFoot, columns, this.#paint));
    this.#foot = noFoot;
    this.#restore();
    this.#input.pause();
  }

  #restore(): void {
    this.#output.write(PASTES[1]);
    try {
      this.#input.setRawMode(false);
    } catch {
      // The terminal is gone, so there is nothing to restore.
    }
  }

  #size(): { columns: number; rows: number } {
    const { columns, rows } = this.#output;
    return { columns: columns > 1 ? columns : 80, rows: rows > 1 ? rows : 24 };
  }

  #takeSettled(width: number): Row[] {
    const lines = [...this.#settled, ...this.#source.settle(width)];
    this.#settled = [];
    return lines.flatMap((line) => rowsOf(line, width));
  }

  #draw(): void {
    this.#drawing = undefined;
    const { columns, rows } = this.#size();
    const width = columns - 1;
    const settled = this.#takeSettled(width);
    const { lines, question } = this.#source.view();
    const next = footOf({ lines, question, line: this.#line }, width, rows - 1);
    this.#output.write(redrawn(this.#foot, settled, next, columns, this.#paint));
    this.#foot = next;
  }

  #handleKey(key: Key): void {
    if (key.name === 'paste-start') this.#pasted = '';
    else if (key.name === 'paste-end') this.#paste();
    else if (this.#pasted !== undefined) this.#pasted += key.sequence;
    else if (!this.#handleCommandKey(key)) this.#line = editedBy(this.#line, key, this.#source.history()) ?? this.#line;
    this.changed();
  }

  #paste(): void {
    this.#line = inserted(this.#line, this.#pasted ?? '');
    this.#pasted = undefined;
  }

  /** Returns true if the key did something other than edit the line. */
  #handleCommandKey({ name, ctrl, meta }: Key): boolean {
    const { text } = this.#line;
    if (name === 'return' || (name === 'enter' && meta)) this.#submit(meta);
    else if (name === 'escape') this.#source.escape();
    else if (ctrl && name === 'c') this.#source.interrupt(text);
    else if (ctrl && name === 'd' && text === '') this.#source.end();
    else if (ctrl && name === 'l') this.#clear();
    else if (ctrl && name === 'z') this.#suspend();
    else if (name === 'tab') this.#line = lineWith(this.#source.completed(text));
    else return false;
    return true;
  }

  #submit(later: boolean): void {
    const { text, cursor } = this.#line;
    // A backslash at the end continues on a new line, as in a shell.
    if (!later && cursor === text.length && text.endsWith('\\')) {
      this.#line = lineWith(`${text.slice(0, -1)}\n`);
      return;
    }
    this.#line = emptyLine;
    this.#source.submit(text, later);
  }

  /** Does what Ctrl-Z does outside raw mode: restores the terminal until the process continues. */
  #suspend(): void {
    this.#restore();
    process.once('SIGCONT', () => {
      this.#input.setRawMode(true);
      this.#output.write(PASTES[0]);
      this.#foot = noFoot;
      this.changed();
    });
    // Stops the whole process group, so that the parent program restores the terminal too.
    process.kill(0, 'SIGTSTP');
  }

  #clear(): void {
    this.#output.write(CLEAR);
    this.#foot = noFoot;
  }
}
