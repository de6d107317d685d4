/**
 * Tables of a page that are made from declarations in the sources. Invariant: a table is between two comments of its
 * page. A sentence about a declaration is that declaration's comment.
 */
import { join } from 'node:path';
import { parseSync } from 'vite';
import { expect } from 'vitest';
import { read, root } from './documents.ts';
import { type Cells, tableOf } from './markdownTable.ts';

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
  const message = `${page} has tables made from declarations; \`npx vitest run test/docs -u\` writes them`;
  await expect(text, message).toMatchFileSnapshot(join(root, page));
}

/** The text of a comment, on one line. */
export const sentenceOf = (comment: string): string =>
  comment
    .replace(/^\s*\*( |$)/gm, '')
    .replace(/\s+/g, ' ')
    .trim();

export interface Comment {
  /** The names of the declaration, from the constant or the type down to the property. */
  readonly path: readonly string[];
  readonly sentence: string;
}

/** The parts of a file's syntax that matter here. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly key?: { readonly name?: string; readonly value?: string };
  readonly id?: { readonly name?: string } | null;
}

/** The comments of the properties of a file, in their order. */
export function commentsIn(file: string): Comment[] {
  const code = read(file);
  const { program, comments } = parseSync(file, code);
  /** The comments by the position of the code after them. */
  const sentences = new Map(
    comments
      .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
      .map(({ value, end }) => [code.length - code.slice(end).trimStart().length, sentenceOf(` ${value}`)] as const),
  );
  const found: Comment[] = [];
  const visit = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, start, key, id } = value as Node;
    const name = key?.name ?? key?.value ?? (typeof type === 'string' ? id?.name : undefined);
    const own = name === undefined ? path : [...path, name];
    const sentence = name === undefined ? undefined : sentences.get(start);
    if (sentence !== undefined) found.push({ path: own, sentence });
    for (const child of Object.values(value)) visit(child, own);
  };
  visit(program.body, []);
  return found;
}
