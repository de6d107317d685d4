/** Numbers, times, arguments and content as a person reads them, on both sides of each boundary. */
import { describe, expect, it } from 'vitest';
import {
  cost,
  count,
  duration,
  firstLine,
  oneLine,
  plural,
  shownText,
  since,
  telling,
} from '../../src/words/formats.ts';

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];

/** The milliseconds that the parts of a duration add up to. */
function millisecondsOf(words: string): number {
  const units: Record<string, number> = { ms: 1, s: SECOND, min: MINUTE, h: HOUR, days: DAY };
  const parts = [...words.matchAll(/([\d.]+) ([a-z]+)/g)];
  return parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (units[unit] ?? Number.NaN), 0);
}

describe('a duration', () => {
  it.each([
    [-5, '0 ms'],
    [0, '0 ms'],
    [999, '999 ms'],
    [999.7, '1.0 s'],
    [1_000, '1.0 s'],
    [59_900, '59.9 s'],
    [59_960, '1 min 0 s'],
    [60_000, '1 min 0 s'],
    [61_000, '1 min 1 s'],
    [119_600, '2 min 0 s'],
    [HOUR - 600, '59 min 59 s'],
    [HOUR - 400, '1 h 0 min'],
    [HOUR, '1 h 0 min'],
    [2 * HOUR - 20_000, '2 h 0 min'],
    [26 * HOUR + 3 * MINUTE, '26 h 3 min'],
    [48 * HOUR - MINUTE, '47 h 59 min'],
    [48 * HOUR, '2 days'],
    [10 * DAY, '10 days'],
  ])('of %s ms is shown as %s', (ms, words) => expect(duration(ms)).toBe(words));

  it('is never further from the time than half of its smallest unit, and each part is less than the next larger unit', () => {
    for (let ms = 1; ms < 40 * DAY; ms = Math.ceil(ms * 1.02)) {
      const words = duration(ms);
      const smallest =
        ms < 999.5 ? 1 : ms < 59_950 ? 100 : ms < HOUR - 500 ? SECOND : ms < 2 * DAY - MINUTE / 2 ? MINUTE : DAY;
      expect(Math.abs(millisecondsOf(words) - ms), `${ms}: ${words}`).toBeLessThanOrEqual(smallest / 2);
      expect(words, String(ms)).not.toMatch(/\b(1000 ms|60(\.0)? s|60 min)/);
    }
  });

  it('between two entries begins with a plus, and is empty if no time passed', () => {
    expect([-1, 0, 1, 999, 1_000, 1_550, 59_900, 60_000, HOUR].map(since)).toEqual([
      ...['', '', '+1ms', '+999ms', '+1.0s', '+1.6s', '+59.9s', '+1 min 0 s', '+1 h 0 min'],
    ]);
    expect([999.7, 59_960].map(since)).toEqual(['+1.0s', '+1 min 0 s']);
  });
});

describe('a number', () => {
  it('has commas between thousands in every locale', () => {
    expect([0, 999, 1_000, 1_234_567].map(count)).toEqual(['0', '999', '1,000', '1,234,567']);
  });

  it('of things is one thing only for 1', () => {
    expect([0, 1, 2, 1_000].map((value) => plural(value, 'step'))).toEqual([
      ...['0 steps', '1 step', '2 steps', '1,000 steps'],
    ]);
  });

  it.each([
    [0, '$0'],
    [0.00004, '$0.0000'],
    [0.00005, '$0.0001'],
    [0.1234, '$0.1234'],
    [0.9999, '$0.9999'],
    [1, '$1.00'],
    [12.345, '$12.35'],
  ])('of US dollars has four digits below a dollar: %s is %s', (usd, words) => expect(cost(usd)).toBe(words));
});

describe('text on one line', () => {
  it('has a single space for each run of white space, and none at its ends', () => {
    expect(oneLine('  a\n\n b\t\r\nc ')).toBe('a b c');
  });

  it.each([
    [4, 'abcd', 'abcd'],
    [4, 'abcde', 'abcd…'],
    [4, ' abcd ', 'abcd'],
    [4, 'abc😀d', 'abc…'],
    [5, 'abc😀d', 'abc😀…'],
  ])('of at most %s characters shows %j as %j, without half a character', (most, text, line) => {
    expect(oneLine(text, most)).toBe(line);
  });

  it('shows 160 characters by default', () => {
    expect(oneLine('x'.repeat(160))).toBe('x'.repeat(160));
    expect(oneLine('x'.repeat(161))).toBe(`${'x'.repeat(160)}…`);
  });

  it.each([
    ['one', 'one'],
    ['one\ntwo', 'one …'],
    ['one\n', 'one …'],
    ['\ntwo', ' …'],
    ['longer than it\nmay be', 'longer th…'],
    ['exactly 10', 'exactly 10'],
    ['', ''],
  ])('as its first line: %j is %j', (text, line) => expect(firstLine(text, 10)).toBe(line));
});

describe('the content of a message', () => {
  it('is its texts, each on a line, with the names of images and files', () => {
    const parts = [
      { type: 'text', text: 'see' },
      { type: 'image', mediaType: 'image/png', data: 'x' },
      { type: 'file', mediaType: 'application/pdf', name: 'a.pdf' },
      { type: 'file', mediaType: 'application/pdf' },
      { type: 'file' },
      { type: 'text' },
    ];
    expect(shownText(parts)).toBe('see\n[image]\n[a.pdf]\n[application/pdf]\n[file]\n');
  });

  it('shows what would drive a display in the name of a file as an escape', () => {
    expect(shownText([{ type: 'file', name: 'a\u001b[2J\n.pdf' }])).toBe('[a\\x1b[2J\\n.pdf]');
  });

  it.each([undefined, null, 'text', 5, {}])('is empty if it is no list: %j', (content) => {
    expect(shownText(content)).toBe('');
  });
});

describe('the arguments of a call in a few characters', () => {
  const NAMES = ['file_path', 'file_name', 'command', 'pattern', 'path', 'query', 'url', 'task', 'name'];

  it.each(NAMES.map((name, at) => [name, NAMES.slice(at)] as const))(
    'are the argument %s before all that are less telling, in any order',
    (name, names) => {
      const args = Object.fromEntries(names.map((each) => [each, `the ${each}`]));
      const expected = name === 'pattern' ? 'the pattern in the path' : `the ${name}`;
      expect(telling({ a: 'b', ...args })).toBe(expected);
      expect(telling(Object.fromEntries(Object.entries(args).reverse()))).toBe(expected);
    },
  );

  it('pass over a telling argument that is empty or no text', () => {
    expect(telling({ file_path: '', command: 5, query: 'q' })).toBe('q');
  });

  it.each([
    [null, ''],
    ['a\nb', 'a b'],
    [5, '5'],
    [false, 'false'],
    [[1, 'x'], '[1,"x"]'],
    [{}, ''],
    [{ long: 'a longer text', n: 7, b: 'ab' }, '7'],
    [{ items: [1, 2], more: [] }, '2 items, 0 more'],
    [{ items: [1, 2], n: 12 }, '12'],
    [{ nested: { a: 1 } }, '{"nested":{"a":1}}'],
    [{ nothing: null }, '{"nothing":null}'],
  ])('%j is %j', (args, words) => expect(telling(args)).toBe(words));

  it('are at most 80 characters by default, for each form', () => {
    const long = 'x'.repeat(81);
    for (const args of [long, { query: long }, { other: long }, [long], { nested: { long } }])
      expect(telling(args)).toHaveLength(81);
    expect(telling('x'.repeat(80))).toBe('x'.repeat(80));
    expect(telling({ pattern: 'abc', path: 'def' }, 8)).toBe('abc in d…');
  });
});

it('the first line of a text with CRLF has no carriage return', () => {
  expect([firstLine('HTTP/1.1 200 OK\r\nDate: now', 80), firstLine('one\r\n', 80)]).toEqual([
    'HTTP/1.1 200 OK …',
    'one …',
  ]);
});
