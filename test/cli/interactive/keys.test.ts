/** Every key that moves, removes or inserts, from every place of a text with words, lines and wide characters. */
import { describe, expect, test } from 'vitest';
import { matchingFiles } from '../../../src/cli/commands/fileMenu.ts';
import { abandonsSearch, foundLine, searchedBy, startedSearch } from '../../../src/cli/interactive/historySearch.ts';
import {
  type EditedLine,
  editedBy,
  emptyLine,
  type Key,
  killedBy,
  lineWith,
} from '../../../src/cli/interactive/lineEditor.ts';

const TEXT = 'ab  cd\nef gh';
const key = (keys: string, sequence = ''): Key => {
  const words = keys.split(' ');
  return {
    ...{ name: words.at(-1), sequence, shift: false },
    ...{ ctrl: words.includes('ctrl'), meta: words.includes('meta') },
  };
};
const at = (cursor: number): EditedLine => ({ ...lineWith(TEXT), cursor });

/** Where the cursor is after a key, for each place from the beginning to the end of the text. */
const LEFT = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const RIGHT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12];
const WORD_LEFT = [0, 0, 0, 0, 0, 4, 4, 4, 7, 7, 7, 10, 10];
const WORD_RIGHT = [2, 2, 6, 6, 6, 6, 9, 9, 9, 12, 12, 12, 12];
const START = [0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7];
const END = [6, 6, 6, 6, 6, 6, 6, 12, 12, 12, 12, 12, 12];
const MOTIONS: { readonly [keys: string]: readonly number[] } = {
  ...{ left: LEFT, 'ctrl b': LEFT, right: RIGHT, 'ctrl f': RIGHT },
  ...{ home: START, 'ctrl a': START, end: END, 'ctrl e': END },
  ...{ 'ctrl left': WORD_LEFT, 'meta left': WORD_LEFT, 'meta b': WORD_LEFT },
  ...{ 'ctrl right': WORD_RIGHT, 'meta right': WORD_RIGHT, 'meta f': WORD_RIGHT },
};
const REMOVALS: { readonly [keys: string]: readonly [to: readonly number[], isKept: boolean] } = {
  backspace: [LEFT, false],
  'ctrl h': [LEFT, false],
  delete: [RIGHT, false],
  'ctrl d': [RIGHT, false],
  'ctrl w': [WORD_LEFT, true],
  'meta backspace': [WORD_LEFT, true],
  'meta d': [WORD_RIGHT, true],
  'ctrl u': [START, true],
  'ctrl k': [END, true],
};

describe('a key', () => {
  test.each(Object.entries(MOTIONS))('%s moves the cursor and changes nothing', (keys, places) => {
    const moved = places.map((_, cursor) => editedBy(at(cursor), key(keys), []));
    expect(moved).toEqual(places.map((cursor) => at(cursor)));
  });

  test.each(Object.entries(REMOVALS))(
    '%s removes what is between the cursor and its place',
    (keys, [places, isKept]) => {
      for (const [cursor, to] of places.entries()) {
        const [from, end] = [Math.min(cursor, to), Math.max(cursor, to)];
        const line = { ...lineWith(TEXT.slice(0, from) + TEXT.slice(end)), cursor: from };
        expect([cursor, editedBy(at(cursor), key(keys), [])]).toEqual([cursor, line]);
        expect(killedBy(at(cursor), key(keys))).toBe(isKept ? TEXT.slice(from, end) : undefined);
      }
    },
  );

  test('in an empty first line keeps the cursor there, and Up reaches it and then the earlier lines', () => {
    const line: EditedLine = { ...lineWith('\nab'), cursor: 0 };
    const press = (...keys: string[]) =>
      keys.reduce((each, name) => editedBy(each, key(name), ['earlier']) ?? each, lineWith('\nab'));
    for (const keys of ['home', 'ctrl a', 'ctrl u', 'end', 'ctrl e', 'ctrl k'])
      expect([keys, editedBy(line, key(keys), [])]).toEqual([keys, line]);
    expect(press('up')).toEqual(line);
    expect(press('up', 'up')).toMatchObject({ text: 'earlier', draft: '\nab' });
    expect(press('up', 'down').cursor).toBe(1);
  });

  test('with a text inserts it at the cursor, and a control character or a chord inserts nothing', () => {
    for (const [sequence, text] of [
      ['x', 'x'],
      ['é', 'é'],
      ['👍', '👍'],
    ] as const)
      expect(editedBy(at(2), key('', sequence), [])).toEqual({
        ...lineWith(`ab${text}  cd\nef gh`),
        cursor: 2 + text.length,
      });
    expect(editedBy(at(2), key('enter', '\n'), [])?.text).toBe('ab\n  cd\nef gh');
    for (const none of [
      key('ctrl x', 'x'),
      key('meta x', 'x'),
      key('f1', '\u001bOP'),
      key('x', ''),
      key('escape', '\u001b'),
    ])
      expect(editedBy(at(2), none, [])).toBeUndefined();
  });

  test('up and down, also as Ctrl-P and Ctrl-N, keep the column within a text, and beyond it go through the history', () => {
    for (const [up, down] of [
      ['up', 'down'],
      ['ctrl p', 'ctrl n'],
    ] as const) {
      const press = (line: EditedLine, ...keys: string[]): EditedLine =>
        keys.reduce((each, name) => editedBy(each, key(name), ['one', 'two']) ?? each, line);
      expect(press(at(9), up).cursor).toBe(2);
      expect(press(at(6), down).cursor).toBe(12);
      const draft = lineWith('draft');
      expect([press(draft, up).text, press(draft, up, up).text, press(draft, up, up, up).text]).toEqual([
        'two',
        'one',
        'one',
      ]);
      expect(press(draft, up, up, down).text).toBe('two');
      expect(press(draft, up, up, down, down)).toMatchObject({ text: 'draft', cursor: 5, back: 0 });
      expect(press(draft, down)).toEqual(draft);
      expect(press(emptyLine, up, up, up, down, down, down)).toMatchObject({ text: '', back: 0 });
    }
  });
});

describe('the search through earlier lines', () => {
  const HISTORY = ['make a', 'ls', 'Make b', 'make a'];
  const searched = (...keys: Key[]) =>
    keys.reduce((search, each) => searchedBy(search, each, HISTORY) ?? search, startedSearch(lineWith('draft')));
  const letter = (character: string): Key => key(character, character);

  test('finds different lines, the latest first, and stays at the last of them', () => {
    const finds = (...keys: Key[]): string => foundLine(searched(...keys), HISTORY).text;
    const again = key('ctrl r');
    expect([finds(), finds(letter('m')), finds(letter('M')), finds(letter('m'), again)]).toEqual([
      'draft',
      'make a',
      'make a',
      'Make b',
    ]);
    expect([finds(letter('m'), again, again), finds(letter('m'), again, letter('a'))]).toEqual(['Make b', 'make a']);
    expect([finds(letter('z')), finds(letter('z'), key('backspace'), letter('l'))]).toEqual(['draft', 'ls']);
    expect(finds(again)).toBe('draft');
  });

  test('Backspace removes one character as a reader counts them', () => {
    const query = (...keys: Key[]): string => searched(...keys, key('backspace')).query;
    expect([query(letter('a'), letter('😀')), query(letter('a'), letter('👩‍💻')), query()]).toEqual(['a', 'a', '']);
  });

  test('ends with any other key, of which Escape, Ctrl-G and Ctrl-C give the draft back', () => {
    for (const keys of ['escape', 'ctrl g', 'ctrl c', 'return', 'left', 'tab', 'ctrl a'])
      expect(searchedBy(searched(), key(keys, '\r'), HISTORY)).toBeUndefined();
    const abandons = ['escape', 'ctrl g', 'ctrl c', 'return', 'left', 'g', 'c'].filter((keys) =>
      abandonsSearch(key(keys)),
    );
    expect(abandons).toEqual(['escape', 'ctrl g', 'ctrl c']);
  });
});

test('of files those that begin with the part come first, then shorter paths; ignored ones are last, and eight are shown', () => {
  const files = ['lib/a.ts', 'a.ts', 'src/xa.ts', 'A/long.ts', 'z.ts'].map((path) => ({ path, isIgnored: false }));
  const ignored = { path: 'a', isIgnored: true };
  expect(matchingFiles([ignored, ...files], 'A').map(({ path }) => path)).toEqual([
    ...['a.ts', 'lib/a.ts', 'A/long.ts', 'src/xa.ts', 'a'],
  ]);
  const many = Array.from({ length: 9 }, (_, index) => ({ path: `f${index}`, isIgnored: false }));
  expect(matchingFiles(many.reverse(), '').map(({ path }) => path)).toEqual([
    'f0',
    'f1',
    'f2',
    'f3',
    'f4',
    'f5',
    'f6',
    'f7',
  ]);
});
