/** A kind of entry is declared once: the compiler names each place that a new kind needs, and no other place lists all kinds. */
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseSync } from 'vite';
import { expect, it } from 'vitest';
import { entryKinds } from '../../machines/log/entryKinds.ts';
import { proves } from '../support/tier.ts';
import { read, root } from './documents.ts';

/** Besides its type: its fields with a sample, its reading for views, its words. */
const TABLES = ['machines/log/entryKinds.ts', 'src/projector/readEntry.ts', 'src/words/entryWords.ts'];
const kinds: ReadonlySet<string> = new Set(Object.keys(entryKinds));

const files = ['machines', 'src', 'inspector']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name))))
  .filter((file) => /\.tsx?$/.test(file));

/** The names that an object, a list or a `switch` of the syntax enumerates, one set for each. */
function* enumerated(node: unknown): Generator<Set<string>> {
  if (typeof node !== 'object' || node === null) return;
  const { type, properties, elements, cases } = node as { [key: string]: readonly { [key: string]: unknown }[] };
  const textOf = (value: unknown): string => {
    const { name, value: text } = Object(value) as { name?: unknown; value?: unknown };
    return String(text ?? name ?? '');
  };
  if (String(type) === 'ObjectExpression') yield new Set(properties?.map(({ key }) => textOf(key)));
  if (String(type) === 'ArrayExpression') yield new Set(elements?.map(textOf));
  if (String(type) === 'SwitchStatement') yield new Set(cases?.map(({ test }) => textOf(test)));
  for (const child of Object.values(node)) yield* enumerated(child);
}

it('three tables name every kind of entry, and nothing else names most kinds', () => {
  const counts = files.map((file) => {
    const sets = [...enumerated(parseSync(file, read(file)).program)];
    return [file, Math.max(0, ...sets.map((names) => [...names].filter((name) => kinds.has(name)).length))] as const;
  });
  expect(counts.filter(([, count]) => count === kinds.size).map(([file]) => file)).toEqual(TABLES);
  // The largest that remains is a fold, which names the kinds that it acts on.
  const others = counts.filter(([file]) => !TABLES.includes(file)).filter(([, count]) => count > kinds.size * 0.7);
  expect(others).toEqual([]);
});

it.runIf(proves)('a new kind of entry changes four files, and the compiler names the other three', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'runchart-kind-'));
  try {
    for (const name of ['machines', 'src', 'inspector', 'tsconfig.json'])
      await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    const vocabulary = read('machines/vocabulary.ts');
    const grown = vocabulary.replace('export type RuntimeEntry =', "$&\n  | { type: 'example-kind'; value: number }");
    expect(grown).not.toBe(vocabulary);
    await writeFile(join(folder, 'machines/vocabulary.ts'), grown);
    const types = ['node', 'vite/client'];
    const compilerOptions = {
      module: 'ESNext',
      moduleResolution: 'bundler',
      rewriteRelativeImportExtensions: false,
      types,
    };
    const config = { extends: './tsconfig.json', compilerOptions, include: ['machines', 'src', 'inspector'] };
    await writeFile(join(folder, 'tsconfig.kind.json'), JSON.stringify(config));
    const errors = await filesWithErrors(folder, 'tsconfig.kind.json');
    expect([...new Set(errors)].sort()).toEqual(TABLES);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** The files with an error. */
const filesWithErrors = (folder: string, config: string): Promise<string[]> =>
  new Promise((resolve) => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    execFile(process.execPath, [tsc, '--noEmit', '-p', config], { cwd: folder }, (_, output) =>
      resolve([...output.matchAll(/^([^\s(]+)\(\d+,\d+\): error/gm)].map(([, file = '']) => file)),
    );
  });
