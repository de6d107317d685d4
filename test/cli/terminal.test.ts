import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonLine, PrintableStream, printable, printableLine, shortened } from '../../src/printable.ts';

/** Written by hand, not taken from the code: C0 without line break and tab, DEL, C1, direction marks, separators. */
const drives = (text: string): boolean =>
  [...text].some((character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code === 0x0a || code === 0x09) return false;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return true;
    return [0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff].includes(code);
  });
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom(
        '\u001b[2J',
        '\u001b]52;c;x\u0007',
        '\u009b',
        '\u202e',
        '\u2066',
        '\r\n',
        '\r',
        '\n',
        '👩‍🚀',
        '\u{e0041}',
      ),
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(''));

describe('printable text', () => {
  test.for<[string, string, string]>([
    ['an OSC sequence', '\u001b]52;c;aGk=\u0007', '\\x1b]52;c;aGk=\\x07'],
    ['CSI and DCS', '\u001b[2J\u001bPq\u001b\\', '\\x1b[2J\\x1bPq\\x1b\\'],
    ['C1', '\u009b31m\u0085', '\\x9b31m\\x85'],
    ['DEL and C0', 'a\u007fb\u0008\u0000', 'a\\x7fb\\x08\\x00'],
    ['direction marks', 'a\u202eb\u2066c\u200fd', 'a\\u202eb\\u2066c\\u200fd'],
    ['zero-width characters', '\u200b\ufeff\u00ad\u2060', '\\u200b\\ufeff\\xad\\u2060'],
    ['separators', '\u2028\u2029', '\\u2028\\u2029'],
    ['a tag character', '\u{e0041}', '\\u{e0041}'],
    ['half a character', '\ud800x', '\\ud800x'],
    ['a lone CR', 'one\rtwo', 'one\\rtwo'],
  ])('H-079 %s is shown as escapes', ([, text, shown]) => {
    expect(printable(text)).toBe(shown);
  });

  test('line breaks, tabs, emoji and every script are unchanged; CRLF is a line break', () => {
    expect(printable('one\r\ntwo\tthree\n')).toBe('one\ntwo\tthree\n');
    const text = '👩‍🚀 ❤️ می‌خواهم naïve 日本語';
    expect(printable(text)).toBe(text);
  });

  test('on a line, breaks, tabs and joiners are escapes too', () => {
    expect(printableLine('a\r\nb\tc\u200dd')).toBe('a\\r\\nb\\tc\\u200dd');
  });

  test('H-079 no output controls a terminal, whatever the input is', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(drives(printable(text))).toBe(false);
        expect(drives(printableLine(text))).toBe(false);
        expect(printableLine(text)).not.toMatch(/[\n\t]/);
      }),
    );
  });

  test('text in pieces is shown like the whole text, wherever it is split', () => {
    fc.assert(
      fc.property(hostile, fc.array(fc.nat({ max: 40 })), (text, places) => {
        const cuts = [...new Set([0, ...places.filter((at) => at < text.length), text.length])].sort((a, b) => a - b);
        const stream = new PrintableStream();
        const shown = cuts.slice(1).map((end, index) => stream.push(text.slice(cuts[index], end)));
        expect(shown.join('') + stream.end()).toBe(printable(text));
      }),
    );
  });
});

describe('a line of JSON', () => {
  test('H-079 it is the same value once parsed, and contains no sequence that controls a terminal', () => {
    fc.assert(
      fc.property(fc.dictionary(hostile, fc.oneof(hostile, fc.integer(), fc.array(hostile))), (value) => {
        const line = jsonLine(value);
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(drives(line)).toBe(false);
        expect(line).not.toContain('\n');
      }),
    );
  });
});

test('a text is cut with an ellipsis and never inside a character', () => {
  expect(shortened('abcdef', 6)).toBe('abcdef');
  expect(shortened('abcdefg', 6)).toBe('abcde…');
  expect(shortened('abcd😀fg', 6)).toBe('abcd…');
});
