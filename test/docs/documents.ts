/**
 * The written documents, for tests. Invariant: everything is read from the files, and nothing is listed by hand. The
 * opening line of a code fence names its example and part: ```ts quickstart.ts#region, or ```text quickstart.ts for the
 * output of the example.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');
export const read = (file: string): string => readFileSync(join(root, file), 'utf8');

const namesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(root, folder)).filter((name) => name.endsWith(ending));

/** Paths from the root. */
export const documents = [
  ...['README.md', 'CHANGELOG.md'],
  ...namesIn('docs', '.md').map((name) => `docs/${name}`),
  ...namesIn('docs/concepts', '.md').map((name) => `docs/concepts/${name}`),
  ...namesIn('docs/internals', '.md').map((name) => `docs/internals/${name}`),
  ...namesIn('docs/reference', '.md').map((name) => `docs/reference/${name}`),
].sort();
/** Names within docs/examples. */
export const examples = namesIn('docs/examples', '.ts').sort();

export interface Fence {
  document: string;
  line: number;
  language: string;
  /** The text after the language. */
  tag: string;
  text: string;
}

export function fencesOf(document: string): Fence[] {
  const fences: Fence[] = [];
  let open: (Fence & { marks: string }) | undefined;
  for (const [index, line] of read(document).split('\n').entries()) {
    if (open && line.trimEnd() === open.marks) {
      fences.push(open);
      open = undefined;
    } else if (open) {
      open.text += `${line}\n`;
    } else {
      const [, marks, language, tag] = /^(`{3,})(\w*)\s*(.*?)\s*$/.exec(line) ?? [];
      if (marks) open = { document, line: index + 1, language: language ?? '', tag: tag ?? '', text: '', marks };
    }
  }
  if (open) throw new Error(`${document}:${open.line} opens a fence that nothing closes`);
  return fences;
}

/** The lines between `// #region name` and its end, moved to the left edge. */
export function regionOf(example: string, name: string): string {
  const lines = read(`docs/examples/${example}`).split('\n');
  const first = lines.findIndex((line) => line.trim() === `// #region ${name}`);
  if (first < 0) throw new Error(`docs/examples/${example} has no region ${name}`);
  const length = lines.slice(first).findIndex((line) => line.trim() === '// #endregion');
  if (length < 0) throw new Error(`the region ${name} of docs/examples/${example} has no end`);
  const inside = lines.slice(first + 1, first + length);
  const indents = inside.filter((line) => line !== '').map((line) => line.length - line.trimStart().length);
  const edge = Math.min(...indents);
  return inside.map((line) => `${line.slice(edge)}\n`).join('');
}

/** The document without its fences: prose, tables and links. */
export function proseOf(document: string): string {
  const lines = read(document).split('\n');
  for (const { line, text } of fencesOf(document)) lines.fill('', line - 1, line + text.split('\n').length);
  return lines.join('\n');
}

export const headingsOf = (document: string): string[] =>
  [...proseOf(document).matchAll(/^#+\s+(.*)$/gm)].map(([, heading = '']) => heading);

/** The entries of the package by the name that is imported, and the sources they are built from. */
export const entries: ReadonlyMap<string, string> = new Map(
  Object.entries((JSON.parse(read('package.json')) as { exports: Record<string, unknown> }).exports).flatMap(
    ([subpath, target]) => {
      const built = typeof target === 'string' ? target : (target as { default: string }).default;
      const [, source] = /^\.\/dist\/(.*)\.js$/.exec(built) ?? [];
      return source === undefined ? [] : [[`runchart${subpath.slice(1)}`, `${source}.ts`] as const];
    },
  ),
);
