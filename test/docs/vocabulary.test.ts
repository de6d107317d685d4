/** docs/VOCABULARY.md and docs/ARCHITECTURE.md: the words are those of the log. */
import { expect, it } from 'vitest';
import { fencesOf, proseOf, read } from './documents.ts';

const rowsOf = (section: string): string[] =>
  [...section.matchAll(/^\| `([\w-]+)` *\|/gm)].map(([, name = '']) => name);

it('the vocabulary has one row for each type of entry and no other', () => {
  const unions = read('machines/vocabulary.ts').split(/^export type (?=WireEvent|RuntimeEntry)/m);
  const types = unions.slice(1).flatMap((union) => {
    const [body = ''] = union.split(';\n\n');
    return [...body.matchAll(/(?:\| \(?\{\s*|^\s+)type: '([a-z-]+)'/gm)].map(([, type = '']) => type);
  });
  const [, section = ''] = proseOf('docs/VOCABULARY.md').split('## Entries');
  expect(rowsOf(section).sort()).toEqual([...new Set(types)].sort());
});

it('each word of the vocabulary is one of runchart, or links to a heading of docs/internals', () => {
  const rows = [...proseOf('docs/VOCABULARY.md').matchAll(/^\| .* \| .* \| (.*?) *\|$/gm)].map(
    ([, source = '']) => source,
  );
  const sources = rows.filter((source) => !/^(source|-+)$/.test(source)).flatMap((source) => source.split(', '));
  // test/docs/fences.test.ts follows the links.
  const strays = sources.filter((source) => !/^(runchart|\[[^\]]+\]\(internals\/\w+\.md#[\w-]+\))$/.test(source));
  expect(sources.length).toBeGreaterThan(40);
  expect(strays).toEqual([]);
});

it('the log of one request in the architecture is the one that the first example prints', () => {
  const [, section = ''] = proseOf('docs/ARCHITECTURE.md').split('## The log of one request');
  const printed = fencesOf('README.md')
    .find(({ tag }) => tag === 'quickstart.ts')
    ?.text.split('\n')[1];
  expect(rowsOf(section.split('\n## ')[0] ?? '').join(' ')).toBe(printed);
});
