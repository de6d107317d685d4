/** The documents where they are read: the package, the site and llms.txt. test/docs/fences.test.ts checks the repository. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documents, proseOf, read, root } from './documents.ts';

const linksOf = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^(https?:|#)/.test(target));
/** The file of a relative link, as a path from the root. */
const fileOf = (page: string, target: string): string => normalize(join(dirname(page), target.split('#')[0] ?? ''));

describe('the package', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  /** npm adds these to every package. */
  const published = [...files, 'README.md', 'LICENSE', 'package.json'];

  it('every link of a published page leads to a published file', () => {
    const links = documents.flatMap((page) =>
      linksOf(proseOf(page)).map((target) => [page, fileOf(page, target)] as const),
    );
    const dead = links.filter(
      ([, file]) =>
        !published.some((place) => file === place || file.startsWith(`${place}/`)) || !existsSync(join(root, file)),
    );
    expect(dead).toEqual([]);
    expect(links.length).toBeGreaterThan(600);
  });
});

describe('llms.txt', () => {
  const firstSentence = (page: string): string => {
    const paragraph = proseOf(page)
      .split(/\n{2,}/)
      .find((block) => /^[A-Z`]/.test(block));
    const text = (paragraph ?? '').replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/\s+/g, ' ');
    return /^.*?\.(?= |$)/.exec(text)?.[0] ?? text;
  };
  const titleOf = (page: string): string => /^# (.+)$/m.exec(read(page))?.[1] ?? page;
  const lineOf = (page: string): string => `- [${titleOf(page)}](${page}): ${firstSentence(page)}`;

  it('lists every page of docs with its first sentence, in the order of the list of all pages', async () => {
    const [, intro = ''] = /^# runchart\n\n(.+)$/m.exec(read('README.md')) ?? [];
    const listed = new Set<string>();
    const sections = read('docs/README.md')
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const pages = linksOf(section)
          .map((target) => fileOf('docs/README.md', target))
          .filter((page) => page.endsWith('.md') && !listed.has(page) && listed.add(page));
        return `## ${section.split('\n')[0]}\n\n${pages.map(lineOf).join('\n')}`;
      });
    const reference = documents.filter((page) => page.startsWith('docs/reference/') && !listed.has(page));
    const parts = [
      '# runchart',
      `> ${intro}`,
      `- [README](README.md): the first example, and the entries of the package.`,
      ...sections,
      `## Reference of each entry\n\n${reference.map(lineOf).join('\n')}`,
    ];
    await expect(`${parts.join('\n\n')}\n`).toMatchFileSnapshot(join(root, 'llms.txt'));
  });
});

describe('the site', () => {
  let place = '';
  let pages: string[] = [];
  beforeAll(async () => {
    place = await mkdtemp(join(tmpdir(), 'runchart-site-'));
    await promisify(execFile)(process.execPath, [join(root, 'site/preparePages.mjs'), place]);
    pages = readdirSync(place, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.md') && !name.startsWith('public/'));
  });
  afterAll(() => rm(place, { recursive: true, force: true }));
  const textOf = (page: string): string =>
    readFileSync(join(place, page), 'utf8').replaceAll(/^`{3,}[\s\S]*?^`{3,}$/gm, '');

  it('every document is a page of the site', () => {
    const pageOf = (document: string): string => document.replace(/README\.md$/, 'index.md');
    expect(documents.filter((document) => !pages.includes(pageOf(document)))).toEqual([]);
  });

  it('every link of a page of the site leads to a page or a file of the site', () => {
    const dead = pages.flatMap((page) =>
      linksOf(textOf(page))
        .filter((target) => !existsSync(join(place, fileOf(page, target))))
        .map((target) => `${page}: ${target}`),
    );
    expect(dead).toEqual([]);
  });

  it('llms-full.txt contains each page that llms.txt lists, whole and once', () => {
    const full = readFileSync(join(place, 'public/llms-full.txt'), 'utf8');
    const listed = linksOf(read('llms.txt'));
    expect(listed.length).toBeGreaterThan(50);
    expect(listed.filter((page) => full.split(read(page)).length !== 2)).toEqual([]);
  });
});
