/** Compares the tables of docs/VOCABULARY.md and docs/ARCHITECTURE.md with the entry types and a printed log. */
import { describe, expect, it } from 'vitest';
import { type EntryKind, entryKinds } from '../../machines/log/entryKinds.ts';
import { fencesOf, proseOf, read } from './documents.ts';
import { expectTables, sentenceOf } from './tables.ts';

const rowsOf = (section: string): string[] =>
  [...section.matchAll(/^\| `([\w-]+)` *\|/gm)].map(([, name = '']) => name);

/** The kinds of `machines/vocabulary.ts`, each with the comment before it. */
function declaredKinds(): [kind: string, sentence: string][] {
  const unions = read('machines/vocabulary.ts')
    .split(/^export type (?=WireEvent|RuntimeEntry|NewEntry)/m)
    .slice(1, 3);
  const declared = /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?\| \(?\{\s*type: '([a-z-]+)'/g;
  return unions.flatMap((union) =>
    [...union.matchAll(declared)].map(([, comment = '', kind = '']) => [kind, sentenceOf(comment)] as [string, string]),
  );
}

describe('the table of entries in docs/VOCABULARY.md', () => {
  const kinds = declaredKinds();

  it('has a row for each kind, with its fields and the comment of its type', async () => {
    expect(kinds.map(([kind]) => kind).sort()).toEqual(Object.keys(entryKinds).sort());
    const rows = kinds.map(([kind, sentence]) => {
      const fields = Object.entries<{ isOptional?: true }>(entryKinds[kind as EntryKind].fields);
      return [
        `\`${kind}\``,
        fields.map(([name, { isOptional }]) => `\`${name}${isOptional ? '?' : ''}\``).join(', '),
        sentence,
      ];
    });
    await expectTables('docs/VOCABULARY.md', { entries: [['type', 'fields', 'meaning'], ...rows] });
  });

  it('every kind has a sentence', () => {
    expect(kinds.filter(([, sentence]) => !/^[A-Z].*\.$/.test(sentence))).toEqual([]);
  });
});

it('each word of the vocabulary is one of runchart, or links to a heading of docs/internals', () => {
  const [words = ''] = proseOf('docs/VOCABULARY.md').split('## Entries');
  const rows = [...words.matchAll(/^\| .* \| .* \| (.*?) *\|$/gm)].map(([, source = '']) => source);
  const sources = rows.filter((source) => !/^(source|-+)$/.test(source)).flatMap((source) => source.split(', '));
  // test/docs/fences.test.ts follows the links.
  const strays = sources.filter((source) => !/^(runchart|\[[^\]]+\]\(internals\/\w+\.md#[\w-]+\))$/.test(source));
  expect(sources.length).toBeGreaterThan(40);
  expect(strays).toEqual([]);
});

it('the log of one request in the architecture is the one that the first example prints', () => {
  const [, section = ''] = proseOf('docs/ARCHITECTURE.md').split('## The log of one request');
  const printed = fencesOf('docs/models.md')
    .find(({ tag }) => tag === 'quickstart.ts')
    ?.text.split('\n')[1];
  expect(rowsOf(section.split('\n## ')[0] ?? '').join(' ')).toBe(printed);
});
