/** docs/internals: each id has one row in the key of ids, and each citation of a page names one of its headings. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headingsOf, proseOf, read, root } from './documents.ts';

const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => /\.(ts|tsx|mjs)$/.test(file));
/** This file names ids and texts in order to look for them. */
const files = ['machines', 'src', 'inspector', 'test']
  .flatMap(filesIn)
  .filter((file) => file !== 'test/docs/internals.test.ts');

const ID =
  /(?<![\w-])(?:S00\d-\d\d|H-\d{3}|(?:CYC|RUN|TOOL|RES|CKPT|TRC|BED|LOOP|INV)-\d+|B\d\d|I[1-9]\d?)(?![\w-]*\w)/g;
const idsIn = (text: string): string[] => text.match(ID) ?? [];
const key = proseOf('docs/internals/ids.md');
const rows = [...key.matchAll(/^\| ([A-Z][\w-]*\d) +\| (.+?) +\|$/gm)];

/** The comments of a file, each on one line; the clauses of test/support/documentEdges.ts count as comments. */
const commentsOf = (file: string): string[] =>
  (read(file).match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$|'docs\/internals[^']*'/gm) ?? []).map((comment) =>
    comment.replace(/\n\s*\*\s?/g, ' '),
  );
const comments = files.flatMap((file) => commentsOf(file).map((text) => ({ file, text })));

describe('docs/internals/ids.md', () => {
  const listed = rows.map(([, id = '']) => id);

  it('has one row for each id of the sources and tests', () => {
    const used = new Set(files.flatMap((file) => idsIn(read(file))));
    expect(used.size).toBeGreaterThan(300);
    expect([...used].filter((id) => !listed.includes(id)).sort()).toEqual([]);
  });

  it('has no row for an id that occurs nowhere, and no second row for any', () => {
    const used = new Set(files.flatMap((file) => idsIn(read(file))));
    expect(listed.filter((id, index) => !used.has(id) || listed.indexOf(id) !== index)).toEqual([]);
  });

  it('has its rows in the order of their numbers', () => {
    const numberOf = (id: string): number => Number(id.replace(/^S00/, '').replace(/\D/g, ''));
    const familyOf = (id: string): string => id.replace(/^(S00\d)-.*$/, '$1').replace(/-?\d+$/, '');
    const strays = listed.filter((id, index) => {
      const before = listed[index - 1];
      return before !== undefined && familyOf(before) === familyOf(id) && numberOf(before) >= numberOf(id);
    });
    expect(strays).toEqual([]);
  });

  it('describes each id in one sentence of at most 25 words', () => {
    const long = rows.filter(([, , text = '']) => !/^[A-Z`0-9].*\.$/.test(text) || text.split(/\s+/).length > 25);
    expect(long.map(([, id]) => id)).toEqual([]);
  });
});

describe('citations', () => {
  const citations = comments.flatMap(({ file, text }) =>
    [...text.matchAll(/docs\/(internals\/\w+\.md)(?:, ([^);:.*]*(?:\.\d[^);:.*]*)*))?/g)].map(
      ([, page = '', clauses]) => ({
        file,
        page: `docs/${page}`,
        clauses: clauses?.trim().split(/, | and /) ?? [],
      }),
    ),
  );

  it('each citation of a page of docs/internals names a heading of that page', () => {
    const strays = citations.flatMap(({ file, page, clauses }) =>
      clauses
        .filter((clause) => !headingsOf(page).some((heading) => heading === clause || heading.split(' ')[0] === clause))
        .map((clause) => `${file}: ${page}, ${clause}`),
    );
    expect(citations.length).toBeGreaterThan(100);
    expect(strays).toEqual([]);
  });

  it('no comment cites a text that does not ship', () => {
    const unshipped =
      /run-lifecycle|request-cycle-model|request-trace|conversation-requirements|agent-loop-contract|semantics \d|hostile-inputs/;
    expect(comments.filter(({ text }) => unshipped.test(text)).map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
  });

  it('each clause that a test name cites is a heading or a state of the page that replaces its text', () => {
    const pages = { 'run-lifecycle': 'lifecycle', 'request-cycle-model': 'model' };
    const strays = Object.entries(pages).flatMap(([text, page]) => {
      const names = headingsOf(`docs/internals/${page}.md`);
      const states = [...proseOf(`docs/internals/${page}.md`).matchAll(/^\| ((?:`\w+`(?:, )?)+) /gm)].flatMap(
        ([, cell = '']) => cell.match(/\w+/g) ?? [],
      );
      const cited = files
        .filter((file) => file.startsWith('test/'))
        .flatMap((file) => [...read(file).matchAll(new RegExp(`['\`]${text}, ([^:'\`]+):`, 'g'))])
        .flatMap(([, clauses = '']) => clauses.split(/, | → /));
      expect(cited.length).toBeGreaterThan(1);
      const renamed = (clause: string): boolean => key.includes(`| \`${text}, ${clause}\` `);
      return cited.filter((clause) => clause !== '[*]' && ![...names, ...states].includes(clause) && !renamed(clause));
    });
    expect(strays).toEqual([]);
  });

  it('each section that a test name cites by its number has a row in the key of ids', () => {
    const cited = files.flatMap((file) => [...read(file).matchAll(/['`]semantics ([\d., and]+)/g)]);
    const sections = cited.flatMap(([, numbers = '']) => numbers.match(/\d+(?:\.\d)?/g) ?? []);
    expect(sections.length).toBeGreaterThan(10);
    const named = sections.map((section) => section.replace(/\..*/, ''));
    expect(named.filter((section) => !key.includes(`| \`semantics ${section}\` `))).toEqual([]);
  });
});
