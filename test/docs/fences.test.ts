/** Checks the documents against the code: fences are parts of executed examples, and links and paths exist. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chatServer, delta, ends } from '../../src/testing/modelSuite/chatServer.ts';
import { proves } from '../support/tier.ts';
import { documents, entries, examples, fencesOf, headingsOf, proseOf, read, regionOf, root } from './documents.ts';

/** They need a model server and a person, servers of tools, or a database, so they are only compiled. */
const NOT_RUN = [
  'chat.ts',
  'first.ts',
  'manyProcesses.ts',
  'mcp.ts',
  'postgres.ts',
  'restate.ts',
  'restatePostgres.ts',
];
/** It needs `node:sqlite`, which the oldest supported Node does not have. */
const LATER_NODE = ['sqlite.ts'];
/** It needs an installed package: test/e2e/install.test.ts runs it in a project. */
const PACKED = ['agentCases.ts'];
/** Lives a hundred lives. */
const LONG = ['simulate.ts'];
/** Guides whose parts of this example are one program. */
const COPIED = [
  ['docs/approvals.md', 'approval.ts'],
  ['docs/chat-pages.md', 'chatHandlers.ts'],
  ['docs/client.md', 'client.ts'],
  ['docs/costs.md', 'costs.ts'],
  ['docs/hooks.md', 'hooks.ts'],
  ['docs/images.md', 'images.ts'],
  ['docs/limits.md', 'retries.ts'],
  ['docs/many-processes.md', 'manyProcesses.ts'],
  ['docs/models.md', 'first.ts'],
  ['docs/models.md', 'quickstart.ts'],
  ['docs/observability.md', 'observability.ts'],
  ['docs/permissions.md', 'permissions.ts'],
  ['docs/server.md', 'server/server.js'],
  ['docs/session.md', 'session.ts'],
  ['docs/stores.md', 'copyConversations.ts'],
  ['docs/stores.md', 'files.ts'],
  ['docs/stores.md', 'sqlite.ts'],
  ['docs/stores.md', 'store.ts'],
  ['docs/stop-steer-queue.md', 'steering.ts'],
  ['docs/structured-answers.md', 'structuredAnswer.ts'],
  ['docs/sub-agents.md', 'sub-agents.ts'],
  ['docs/time-travel.md', 'timeTravel.ts'],
  ['docs/testing.md', 'stories.ts'],
  ['docs/tools.md', 'firstTool.ts'],
] as const;
/** The lines of code without marks of regions. */
const codeOf = (text: string): string[] => text.split('\n').filter((line) => line !== '' && !/^\s*\/\/ #/.test(line));
const fences = documents.flatMap(fencesOf);
const placeOf = ({ document, line, tag }: { document: string; line: number; tag: string }): string =>
  `${document}:${line} ${tag}`;

describe('fences', () => {
  /** A JavaScript fence without a tag is part of a file that the reader writes, for example of a test runner. */
  const quotes = fences.filter(
    ({ language, tag }) => language === 'ts' || language === 'tsx' || (language === 'js' && tag !== ''),
  );

  it('every TypeScript fence names the example and the region it quotes', () => {
    expect(quotes.filter(({ tag }) => !/^[\w-]+(\/[\w-]+)?\.(tsx?|js)#[\w-]+$/.test(tag)).map(placeOf)).toEqual([]);
  });

  it.each(quotes.map((fence) => [placeOf(fence), fence] as const))(
    '%s is that region, letter for letter',
    (_, fence) => {
      const [example = '', region = ''] = fence.tag.split('#');
      expect(fence.text).toBe(regionOf(example, region));
    },
  );

  it('a reader who copies the parts of each of these guides in their order has the whole example', () => {
    for (const [document, example] of COPIED) {
      const parts = fences.filter((fence) => fence.document === document && fence.tag.startsWith(`${example}#`));
      const whole = read(`docs/examples/${example}`).replace(/^\/\*\*[\s\S]*?\*\/\n/, '');
      expect(codeOf(parts.map(({ text }) => text).join('')), document).toEqual(codeOf(whole));
    }
  });

  it('every example is quoted somewhere', () => {
    const quoted = new Set(quotes.map(({ tag }) => tag.split('#')[0]));
    expect(examples.filter((example) => !quoted.has(example))).toEqual([]);
  });
});

describe('examples', () => {
  let place = '';
  const run = examples.filter((example) => ![...NOT_RUN, ...LATER_NODE, ...PACKED].includes(example));
  /** Each example is a separate process, with the sources in place of the package's names. */
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'runchart-examples-'));
    const alias = Object.fromEntries([...entries].map(([name, source]) => [name, join(root, source)]));
    const entryPoints = [...run, 'first.ts'].map((example) => join(root, 'docs/examples', example));
    const outExtension = { '.js': '.mjs' };
    // Packages of the old kind ask for Node's modules by `require`.
    const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
    // Shared code is written once: a file of its own for each example takes six times as long.
    const how = { banner: { js }, outdir: place, outExtension, bundle: true, splitting: true, format: 'esm' } as const;
    await build({ entryPoints, alias, platform: 'node', logLevel: 'silent', ...how });
  });
  afterAll(() => rm(place, { recursive: true, force: true }));

  async function outputOf(example: string, keys = {}): Promise<{ stdout: string; stderr: string }> {
    const outfile = join(place, example.replace(/ts$/, 'mjs'));
    const { PATH = '', SystemRoot = '' } = process.env;
    return promisify(execFile)(process.execPath, [outfile], {
      cwd: place,
      env: { PATH, SystemRoot, TMPDIR: place, ...keys },
    });
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

  it('first.ts, the first example of the README, answers by a server of chat completions, and its second start sends the earlier messages', async () => {
    const server = await chatServer({ chunks: [delta({ content: 'A light one.' }), ends('stop')] });
    const keys = { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: server.baseURL };
    for (let time = 0; time < 2; time++)
      expect(await outputOf('first.ts', keys)).toEqual({ stdout: 'A light one.\n', stderr: '' });
    await server.close();
    const question = { role: 'user', content: 'Do I need a jacket in Lisbon?' };
    const answer = { role: 'assistant', content: 'A light one.' };
    expect(server.requests.map(({ messages }) => messages)).toEqual([[question], [question, answer, question]]);
  });

  it('every output that the documents show is that of an example that is run', () => {
    const shown = fences.filter(({ language, tag }) => language === 'text' && tag !== '');
    expect(shown.filter(({ tag }) => !examples.includes(tag) || NOT_RUN.includes(tag)).map(placeOf)).toEqual([]);
  });
});

const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
/** A heading that occurs again on its page gets a number. */
const anchorsOf = (document: string): string[] =>
  headingsOf(document)
    .map(slugOf)
    .map((slug, index, slugs) => {
      const count = slugs.slice(0, index).filter((other) => other === slug).length;
      return count === 0 ? slug : `${slug}-${count}`;
    });

describe('the targets of the documents', () => {
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

  it('the list of all pages names each page', () => {
    const lists = ['docs/README.md', 'docs/reference/README.md'];
    const listed = lists.flatMap((list) =>
      [...proseOf(list).matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, page]) => join(dirname(list), page ?? '')),
    );
    const pages = documents.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');
    expect(pages.filter((page) => !listed.includes(page))).toEqual([]);
  });

  it('the README has at most 100 lines, and its first example begins on the first screen', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(101);
    expect(fencesOf('README.md').find(({ language }) => language === 'ts')?.line).toBeLessThan(25);
  });
});
