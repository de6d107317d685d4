/** The documents say what the code does: fences are parts of examples that run, links and paths lead somewhere. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proves } from '../support/tier.ts';
import { documents, entries, examples, fencesOf, headingsOf, proseOf, read, regionOf, root } from './documents.ts';

/** They want a model server and a person, or servers of tools; they are compiled with the rest and not run. */
const NOT_RUN = ['chat.ts', 'mcp.ts'];
/** Needs a package that is found from where it stands: test/e2e/install.test.ts runs it in a project. */
const PACKED = ['agentCases.ts'];
/** Lives a hundred lives. */
const LONG = ['simulate.ts'];
const fences = documents.flatMap(fencesOf);
const told = ({ document, line, tag }: { document: string; line: number; tag: string }): string =>
  `${document}:${line} ${tag}`;

describe('fences', () => {
  const quotes = fences.filter(({ language }) => language === 'ts');

  it('every TypeScript fence names the example and the region it quotes', () => {
    expect(quotes.filter(({ tag }) => !/^[\w-]+\.ts#[\w-]+$/.test(tag)).map(told)).toEqual([]);
  });

  it.each(quotes.map((fence) => [told(fence), fence] as const))('%s is that region, letter for letter', (_, fence) => {
    const [example = '', region = ''] = fence.tag.split('#');
    expect(fence.text).toBe(regionOf(example, region));
  });

  it('every example is quoted somewhere', () => {
    const quoted = new Set(quotes.map(({ tag }) => tag.split('#')[0]));
    expect(examples.filter((example) => !quoted.has(example))).toEqual([]);
  });
});

describe('examples', () => {
  let place = '';
  const run = examples.filter((example) => !NOT_RUN.includes(example) && !PACKED.includes(example));
  /** Each is a process of its own, from the sources behind the names that a reader imports. */
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'runchart-examples-'));
    const alias = Object.fromEntries([...entries].map(([name, source]) => [name, join(root, source)]));
    const entryPoints = run.map((example) => join(root, 'docs/examples', example));
    const outExtension = { '.js': '.mjs' };
    // Packages of the old kind ask for Node's modules by `require`.
    const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
    const how = { banner: { js }, outdir: place, outExtension, bundle: true, platform: 'node', format: 'esm' } as const;
    await build({ entryPoints, alias, logLevel: 'silent', ...how });
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  async function outputOf(example: string): Promise<{ stdout: string; stderr: string }> {
    const outfile = join(place, example.replace(/ts$/, 'mjs'));
    const { PATH = '', SystemRoot = '' } = process.env;
    return promisify(execFile)(process.execPath, [outfile], { cwd: place, env: { PATH, SystemRoot, TMPDIR: place } });
  }

  it.each(run.filter((example) => proves || !LONG.includes(example)))(
    '%s prints what the documents say',
    async (name) => {
      const printed = fences.filter(({ language, tag }) => language === 'text' && tag === name);
      expect(printed.length, `a fence \`\`\`text ${name}`).toBeGreaterThan(0);
      const { stdout, stderr } = await outputOf(name);
      expect(stderr).toBe('');
      for (const { text } of printed) expect(stdout).toBe(text);
    },
  );

  it('every output that the documents show is that of an example that is run', () => {
    const shown = fences.filter(({ language, tag }) => language === 'text' && tag !== '');
    expect(shown.filter(({ tag }) => !examples.includes(tag) || NOT_RUN.includes(tag)).map(told)).toEqual([]);
  });
});

const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
const anchorsOf = (document: string): string[] => headingsOf(document).map(slugOf);

describe('what the documents point at', () => {
  it('every relative link leads to a file, and to a heading where it names one', () => {
    const broken = documents.flatMap((document) =>
      [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) => {
        if (/^https?:/.test(target)) return [];
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? document : join(dirname(document), path);
        if (!existsSync(join(root, file))) return [`${document}: ${target}`];
        const found = anchor === undefined || (file.endsWith('.md') && anchorsOf(file).includes(anchor));
        return found ? [] : [`${document}: ${target}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  it('every path of the repository that is named exists', () => {
    const missing = documents.flatMap((document) =>
      [...proseOf(document).matchAll(/`((?:src|machines|test|docs)\/[\w./-]*)`/g)]
        .filter(([, path = '']) => !existsSync(join(root, path)))
        .map(([, path]) => `${document}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it('every script that is named is one of the package', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = documents.flatMap((document) => [...read(document).matchAll(/npm run ([\w:-]+)/g)]);
    expect(named.map(([, script]) => script).filter((script) => !script || !(script in scripts))).toEqual([]);
  });

  it('the README lists the entries of the package, each once', () => {
    const listed = [...proseOf('README.md').matchAll(/^\| `(runchart[\w/-]*)` *\|/gm)].map(([, name]) => name);
    expect(listed.sort()).toEqual([...entries.keys()].sort());
  });

  it('the README has 100 to 150 lines, and its first example begins on the first screen', () => {
    expect(read('README.md').split('\n').length).toBeGreaterThan(100);
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(151);
    expect(fencesOf('README.md').find(({ language }) => language === 'ts')?.line).toBeLessThan(25);
  });
});
