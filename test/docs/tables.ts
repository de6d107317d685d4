/**
 * Tables of a page that are made from declarations in the sources. Rule: a table stands between two comments of its page, and a
 * sentence about a declaration is the comment of that declaration.
 */
import { join } from 'node:path';
import { expect } from 'vitest';
import { read, root } from './documents.ts';

export type Cells = readonly string[];

/** A pipe inside a cell would end it. */
const cellText = (text: string): string => text.replaceAll('|', '\\|');

function tableOf([head, ...rows]: readonly Cells[]): string {
  const lines = [head ?? [], ...rows].map((row) => row.map(cellText));
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(3, ...lines.map((line) => [...(line[column] ?? '')].length)),
  );
  const lineOf = (cells: Cells, pad: string): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width, pad)).join(' | ')} |`;
  const [first = [], ...others] = lines;
  return [lineOf(first, ' '), lineOf([], '-'), ...others.map((line) => lineOf(line, ' '))].join('\n');
}

/** Compares the tables of a page with their rows; `-u` writes them. The first row is the head. */
export async function expectTables(page: string, tables: { readonly [name: string]: readonly Cells[] }): Promise<void> {
  let text = read(page);
  for (const [name, rows] of Object.entries(tables)) {
    const begin = `<!-- table: ${name} -->`;
    const end = '<!-- end of table -->';
    const [before, after] = text.split(begin);
    if (before === undefined || after === undefined) throw new Error(`${page} has no ${begin}`);
    text = `${before}${begin}\n\n${tableOf(rows)}\n\n${after.slice(after.indexOf(end))}`;
  }
  await expect(text).toMatchFileSnapshot(join(root, page));
}

/** The text of a comment, on one line. */
export const sentenceOf = (comment: string): string =>
  comment
    .replace(/^\s*\*( |$)/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
