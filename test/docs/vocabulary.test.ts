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

it('the vocabulary quotes the five documents and nothing else', () => {
  const known = ['request-cycle-model', 'run-lifecycle', 'request-trace', 'conversation-requirements'];
  const rows = [...proseOf('docs/VOCABULARY.md').matchAll(/^\| .* \| .* \| (.*?) *\|$/gm)].map(
    ([, source = '']) => source,
  );
  const sources = rows.filter((source) => !/^(source|-+)$/.test(source)).flatMap((source) => source.split('; '));
  const strays = sources.filter((source) => {
    const [document = '', clause] = source.split(', ');
    return source !== 'runchart' && !([...known, 'agent-loop-contract'].includes(document) && clause);
  });
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
