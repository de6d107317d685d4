/**
 * The house rules that no compiler holds: who may import whom, how long a file and a function may be, and which words
 * are refused. Rule: no list of exceptions.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const filesUnder = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
const machines = filesUnder('machines');
const src = filesUnder('src');
const tests = filesUnder('test');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** What a file imports: paths from the root for its own, names for packages. */
function importsOf(file: string): string[] {
  const found = read(file).matchAll(
    /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g,
  );
  return [...found].map(([, stated, dynamic]) => {
    const name = stated ?? dynamic ?? '';
    return name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name;
  });
}

const NODE_ONLY = /^src\/(node\.ts|cli\/|stores\/jsonl\/|tools\/coding\/|permissions\/|hooks\/|testing\/)/;
/** Which packages a file may name, by the first rule that fits it. */
const PACKAGES: [RegExp, readonly RegExp[]][] = [
  [/^machines\//, [/^xstate$/]],
  [/^src\/models\/openai\/(openai|vendorClient)\./, [/^openai(\/|$)/]],
  [/^src\/models\/prices/, [/^@pydantic\/genai-prices$/]],
  [/^src\/models\/openai\/eventStream/, [/^eventsource-parser$/]],
  [/^src\/schema\.ts$/, [/^zod$/]],
  [/^src\/tools\/coding\//, [/^node:/, /^zod$/, /^tinyglobby$/]],
  [/^src\/permissions\//, [/^node:/, /^unbash$/, /^ignore$/]],
  [/^src\/(node\.ts|stores\/jsonl\/|hooks\/)/, [/^node:/]],
  [/^src\/cli\//, [/^node:/, /^commander$/, /^picocolors$/, /^zod$/, /^xstate$/]],
  [/^src\/testing\//, [/^@xstate\/graph$/, /^xstate$/, /^node:/]],
  [/^src\//, [/^xstate$/, /^rxjs$/, /^@standard-schema\/spec$/]],
];

/** What a view is made of is a leaf with a door of its own: views bring no chart and no xstate. */
const DOORS = /^machines\/(index|internal|verbs|vocabulary|log\/earlierMessages)\.ts$/;

describe('layers', () => {
  it('the charts import xstate and their siblings only', () => {
    const strays = machines.flatMap((file) =>
      importsOf(file)
        .filter((name) => name !== 'xstate' && !name.startsWith('machines/'))
        .map((name) => `${file} -> ${name}`),
    );
    expect(strays).toEqual([]);
  });

  it('each file names only the packages of its layer', () => {
    const strays = [...machines, ...src].flatMap((file) => {
      const allowed = PACKAGES.find(([place]) => place.test(file))?.[1] ?? [];
      return importsOf(file)
        .filter((name) => !/^(src|machines)\//.test(name))
        .filter((name) => !allowed.some((rule) => rule.test(name)))
        .map((name) => `${file} -> ${name}`);
    });
    expect(strays).toEqual([]);
  });

  it('the library imports neither tests nor docs, and outside machines/ only its door', () => {
    const strays = src.flatMap((file) =>
      importsOf(file)
        .filter((name) => /^(test|docs)\//.test(name) || (/^machines\//.test(name) && !DOORS.test(name)))
        .map((name) => `${file} -> ${name}`),
    );
    expect(strays).toEqual([]);
  });

  it('what the core entry reaches touches no file that needs Node', () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const name of importsOf(file)) if (/^(src|machines)\//.test(name)) visit(name);
    };
    visit('src/index.ts');
    expect([...reached].filter((file) => NODE_ONLY.test(file))).toEqual([]);
  });

  it('the projector sees log entries only', () => {
    const strays = src
      .filter((file) => file.startsWith('src/projector/'))
      .flatMap((file) =>
        importsOf(file).filter((name) => name.startsWith('src/') && !/^src\/(projector\/|live\.ts$)/.test(name)),
      );
    expect(strays).toEqual([]);
  });
});

const limitOf = (file: string): number => (/\.machine\.ts$/.test(file) || file.startsWith('test/') ? 500 : 400);

describe('budgets', () => {
  it('every file keeps its number of lines', () => {
    const over = [...machines, ...src, ...tests]
      .map((file) => ({ file, lines: read(file).split('\n').length - 1 }))
      .filter(({ file, lines }) => lines > limitOf(file))
      .map(({ file, lines }) => `${file} has ${lines} lines, ${limitOf(file)} are allowed`);
    expect(over).toEqual([]);
  });

  it('every function keeps to 60 lines', () => {
    const biome = join(root, 'node_modules/.bin/biome');
    const rule = '--only=complexity/noExcessiveLinesPerFunction';
    const lint = (): string => execFileSync(biome, ['lint', 'machines', 'src', rule], { cwd: root, encoding: 'utf8' });
    expect(read('biome.json')).toContain('"maxLines": 60');
    expect(lint).not.toThrow();
  });

  it('every source file begins with a header that says what it is', () => {
    const bare = [...machines, ...src].filter((file) => !/^(#!.*\n)?\/\*\*/.test(read(file)));
    expect(bare).toEqual([]);
  });
});

describe('words', () => {
  it('no name says Manager, Helper or Util', () => {
    const strays = [...machines, ...src].flatMap((file) =>
      [...read(file).matchAll(/\b(?:class|interface|type|function|const)\s+(\w*(?:Manager|Helper|Util)s?\w*)/g)].map(
        ([, name]) => `${file}: ${name}`,
      ),
    );
    expect(strays).toEqual([]);
  });

  it('charts and folds read no clock, no randomness and no surroundings', () => {
    const pure = [...machines, ...src.filter((file) => file.startsWith('src/projector/'))];
    const strays = pure.filter((file) =>
      /\b(Date\.now|new Date\(|Math\.random|randomUUID|process\.|setTimeout|setInterval|performance\.)/.test(
        read(file),
      ),
    );
    expect(strays).toEqual([]);
  });
});
