/** The input line, and the bottom area of the terminal that shows it: pure functions, compared with a terminal. */
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { CommandMenu } from '../../../src/cli/commands/commandMenu.ts';
import {
  foundLine,
  type HistorySearch,
  searchedBy,
  startedSearch,
} from '../../../src/cli/interactive/historySearch.ts';
import {
  type EditedLine,
  editedBy,
  emptyLine,
  inserted,
  type Key,
  killedBy,
  lineWith,
} from '../../../src/cli/interactive/lineEditor.ts';
import { footOf, noFoot, redrawn } from '../../../src/cli/interactive/screenFoot.ts';
import { COMMANDS, slashCommand } from '../../../src/cli/interactive/slashCommands.ts';
import { foreignLine, ownLine, rowsOf, rowText, widthOf } from '../../../src/cli/interactive/textRows.ts';
import { TerminalScreen } from '../../support/terminalScreen.ts';

const key = (name: string, fields: Partial<Key> = {}): Key => ({
  name,
  ctrl: false,
  meta: false,
  shift: false,
  sequence: name.length === 1 ? name : '',
  ...fields,
});
/** The number of text units that are read meanwhile, by an expression or character by character. */
function unitsRead(work: () => void): number {
  let units = 0;
  const spies = (['match', 'split', 'replace', 'replaceAll'] as const).map((name) => {
    const own: (this: string, ...args: never[]) => unknown = String.prototype[name];
    const counted = function (this: string, ...args: never[]): unknown {
      units += this.length;
      return own.apply(this, args);
    };
    return vi.spyOn(String.prototype, name).mockImplementation(counted as never);
  });
  const steps = Object.getPrototypeOf(new Intl.Segmenter().segment('')[Symbol.iterator]()) as Iterator<unknown>;
  const next = vi.spyOn(steps, 'next');
  try {
    work();
    return units + next.mock.calls.length;
  } finally {
    for (const spy of [...spies, next]) spy.mockRestore();
  }
}
const HISTORY = ['first', 'second'];
const typed = (line: EditedLine, ...keys: Key[]): EditedLine =>
  keys.reduce((now, each) => editedBy(now, each, HISTORY) ?? now, line);
const shown = ({ text, cursor }: EditedLine): string => `${text.slice(0, cursor)}|${text.slice(cursor)}`;

describe('the input line', () => {
  test.for<[string, string, Key[], string]>([
    ['text goes in at the cursor', 'ac', [key('left'), key('b')], 'ab|c'],
    ['Backspace removes one visible character', 'a👩‍🚀', [key('backspace')], 'a|'],
    [
      'Delete and Ctrl-D remove the next character',
      'abc',
      [key('home'), key('delete'), key('d', { ctrl: true })],
      '|c',
    ],
    ['Ctrl-A, Ctrl-E, Ctrl-B, Ctrl-F move', 'ab', [key('a', { ctrl: true }), key('f', { ctrl: true })], 'a|b'],
    ['words are passed and removed', 'one two  ', [key('w', { ctrl: true }), key('b', { meta: true })], '|one '],
    [
      'Alt-F and Alt-D go forward',
      'one two',
      [key('home'), key('f', { meta: true }), key('d', { meta: true })],
      'one|',
    ],
    [
      'Ctrl-U and Ctrl-K remove to the ends',
      'abc',
      [key('left'), key('k', { ctrl: true }), key('u', { ctrl: true })],
      '|',
    ],
    ['Ctrl-J is a new line, Home is of the line', 'ab', [key('enter'), key('c'), key('home')], 'ab\n|c'],
    ['Up goes to the line above first', 'abc\nde', [key('up')], 'ab|c\nde'],
    [
      'Up shows earlier lines, Down the draft again',
      'dr',
      [key('up'), key('up'), key('up'), key('down'), key('down')],
      'dr|',
    ],
    ['other keys change nothing', 'a', [key('f5', { sequence: '\u001b[15~' }), key('x', { meta: true })], 'a|'],
  ])('%s', ([, text, keys, wanted]) => {
    expect(shown(typed(lineWith(text), ...keys))).toBe(wanted);
  });

  test('after any keys the cursor is between characters of the text', () => {
    const names = [
      'left',
      'right',
      'up',
      'down',
      'home',
      'end',
      'backspace',
      'delete',
      'enter',
      'a',
      'b',
      'd',
      'f',
      'k',
      'u',
      'w',
    ];
    const keys = fc.record({ name: fc.constantFrom(...names), ctrl: fc.boolean(), meta: fc.boolean() });
    const text = fc.constantFrom('x', '👩‍🚀', 'é', '日', 'a\nb', ' ', 'e\u0301');
    fc.assert(
      fc.property(fc.array(fc.oneof(keys, text), { maxLength: 40 }), (steps) => {
        let line = emptyLine;
        for (const step of steps) {
          const next = typeof step === 'string' ? inserted(line, step) : editedBy(line, key(step.name, step), HISTORY);
          line = next ?? line;
          const cuts = [...new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(line.text)].map(
            ({ index }) => index,
          );
          expect([...cuts, line.text.length]).toContain(line.cursor);
        }
      }),
    );
  });

  test('a command is read with its argument, and Tab completes an unambiguous one', () => {
    expect(slashCommand(' /resume  my session ')).toEqual({ name: 'resume', argument: 'my session' });
    expect(slashCommand('/')).toEqual({ name: '', argument: '' });
    const menu = new CommandMenu(() => COMMANDS);
    expect(['/res', '/zzz', 'res'].map((text) => menu.completed(text))).toEqual(['/resume ', '/zzz', 'res']);
    const rowsFor = (text: string) =>
      menu.lines(text).map((line) => rowsOf(line, 90).map(rowText).join('').slice(0, 12).trimEnd());
    expect(rowsFor('/co')).toEqual(['› /cost', '  /context', '  /compact [']);
    expect([menu.move('/co', 1), menu.move('/co', 1), menu.move('/cos', 1)]).toEqual([true, true, false]);
    expect([rowsFor('/zzz'), rowsFor('/cost '), rowsFor('cost')]).toEqual([[], [], []]);
    expect(rowsFor('/')).toHaveLength(8);
    menu.move('/', -1);
    expect(rowsFor('/').at(-1)).toBe('› /exit');
    expect(menu.completed('/')).toBe('/exit ');
  });

  test('removed words are put back, and Ctrl-R finds earlier lines', () => {
    const line = lineWith('one two');
    expect(
      [key('w', { ctrl: true }), key('u', { ctrl: true }), key('backspace')].map((each) => killedBy(line, each)),
    ).toEqual(['two', 'one two', undefined]);
    const history = ['make test', 'ls', 'make all', 'make all'];
    const found = (...keys: Key[]) => {
      let search: HistorySearch | undefined = startedSearch(lineWith('draft'));
      for (const each of keys) search = search && searchedBy(search, each, history);
      return search && foundLine(search, history).text;
    };
    const again = key('r', { ctrl: true });
    expect([found(), found(key('M')), found(key('m'), again), found(key('m'), again, again)]).toEqual([
      'draft',
      'make all',
      'make test',
      'make test',
    ]);
    expect([
      found(key('m'), key('z')),
      found(key('m'), key('backspace')),
      found(key('return', { sequence: '\r' })),
    ]).toEqual(['draft', 'draft', undefined]);
  });
});

/** The start of a row, up to this number of columns. */
function columnsOf(row: string, columns: number): string {
  let text = '';
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(row))
    if (widthOf(text + segment) <= columns) text += segment;
  return text;
}

const words = fc.array(
  fc.constantFrom('a', 'word', 'looooooooooong', '日本語', '👩‍🚀', '\u001b[2J', '\t', '  ', '\u202e', 'x\r'),
  { maxLength: 30 },
);

describe('rows', () => {
  test('H-079 they fit the width, control no terminal, and lose only spaces at breaks', () => {
    fc.assert(
      fc.property(words, fc.integer({ min: 8, max: 60 }), fc.boolean(), (parts, width, own) => {
        const text = parts.join(' ');
        const line = own ? ownLine(['plain', '> '], ['bold', text]) : foreignLine('plain', text);
        const rows = rowsOf(line, width);
        for (const row of rows) {
          expect(rowText(row)).not.toMatch(/\p{Cc}|[\u202e]/u);
          expect(widthOf(rowText(row))).toBe(row.width);
          expect(row.width).toBeLessThanOrEqual(width);
        }
        // Foreign text starts no row, however it is broken.
        if (!own) for (const row of rows) expect(rowText(row)).toMatch(/^ {2}|^$/);
        const letters = (all: string) => all.replaceAll(/[\s>]/g, '');
        const whole = rowsOf(line, Number.POSITIVE_INFINITY).map(rowText).join('');
        expect(letters(rows.map(rowText).join(''))).toBe(letters(whole));
      }),
    );
  });

  test('text is broken between words, and an overlong word anywhere', () => {
    expect(rowsOf(foreignLine('plain', 'one two three'), 11).map(rowText)).toEqual(['  one two', '  three']);
    expect(rowsOf(foreignLine('plain', '  indented text'), 14).map(rowText)).toEqual(['    indented', '  text']);
    expect(rowsOf(foreignLine('plain', 'abcdefghijkl'), 8).map(rowText)).toEqual(['  abcdef', '  ghijkl']);
    expect(rowsOf(foreignLine('plain', ''), 8).map(rowText)).toEqual(['  ']);
  });
});

describe('the bottom area of the terminal', () => {
  const lines = fc.array(fc.string({ maxLength: 60 }), { maxLength: 4 });
  const step = fc.record({
    settled: lines,
    under: lines,
    typed: fc.string({ maxLength: 60 }),
    at: fc.nat({ max: 60 }),
  });

  test('each redraw removes it completely: settled rows are above it, in order, and the cursor is in the line', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), fc.integer({ min: 9, max: 50 }), (steps, columns) => {
        const screen = new TerminalScreen(columns);
        const kept: string[] = [];
        let foot = noFoot;
        for (const { settled, under, typed: text, at } of steps) {
          const rows = settled.flatMap((each) => rowsOf(ownLine(['plain', `- ${each}`]), columns - 1));
          kept.push(...rows.map((row) => rowText(row).trimEnd()));
          const content = { lines: under.map((each) => foreignLine('plain', each)), question: ['cyan', '>'] as const };
          const line = { text, cursor: Math.min(at, text.length) };
          const next = footOf({ ...content, line }, columns - 1, 12);
          screen.write(redrawn(foot, rows, next, columns, rowText));
          foot = next;
          expect(next.rows.length).toBeLessThanOrEqual(12);
          const wanted = [...kept, ...next.rows.map((row) => rowText(row).trimEnd())];
          while (wanted.length > 1 && wanted.at(-1) === '') wanted.pop();
          expect(screen.rows).toEqual(wanted);
          expect(screen.cursor).toEqual({ row: kept.length + next.cursor.row, column: next.cursor.column });
        }
        screen.write(redrawn(foot, [], noFoot, columns, rowText));
        expect(screen.rows.join('\n').trimEnd()).toBe(kept.join('\n').trimEnd());
      }),
    );
  });

  test('a redraw after a change of the width removes it completely, however the terminal broke it', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ' '), maxLength: 70 });
    fc.assert(
      fc.property(text, text, fc.nat({ max: 70 }), fc.integer({ min: 10, max: 39 }), (under, typed, at, columns) => {
        const screen = new TerminalScreen(40);
        const footAt = (width: number) => {
          const line = { text: typed, cursor: Math.min(at, typed.length) };
          return footOf({ lines: [foreignLine('plain', under)], question: ['cyan', '>'], line }, width - 1, 30);
        };
        const foot = footAt(40);
        screen.write(redrawn(noFoot, rowsOf(ownLine(['plain', 'stays']), 39), foot, 40, rowText));
        screen.resize(columns);
        const next = footAt(columns);
        screen.write(redrawn(foot, [], next, columns, rowText));
        const wanted = ['stays', ...next.rows.map((row) => rowText(row).trimEnd())];
        while (wanted.length > 1 && wanted.at(-1) === '') wanted.pop();
        expect(screen.rows).toEqual(wanted);
      }),
    );
  });

  test('a text of several lines is shown as such, and a long one in part, around the cursor', () => {
    const of = (text: string, cursor: number, most = 10) => {
      const { rows, cursor: at } = footOf({ lines: [], question: ['cyan', '>'], line: { text, cursor } }, 12, most);
      return [rows.map(rowText), at];
    };
    expect(of('ab\ncd', 3)).toEqual([['> ab', '  cd'], { row: 1, column: 2 }]);
    expect(of('ab\u001b[2J', 2)).toEqual([['> ab\\x1b[2J'], { row: 0, column: 4 }]);
    expect(of('0123456789abcdef', 10)).toEqual([['> 0123456789', '  abcdef'], { row: 1, column: 2 }]);
    expect(of('a\nb\nc\nd', 0, 2)).toEqual([['> a', '  b'], { row: 0, column: 2 }]);
  });

  test.for([
    ['of many scripts', '日本語 wörld 👩‍🚀 '.repeat(7_000)],
    ['of one line', 'y'.repeat(100_000)],
    ['of many lines', 'a line of many\n'.repeat(7_000)],
  ] as const)(
    'a text %s, 100,000 characters long, is edited like a short one: only the part around the cursor is read and shown',
    ([, text]) => {
      let line = lineWith(text);
      let foot = noFoot;
      for (const pressed of ['left', 'left', 'a', 'backspace', 'right', 'right', 'z']) {
        const read = unitsRead(() => {
          line = editedBy(line, key(pressed), HISTORY) ?? line;
          foot = footOf({ lines: [], question: ['cyan', '>'], line }, 20, 5);
        });
        expect(read, pressed).toBeLessThan(2_000);
        const { rows, cursor } = foot;
        expect(rows).toHaveLength(5);
        const shown = rows.map((row) => rowText(row).slice(2));
        expect(line.text.replaceAll('\n', '')).toContain(shown.join(''));
        expect(line.text.slice(0, line.cursor).endsWith(columnsOf(shown[cursor.row] ?? '', cursor.column - 2))).toBe(
          true,
        );
      }
      expect(shown(typed(line, key('w', { ctrl: true })))).toContain('|');
    },
  );
});
