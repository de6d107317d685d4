/**
 * A terminal with cursor control: committed lines above, the progress and the typed line at the bottom. Invariant:
 * this is a thin shell. `readline.emitKeypressEvents` reads the keys, and pure functions compute edits and layout.
 * The terminal's mode is restored at the end.
 */
import { emitKeypressEvents, type Interface } from 'node:readline';
import { type Output, paintOf, type Span } from '../screen.ts';
import type { ConversationTerminal, TerminalSource } from './conversationTerminal.ts';
import { abandonsSearch, foundLine, type HistorySearch, searchedBy, startedSearch } from './historySearch.ts';
import { type EditedLine, editedBy, emptyLine, inserted, type Key, killedBy, lineWith } from './lineEditor.ts';
import { footOf, noFoot, redrawn } from './screenFoot.ts';
import { type Row, rowsOf, type TextLine } from './textRows.ts';

/** This delay separates Escape from the beginning of a longer key sequence. */
const ESCAPE_MS = 50;
/** Output is drawn at most this often. Typed characters are drawn at once. */
const DRAW_MS = 16;
const TURN_MS = 100;
/** This part of the screen holds text in progress, which is laid out again after a change of the width. */
const KEPT_PART = 3;
const PASTES = ['\x1b[?2004h', '\x1b[?2004l'] as const;
/** Input that arrives this soon was typed before the terminal was ready. Enter arrives as a line feed then. */
const TYPED_AHEAD_MS = 100;
const CLEAR = '\x1b[2J\x1b[3J\x1b[H';

export class DrawnTerminal implements ConversationTerminal {
  readonly #input: NodeJS.ReadStream;
  readonly #output: NodeJS.WriteStream;
  readonly #source: TerminalSource;
  readonly #isStyled: boolean;
  readonly #paint: (row: Row) => string;
  #line: EditedLine = emptyLine;
  #foot = noFoot;
  #settled: TextLine[] = [];
  #pasted: string | undefined;
  /** The text that Ctrl-Y puts back. */
  #killed = '';
  #search: HistorySearch | undefined;
  #drawing: NodeJS.Timeout | undefined;
  #drawingKeys: NodeJS.Immediate | undefined;
  isHandedOver = false;
  #isClosed = false;
  readonly #startedAt = Date.now();
  readonly #turning: NodeJS.Timeout;
  readonly #onKey = (_: string | undefined, key: Key): void => this.#handleKey(key);
  readonly #onResize = (): void => this.changed();
  readonly #onExit = (): void => this.#restore();

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream, styled: boolean, source: TerminalSource) {
    this.#input = input;
    this.#output = output;
    this.#source = source;
    this.#isStyled = styled;
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

  get rows(): number {
    return this.#size().rows;
  }

  get textColumns(): number | undefined {
    return this.#isStyled ? this.#size().columns - 1 : undefined;
  }

  commit(lines: readonly TextLine[]): void {
    for (const line of lines) this.#settled.push(line);
    this.changed();
  }

  fill(text: string): void {
    // A question before the line must be visible, and a search would replace the text with the next key.
    this.#search = undefined;
    this.#line = lineWith(text);
    this.changed();
  }

  changed(): void {
    if (this.isHandedOver || this.#isClosed) return;
    this.#drawing ??= setTimeout(() => this.#draw(), DRAW_MS);
  }

  /** All keys that have arrived together are drawn once. */
  #changedByKey(): void {
    if (this.isHandedOver) return;
    this.#drawingKeys ??= setImmediate(() => this.#draw());
  }

  async handOver<T>(work: () => Promise<T>): Promise<T> {
    this.#leave();
    this.isHandedOver = true;
    try {
      return await work();
    } finally {
      this.isHandedOver = false;
      if (!this.#isClosed) this.#takeBack();
    }
  }

  #takeBack(): void {
    this.#input.on('keypress', this.#onKey);
    this.#input.setRawMode(true);
    this.#input.resume();
    this.#output.write(PASTES[0]);
    this.changed();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#turning);
    this.#output.off('resize', this.#onResize);
    process.off('exit', this.#onExit);
    this.#leave();
  }

  /** Removes the foot and restores the terminal. */
  #leave(): void {
    this.#stopDrawing();
    this.#input.off('keypress', this.#onKey);
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
    const lines = [...this.#settled, ...this.#source.settle(width, Math.floor(this.rows / KEPT_PART))];
    this.#settled = [];
    return lines.flatMap((line) => rowsOf(line, width));
  }

  #stopDrawing(): void {
    clearTimeout(this.#drawing);
    clearImmediate(this.#drawingKeys);
    this.#drawing = undefined;
    this.#drawingKeys = undefined;
  }

  #draw(): void {
    this.#stopDrawing();
    const { columns, rows } = this.#size();
    const width = columns - 1;
    const settled = this.#takeSettled(width);
    const { lines, question: asked } = this.#source.view();
    const question: Span = this.#search ? ['yellow', `search "${this.#search.query}":`] : asked;
    const next = footOf({ lines, question, line: this.#line }, width, rows - 1);
    this.#output.write(redrawn(this.#foot, settled, next, columns, this.#paint));
    this.#foot = next;
  }

  #handleKey(key: Key): void {
    if (key.name === 'paste-start') this.#pasted = '';
    else if (key.name === 'paste-end') this.#paste();
    else if (this.#pasted !== undefined) this.#pasted += key.sequence;
    else if (!this.#handleSearchKey(key) && !this.#handleCommandKey(key)) this.#edit(key);
    this.#changedByKey();
  }

  #edit(key: Key): void {
    const killed = killedBy(this.#line, key);
    if (killed) this.#killed = killed;
    this.#line = editedBy(this.#line, key, this.#source.history()) ?? this.#line;
  }

  /** Returns true if the key belongs to the search through earlier lines. */
  #handleSearchKey(key: Key): boolean {
    if (!this.#search && !(key.ctrl && key.name === 'r')) return false;
    const history = this.#source.history();
    const before = this.#search;
    this.#search = before ? searchedBy(before, key, history) : startedSearch(this.#line);
    if (this.#search) this.#line = foundLine(this.#search, history);
    else if (before && abandonsSearch(key)) {
      this.#line = before.draft;
      return true;
    }
    return this.#search !== undefined;
  }

  #paste(): void {
    this.#search = undefined;
    this.#line = inserted(this.#line, this.#pasted ?? '');
    this.#pasted = undefined;
  }

  /** Returns true if the key did something other than edit the line. */
  #handleCommandKey({ name, ctrl, meta }: Key): boolean {
    const { text } = this.#line;
    const isEnter = name === 'return' || (name === 'enter' && Date.now() - this.#startedAt < TYPED_AHEAD_MS);
    if (isEnter || (name === 'enter' && meta)) this.#submit(meta);
    else if (name === 'escape') this.#source.escape();
    else if (ctrl && name === 'c') this.#source.interrupt(text);
    else if (ctrl && name === 'd' && text === '') this.#source.end();
    else if (ctrl && name === 'l') this.#clear();
    else if (ctrl && name === 'z') this.#suspend();
    else if (name === 'tab') this.#complete(text);
    else if (ctrl && name === 'y') this.#line = inserted(this.#line, this.#killed);
    else if (name === 'up' || name === 'down') return this.#source.moveInMenu(text, name === 'up' ? -1 : 1);
    else return false;
    return true;
  }

  /** Without a completion the line stays as it is, with its cursor and its draft. */
  #complete(text: string): void {
    const completed = this.#source.completed(text);
    if (completed !== text) this.#line = lineWith(completed);
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

  /** Suspends the process as Ctrl-Z does outside raw mode: restores the terminal until the process continues. */
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
