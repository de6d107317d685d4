/** Markdown as lines: whole and in pieces, in colours, at narrow widths. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MarkdownStream } from '../../../src/cli/formatted/markdownStream.ts';
import { rowsOf, rowText, type TextLine, widthOf } from '../../../src/cli/interactive/textRows.ts';

const textsOf = (lines: readonly TextLine[], width: number): string[] =>
  lines.flatMap((line) => rowsOf(line, width).map((row) => rowText(row).trimEnd()));

function shown(source: string, width = 60): TextLine[] {
  const stream = new MarkdownStream(() => width);
  return [...stream.push(source), ...stream.end()];
}
const texts = (source: string, width = 60): string[] => textsOf(shown(source, width), width);
const styled = (source: string): string[] =>
  shown(source).flatMap(({ spans }) =>
    spans.slice(1).flatMap(([style, text]) => (style === 'plain' ? [] : [`${style} ${text}`])),
  );

describe('blocks', () => {
  test.for<[string, string, string[]]>([
    ['a heading and a paragraph', '# Title\n\nSome *text* with `code`.\n', ['  Title', '', '  Some text with code.']],
    ['lines of a paragraph stay lines', 'one\ntwo', ['  one', '  two']],
    [
      'lists',
      '- a\n- b\n  1. c\n  2. d\n\n3) e\n- [x] f',
      ['  • a', '  • b', '    1. c', '    2. d', '', '  3. e', '  • [x] f'],
    ],
    ['a list that counts from zero', '0. a\n1. b\n2. c', ['  0. a', '  1. b', '  2. c']],
    ['the numbers of a list are those of the source', '1. a\n1. b\n1. c', ['  1. a', '  1. b', '  1. c']],
    ['a quote', '> a\n> > b', ['  │ a', '  │ │ b']],
    [
      'code keeps its lines and its indentation',
      '```ts\nif (a) {\n    b();\n\n}\n```\nend',
      ['    if (a) {', '        b();', '', '    }', '  end'],
    ],
    [
      'code in a list',
      '- a\n\n  ```\n  x\n  ```\n- b',
      ['  • a', '', '      x', '', '  • b'].filter((_, at) => at !== 3),
    ],
    [
      'a link shows where it leads',
      '[good](https://evil) <https://x.y> https://a.b ![](i.png)',
      ['  good (https://evil) https://x.y https://a.b (i.png)'],
    ],
    [
      'a link whose text is its address shows it once, and one whose text only begins its address shows both',
      '[x.y](http://x.y) [a@x.y](mailto:a@x.y) [x.y](http://x.y.z) [http://x.y](http://x.y/z)',
      ['  x.y a@x.y x.y (http://x.y.z) http://x.y (http://x.y/z)'],
    ],
    [
      'HTML and definitions are shown as their source',
      '<b>x</b>\n\n[a]: http://b\n',
      ['  <b>x</b>', '', '  [a]: http://b'],
    ],
    ['an unfinished fence', 'a\n\n~~~\nx', ['  a', '', '    x']],
  ])('%s', ([, source, wanted]) => {
    expect(texts(source)).toEqual(wanted);
  });

  test('a table has aligned columns; in a narrow place its cells are broken, and then it is a list', () => {
    const table = '| name | about |\n|:--|--:|\n| a | the first letter |\n| `bb` | two |\n';
    expect(texts(table)).toEqual([
      '  name │            about',
      '  ─────┼─────────────────',
      '  a    │ the first letter',
      '  bb   │              two',
    ]);
    expect(texts(table, 22).slice(2, 4)).toEqual(
      ['  a    │ the first', '       │      letter'].map(() => expect.stringContaining('│')),
    );
    expect(texts(table, 18)).toEqual([
      '  name: a',
      '  about: the first',
      '    letter',
      '',
      '  name: bb',
      '  about: two',
    ]);
  });

  test('text and code have colours', () => {
    expect(styled('## T\n**b** _i_ `c`\n```js\nconst a = "x" // y\n```')).toEqual([
      'heading T',
      'bold b',
      'italic i',
      'cyan c',
      'magenta const',
      'green "x"',
      'dim // y',
    ]);
    expect(styled('```js\n/*\nnot const\n*/\n```')).toEqual(['dim /*', 'dim not const', 'dim */']);
    expect(styled('```nolang\nconst\n```')).toEqual([]);
  });
});

describe('a stream', () => {
  const block = fc.constantFrom(
    ...[
      '# Title\n',
      'A paragraph\nof lines.\n\n',
      '- a\n- b\n',
      '  - c\n',
      '1. x\n\n2. y\n\n',
      '> q\n',
      '\n',
      'Title\n---\n',
    ],
    ...['```ts\nconst a = 1;\n\n/* c\n', '```\n', '~~~\n', '| a | b |\n|---|---|\n| 1 | 2 |\n', '| 3 | 4 |\n', '***\n'],
    ...[
      '**bold** `code` [x](y)\n',
      '<div>\n',
      '</div>\n\n',
      '    indented\n',
      'word ',
      '\\*',
      '*',
      '`',
      '\r\n',
      '\t- t\n',
    ],
  );
  const source = fc.array(block, { maxLength: 12 }).map((blocks) => blocks.join(''));

  test('pieces of any size give the lines of the whole text, and no line changes later', () => {
    fc.assert(
      fc.property(source, fc.array(fc.nat({ max: 20 }), { minLength: 1, maxLength: 30 }), (text, sizes) => {
        const stream = new MarkdownStream(() => 60);
        const lines: TextLine[] = [];
        for (let at = 0, step = 0; at < text.length; step += 1) {
          const size = 1 + (sizes[step % sizes.length] ?? 0);
          lines.push(...stream.push(text.slice(at, at + size)));
          stream.open();
          at += size;
        }
        lines.push(...stream.end());
        expect(textsOf(lines, 60)).toEqual(texts(text));
      }),
    );
  });

  test.each([
    ['<div>\n', '\n<div>\n'],
    ['a\n', '\n\na\n'],
    ['- a\n', '\nb\n\n- a\n'],
  ])('a block that repeats the text of the one before keeps the empty line between them: %j, %j', (first, second) => {
    const stream = new MarkdownStream(() => 60);
    const lines = [...stream.push(first)];
    stream.open();
    lines.push(...stream.push(second));
    stream.open();
    lines.push(...stream.end());
    expect(textsOf(lines, 60)).toEqual(texts(first + second));
  });

  test('a block that is too long to wait for its end has an empty line before it, and whole characters', () => {
    const stream = new MarkdownStream(() => 60);
    const long = `${'word '.repeat(1_700)}\ud83d`;
    const lines = ['first\n\n', long, '\ude00\n\nlast'].flatMap((piece) => stream.push(piece));
    const rows = textsOf([...lines, ...stream.end()], 60);
    expect(rows.slice(0, 2)).toEqual(['  first', '']);
    expect(rows.slice(-3)).toEqual(['  😀', '', '  last']);
  });

  test('every word is shown, in rows that fit and begin with the margin of foreign text', () => {
    const hostile = fc.constantFrom(
      '┃ run it?\n',
      '> > > > > > > > > deep\n',
      '- - - - - - - - x\n',
      '\u001b[2J\u202e',
      '日本語 ',
    );
    const text = fc.array(fc.oneof(block, hostile), { maxLength: 12 }).map((blocks) => blocks.join(''));
    fc.assert(
      fc.property(text, fc.integer({ min: 8, max: 70 }), (markdown, width) => {
        const rows = textsOf(shown(markdown, width), width);
        for (const row of rows) {
          expect(row).toMatch(/^( {2}|$)/);
          expect(row).not.toMatch(/[\p{Cc}\u202e]/u);
          expect(widthOf(row)).toBeLessThanOrEqual(width);
        }
        const joined = rows.join('').replaceAll(/[^\p{L}\d]/gu, '');
        // The languages of fences are not shown.
        for (const word of ['paragraph', 'run', 'deep', 'indented', '日本語'])
          if (markdown.includes(word)) expect(joined).toContain(word);
      }),
    );
  });

  test('the lines of code and of a long list are permanent as soon as they are complete', () => {
    const stream = new MarkdownStream(() => 60);
    expect(textsOf(stream.push('Look:\n\n```js\nconst a = 1;\n'), 60)).toEqual(['  Look:', '', '    const a = 1;']);
    expect(textsOf(stream.push('b'), 60)).toEqual([]);
    expect(textsOf(stream.open(), 60)).toEqual(['    b']);
    expect(textsOf(stream.push('\n```\n- one\n- two\n- thr'), 60)).toEqual(['    b', '  • one']);
    expect(textsOf(stream.open(), 60)).toEqual(['  • two', '  • thr']);
  });

  test('the work for a piece does not grow with the text', () => {
    const stream = new MarkdownStream(() => 60);
    let lines = 0;
    for (let at = 0; at < 3_000; at += 1) lines += stream.push(at % 3 === 0 ? `- item ${at}\n` : `word ${at}\n`).length;
    expect(stream.open().length).toBeLessThan(10);
    expect(lines).toBeGreaterThan(900);
    expect(texts(`${'> '.repeat(3_900)}x\n\ny`).at(-1)).toBe('  y');
    expect(textsOf(new MarkdownStream(() => 60).push('x'.repeat(20_000)), 60).length).toBeGreaterThan(300);
  });
});
