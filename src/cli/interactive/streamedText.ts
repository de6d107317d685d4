/**
 * The text of a reply as it streams: lines that are permanent, and the incomplete rest. Invariant: a fold without a clock.
 * A permanent line is never changed. The answer may be Markdown; reasoning is shown as it is.
 */
import type { MarkdownStream } from '../formatted/markdownStream.ts';
import { FOREIGN, foreignLine, rowsOf, rowText, safeText, type TextLine } from './textRows.ts';

export type ReplyPart = 'assistant' | 'reasoning';

export class StreamedText {
  /** Undefined where Markdown is shown as its source. */
  readonly #markdown: () => MarkdownStream | undefined;
  /** The text in progress: its incomplete last line, or the open block of Markdown. */
  #open: { kind: ReplyPart; text: string; blocks?: MarkdownStream } | undefined;
  /** Lines of the current reply are already permanent. */
  hasSettled = false;

  constructor(markdown: () => MarkdownStream | undefined) {
    this.#markdown = markdown;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  push(kind: ReplyPart, piece: string): TextLine[] {
    const ended = this.#open !== undefined && this.#open.kind !== kind ? this.end() : [];
    const lines = [...ended, ...this.#take(kind, piece)];
    if (lines.length > 0) this.hasSettled = true;
    return lines;
  }

  #take(kind: ReplyPart, piece: string): TextLine[] {
    if (!this.#open) {
      const blocks = kind === 'assistant' ? this.#markdown() : undefined;
      this.#open = { kind, text: '', ...(blocks && { blocks }) };
    }
    const { blocks, text } = this.#open;
    if (blocks) return blocks.push(piece);
    // Only the new piece is searched, because a line may come in very many pieces.
    const [first = '', ...more] = piece.split('\n');
    const lines = [`${text}${first}`, ...more];
    this.#open = { kind, text: lines.pop() ?? '' };
    return lines.map((line) => textLine(kind, line.replace(/\r$/, '')));
  }

  /** A whole text. */
  whole(kind: ReplyPart, text: string): TextLine[] {
    const blocks = kind === 'assistant' ? this.#markdown() : undefined;
    if (blocks) return [...blocks.push(text), ...blocks.end()];
    return text.split(/\r?\n/).map((line) => textLine(kind, line));
  }

  /** Ends the text and returns its last lines. */
  end(): TextLine[] {
    const lines = this.underWay();
    this.#open = undefined;
    return lines;
  }

  /** Drops lines that are not permanent. */
  reset(): void {
    this.#open = undefined;
  }

  underWay(): TextLine[] {
    if (!this.#open) return [];
    const { kind, text, blocks } = this.#open;
    if (blocks) return blocks.open();
    return text === '' ? [] : [textLine(kind, text)];
  }

  /**
   * Removes and returns the rows of an incomplete line that will not change at this width, but for the last `keep` ones:
   * those are laid out again where the width changes.
   */
  settle(width: number, keep = 0): TextLine[] {
    if (!this.#open || this.#open.blocks || !Number.isFinite(width)) return [];
    const { kind, text } = this.#open;
    // Half of a character or of a line end waits for the rest.
    const half = /[\r\ud800-\udbff]$/.exec(text)?.[0] ?? '';
    const safe = safeText(text.slice(0, text.length - half.length));
    const rows = rowsOf(textLine(kind, safe), width);
    rows.splice(-1 - keep);
    if (rows.length === 0) return [];
    let end = 0;
    for (const row of rows) {
      const shown = rowText(row).slice(FOREIGN.length);
      end = safe.indexOf(shown, end) + shown.length;
    }
    this.#open = { kind, text: safe.slice(end).trimStart() + half };
    this.hasSettled = true;
    return rows.map((row) => textLine(kind, rowText(row).slice(FOREIGN.length)));
  }
}

const textLine = (kind: ReplyPart, text: string): TextLine => foreignLine(kind === 'assistant' ? 'plain' : 'dim', text);
