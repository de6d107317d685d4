/**
 * Blocks of Markdown as terminal lines. Invariant: pure. Every line begins with the margin of foreign text, and every
 * word of the source is shown; the address of a link is shown unless it is the text itself.
 */
import type { Token, Tokens } from 'marked';
import { FOREIGN, rowsOf, type TextLine } from '../interactive/textRows.ts';
import type { Span, Style } from '../screen.ts';
import { codeSpans } from './codeColors.ts';

/** The beginning of each line of a block: indentation, and the bars of quotes. */
type Prefix = readonly Span[];

/** Deeper lists are not indented further. */
const INDENT_MAX = 16;
const RULE_MAX = 40;
const CELL_MIN = 8;

const ENTITIES: { readonly [entity: string]: string } = {
  ...{ '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&nbsp;': ' ' },
};
const decoded = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity] ?? entity);

const textOfPrefix = (prefix: Prefix): string => prefix.map(([, text]) => text).join('');

/** A line of a block. Continued rows have the same prefix, and `hang` more columns. */
function blockLine(prefix: Prefix, spans: readonly Span[], hang = 0): TextLine {
  const margin = FOREIGN + textOfPrefix(prefix) + ' '.repeat(hang);
  return { spans: [['plain', FOREIGN], ...prefix, ...spans], margin };
}

export const sourceLines = (source: string, style: Style = 'plain', prefix: Prefix = []): TextLine[] =>
  source
    .replace(/\n+$/, '')
    .split('\n')
    .map((line) => blockLine(prefix, [[style, line]]));

/** The line of a fenced block. */
export const codeLine = (line: string, before: readonly string[], info: string, prefix: Prefix = []): TextLine =>
  blockLine([...prefix, ['plain', '  ']], codeSpans(line, before, info));

/** The lines of blocks that follow one another. */
export function markdownLines(tokens: readonly Token[], width: number, prefix: Prefix = []): TextLine[] {
  return tokens.flatMap((token) => linesOfBlock(token, width, prefix));
}

function linesOfBlock(token: Token, width: number, prefix: Prefix): TextLine[] {
  switch (token.type) {
    case 'space':
      return /\n.*\n/.test(token.raw) ? [blockLine(prefix, [])] : [];
    case 'heading':
      return textLines(token.tokens ?? [], prefix, token.depth <= 2 ? 'heading' : 'bold');
    case 'paragraph':
    case 'text':
      return textLines(token.tokens ?? [token], prefix, 'plain');
    case 'code': {
      const lines = String(token.text).split('\n');
      return lines.map((line, at) => codeLine(line, lines.slice(0, at), infoOf(token.lang), prefix));
    }
    case 'blockquote':
      return markdownLines(token.tokens ?? [], width, indentedBy(prefix, ['dim', '│ ']));
    case 'list':
      return listLines(token as Tokens.List, width, prefix);
    case 'table':
      return tableLines(token as Tokens.Table, width, prefix);
    case 'hr':
      return [blockLine(prefix, [['dim', '─'.repeat(Math.max(3, Math.min(RULE_MAX, width - 4)))]])];
    default:
      // HTML, definitions of links and other blocks without text are shown as their source.
      return sourceLines(token.raw, 'dim', prefix);
  }
}

/** The language of a fence: its first word. */
export const infoOf = (info: string | undefined): string => /^[^\s{,]*/.exec(info ?? '')?.[0] ?? '';

const indentedBy = (prefix: Prefix, span: Span): Prefix =>
  textOfPrefix(prefix).length + span[1].length > INDENT_MAX ? prefix : [...prefix, span];

/** Text with its line breaks. */
function textLines(tokens: readonly Token[], prefix: Prefix, style: Style): TextLine[] {
  const lines: Span[][] = [[]];
  for (const [spanStyle, text] of inlineSpans(tokens, style)) {
    const [first = '', ...others] = text.split('\n');
    lines.at(-1)?.push([spanStyle, first]);
    // Spaces around a line break have no meaning.
    for (const other of others) lines.push([[spanStyle, other.trimStart()]]);
  }
  return lines.map((spans) => blockLine(prefix, spans));
}

function inlineSpans(tokens: readonly Token[], style: Style): Span[] {
  return tokens.flatMap((token) => inlineSpan(token, style));
}

function inlineSpan(token: Token, style: Style): Span[] {
  const nested = (inner: Style): Span[] =>
    inlineSpans('tokens' in token ? (token.tokens ?? []) : [], style === 'plain' ? inner : style);
  switch (token.type) {
    case 'strong':
      return nested('bold');
    case 'em':
      return nested('italic');
    case 'del':
      return [['dim', '~~'], ...nested('dim'), ['dim', '~~']];
    case 'codespan':
      return [['cyan', token.text]];
    case 'br':
      return [[style, '\n']];
    case 'link':
    case 'image':
      return linkSpans(token as Tokens.Link | Tokens.Image);
    case 'text':
    case 'escape':
      return 'tokens' in token && token.tokens ? inlineSpans(token.tokens, style) : [[style, decoded(token.text)]];
    default:
      return [['dim', token.raw]];
  }
}

function linkSpans({ href, title, text }: Tokens.Link | Tokens.Image): Span[] {
  const shown = decoded(text);
  const isOwn = href === shown || href === `mailto:${shown}` || href === `http://${shown}`;
  const about = title ? ` ${JSON.stringify(title)}` : '';
  const address = isOwn && about === '' ? '' : `${shown === '' ? '' : ' '}(${href}${about})`;
  return [
    ['underline', shown],
    ['dim', address],
  ];
}

function listLines({ items, ordered, start }: Tokens.List, width: number, prefix: Prefix): TextLine[] {
  return items.flatMap((item, index) => {
    const task = item.task ? (item.checked ? '[x] ' : '[ ] ') : '';
    // The number of the source, because items that are shown before later ones cannot be counted together.
    const number = /^\s*(\d+)/.exec(item.raw)?.[1] ?? Number(start) + index;
    const mark = `${ordered ? `${number}.` : '•'} ${task}`;
    const inner = indentedBy(prefix, ['plain', ' '.repeat(mark.length)]);
    const tokens = item.tokens.filter(({ type }) => type !== 'checkbox');
    const [first, ...others] = markdownLines(tokens, width, inner);
    const content = first?.spans.slice(1 + inner.length) ?? [];
    const gap = /\n[ \t]*\n$/.test(items[index - 1]?.raw ?? '') ? [blockLine(prefix, [])] : [];
    return [...gap, blockLine(prefix, [['cyan', mark], ...content], mark.length), ...others];
  });
}

/** A table with aligned columns. If the columns would be too narrow, each row is a list of its cells. */
function tableLines({ header, rows, align }: Tokens.Table, width: number, prefix: Prefix): TextLine[] {
  const cellSpans = (cell: Tokens.TableCell, style: Style): Span[] =>
    inlineSpans(cell.tokens, style).map(([each, text]) => [each, text.replaceAll('\n', ' ')]);
  const grid = [
    header.map((cell) => cellSpans(cell, 'bold')),
    ...rows.map((row) => row.map((cell) => cellSpans(cell, 'plain'))),
  ];
  const space = width - FOREIGN.length - textOfPrefix(prefix).length - 3 * (header.length - 1);
  if (space < CELL_MIN * header.length) {
    const names = header.map((cell) => cell.text);
    return rows.flatMap((row, index) => [
      ...(index > 0 ? [blockLine(prefix, [])] : []),
      ...row.map((cell, column) =>
        blockLine(prefix, [['bold', `${decoded(names[column] ?? '')}: `], ...cellSpans(cell, 'plain')], 2),
      ),
    ]);
  }
  const widths = columnWidths(grid, space);
  const rule = widths.map((columns) => '─'.repeat(columns)).join('─┼─');
  const [head = [], ...body] = grid.map((cells) => gridRows(cells, widths, align, prefix));
  return [...head, blockLine(prefix, [['dim', rule]]), ...body.flat()];
}

function columnWidths(grid: readonly (readonly Span[][])[], space: number): number[] {
  const widthOfCell = (spans: readonly Span[]): number => rowsOf({ spans, margin: '' }, 1_000)[0]?.width ?? 0;
  const widths = (grid[0] ?? []).map((_, column) =>
    Math.max(1, ...grid.map((cells) => widthOfCell(cells[column] ?? []))),
  );
  let over = widths.reduce((sum, each) => sum + each, 0) - space;
  while (over > 0) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 1) - 1;
    over -= 1;
  }
  return widths;
}

/** One row of a table, as high as its highest cell. */
function gridRows(
  cells: readonly (readonly Span[])[],
  widths: readonly number[],
  align: readonly (string | null)[],
  prefix: Prefix,
): TextLine[] {
  const columns = widths.map((width, column) =>
    // Rows have at least eight columns; a narrower cell fits in one.
    rowsOf({ spans: cells[column] ?? [], margin: '' }, Math.max(CELL_MIN, width)),
  );
  const height = Math.max(...columns.map((rows) => rows.length));
  return Array.from({ length: height }, (_, at) => {
    const spans = columns.flatMap((rows, column): Span[] => {
      const row = rows[at] ?? { spans: [], width: 0 };
      const free = Math.max(0, (widths[column] ?? 0) - row.width);
      const before = align[column] === 'right' ? free : align[column] === 'center' ? Math.floor(free / 2) : 0;
      const separator: Span[] = column > 0 ? [['dim', ' │ ']] : [];
      return [...separator, ['plain', ' '.repeat(before)], ...row.spans, ['plain', ' '.repeat(free - before)]];
    });
    return blockLine(prefix, spans);
  });
}
