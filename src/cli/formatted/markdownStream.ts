/**
 * Markdown that arrives in pieces, as lines. Invariant: a complete block becomes permanent lines once. Later pieces never change them.
 * The work for a piece depends on the open block, not on the whole text.
 */
import { Lexer, type Token } from 'marked';
import type { TextLine } from '../interactive/textRows.ts';
import { codeLine, infoOf, markdownLines, sourceLines } from './markdownLines.ts';

/** A longer open block is shown as its source. */
const OPEN_MAX = 8_000;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
/** Blocks that may continue after an empty line. */
const CONTINUES = new Set(['list', 'code']);
const ONE_LINE = new Set(['heading', 'hr']);

interface OpenFence {
  readonly mark: string;
  readonly indent: number;
  readonly info: string;
  readonly lines: string[];
}

export class MarkdownStream {
  readonly #width: () => number;
  /** The complete lines of the open block, and an incomplete one. */
  #open = '';
  #rest = '';
  #fence: OpenFence | undefined;
  /** An empty line precedes the next block. */
  #hasGap = false;
  #hasShown = false;
  /** The lines of the open block at a width, until the next piece. */
  #shown: { width: number; lines: TextLine[] } | undefined;

  constructor(width: () => number) {
    this.#width = width;
  }

  /** Returns the lines of the blocks that are complete now. */
  push(piece: string): TextLine[] {
    // Only the new piece is searched, because a line may come in very many pieces.
    const [first = '', ...more] = piece.split('\n');
    const complete = [this.#rest + first, ...more];
    this.#rest = complete.pop() ?? '';
    this.#shown = undefined;
    const lines: TextLine[] = [];
    // Line by line, so that the lines do not depend on the pieces.
    for (const line of complete) {
      lines.push(...this.#line(line.replace(/\r$/, '')));
      if (!this.#fence) lines.push(...this.#completeBlocks());
    }
    return this.#open.length + this.#rest.length > OPEN_MAX ? [...lines, ...this.#source()] : lines;
  }

  /** Returns the lines of the open block. */
  end(): TextLine[] {
    const lines = this.open();
    this.#open = '';
    this.#rest = '';
    this.#shown = undefined;
    this.#fence = undefined;
    this.#hasGap = false;
    this.#hasShown = false;
    return lines;
  }

  /** The open block as it looks so far. */
  open(): TextLine[] {
    const width = this.#width();
    if (this.#shown?.width !== width) {
      this.#shown = { width, lines: this.#linesOfOpen(this.#open + this.#rest, width) };
    }
    return this.#shown.lines;
  }

  #linesOfOpen(open: string, width: number): TextLine[] {
    // A line of fence characters alone is most likely the end.
    if (this.#fence) return /^ *[`~]*$/.test(open) ? [] : [codeLine(open, this.#fence.lines, this.#fence.info)];
    const gap = this.#hasGap ? sourceLines('') : [];
    return open.trim() === '' ? [] : [...gap, ...markdownLines(withoutEnd(tokensOf(open)), width)];
  }

  /** A complete line: of a fenced block, or of another block that stays open. */
  #line(line: string): TextLine[] {
    const fence = this.#fence;
    if (fence) {
      const isEnd = line.trim().startsWith(fence.mark) && /^ {0,3}(`+|~+) *$/.test(line);
      if (isEnd) {
        this.#fence = undefined;
        return [];
      }
      const text = line.slice(Math.min(fence.indent, /^ */.exec(line)?.[0].length ?? 0));
      const shown = codeLine(text, fence.lines, fence.info);
      fence.lines.push(text);
      return [shown];
    }
    const [found, indent = '', mark = '', info] = FENCE.exec(line) ?? [];
    // An indented fence belongs to the item of a list.
    const isOwn = found !== undefined && (indent.length < 2 || !/^\s*(?:[-+*]|\d{1,9}[.)])\s/.test(this.#open));
    if (!isOwn) {
      this.#open += `${line}\n`;
      return [];
    }
    const before = this.#flush(tokensOf(this.#open));
    this.#hasShown = true;
    this.#open = '';
    this.#fence = { mark, indent: indent.length, info: infoOf(info?.trim()), lines: [] };
    return [...before, ...this.#gap()];
  }

  /** Makes the blocks permanent that nothing can change, and the items of a list but the last one. */
  #completeBlocks(): TextLine[] {
    const tokens = tokensOf(this.#open);
    const last = withoutEnd(tokens).length - 1;
    const block = tokens[last];
    if (!block) return this.#take(tokens, this.#open.length);
    const isEnded = ONE_LINE.has(block.type) || (!CONTINUES.has(block.type) && /\n[ \t]*\n/.test(this.#open.slice(-3)));
    if (isEnded) return this.#take(tokens, this.#open.length);
    const before = tokens.slice(0, last);
    const lines = this.#take(
      before,
      before.reduce((sum, { raw }) => sum + raw.length, 0),
    );
    return block.type === 'list' ? [...lines, ...this.#completeItems(block)] : lines;
  }

  #completeItems(list: Token): TextLine[] {
    if (list.type !== 'list' || list.items.length < 2) return [];
    const items = list.items.slice(0, -1);
    const raw = items.map((item: Token) => item.raw).join('');
    if (!this.#open.startsWith(raw)) return [];
    const lines = this.#flush([{ ...list, items, raw } as Token]);
    this.#open = this.#open.slice(raw.length);
    if (/\n[ \t]*\n$/.test(raw)) this.#hasGap = true;
    return lines;
  }

  #take(tokens: readonly Token[], length: number): TextLine[] {
    const lines = this.#flush(tokens);
    this.#open = this.#open.slice(length);
    return lines;
  }

  /** The empty line after the blocks waits for the next one. */
  #flush(tokens: readonly Token[]): TextLine[] {
    const blocks = withoutEnd(tokens);
    const gap = blocks.length > 0 ? this.#gap() : [];
    if (blocks.length > 0) this.#hasShown = true;
    if (tokens.length > blocks.length && this.#hasShown) this.#hasGap ||= /\n.*\n|^\n/.test(tokens.at(-1)?.raw ?? '');
    return [...gap, ...markdownLines(blocks, this.#width())];
  }

  #gap(): TextLine[] {
    const hasGap = this.#hasGap;
    this.#hasGap = false;
    return hasGap ? sourceLines('') : [];
  }

  /** A block without an end. */
  #source(): TextLine[] {
    const source = this.#open + this.#rest;
    // Half of a character or of a line end waits for the rest.
    const half = /[\r\ud800-\udbff]$/.exec(source)?.[0] ?? '';
    const lines = [...this.#gap(), ...sourceLines(source.slice(0, source.length - half.length))];
    this.#hasShown = true;
    this.#open = '';
    this.#rest = half;
    return lines;
  }
}

function tokensOf(source: string): Token[] {
  const plain = [{ type: 'paragraph', raw: source, text: source, tokens: [textToken(source)] } as Token];
  try {
    const tokens = [...new Lexer({ gfm: true }).lex(source)];
    // The source is cut by the lengths of the tokens.
    return tokens.map(({ raw }) => raw).join('') === source ? tokens : plain;
  } catch {
    // Deeply nested quotes can exceed the stack.
    return plain;
  }
}

const textToken = (text: string): Token => ({ type: 'text', raw: text, text, escaped: false }) as Token;

function withoutEnd(tokens: readonly Token[]): readonly Token[] {
  let end = tokens.length;
  while (end > 0 && tokens[end - 1]?.type === 'space') end -= 1;
  return tokens.slice(0, end);
}
