/** Compares the places of a text in a file with their definition, with any line ends, and bounds the time of the search. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { placesIn } from '../../../src/tools/coding/search/textPlaces.ts';

const found = (text: string, searched: string, overlapping: boolean): [at: number, old: string][] =>
  [...placesIn({ text }, searched, { overlapping })].map(({ at, length }) => [at, text.slice(at, at + length)]);

/** Tries each position. A position between CR and LF does not count. */
function tried(text: string, searched: string, overlapping: boolean): [at: number, old: string][] {
  const lines = searched.split('\r\n').join('\n');
  const places: [number, string][] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '\n' && text[at - 1] === '\r') continue;
    let to = at;
    let fits = true;
    for (const character of lines) {
      const isPair = text[to] === '\r' && text[to + 1] === '\n';
      fits &&= isPair ? character === '\n' : character === text[to];
      to += isPair ? 2 : 1;
    }
    if (!fits) continue;
    places.push([at, text.slice(at, to)]);
    if (!overlapping) at = to - 1;
  }
  return places;
}

test('every place is found, in its order, whatever the line ends of both texts are', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', '\n', '\r\n', '\r'), { maxLength: 14 })
    .map((parts) => parts.join(''));
  const searched = fc
    .array(fc.constantFrom('a', 'b', '\n', '\r\n'), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, searched, fc.boolean(), (inside, sought, overlapping) => {
      expect(found(inside, sought, overlapping)).toEqual(tried(inside, sought, overlapping));
    }),
    { numRuns: 2_000 },
  );
});

test('a line end at the beginning of a text is one place in a file with CR LF', () => {
  expect(found('a\r\nb\r\n', '\nb', true)).toEqual([[1, '\r\nb']]);
  expect(found('aaa', 'aa', true)).toEqual([
    [0, 'aa'],
    [1, 'aa'],
  ]);
  expect(found('aaa', 'aa', false)).toEqual([[0, 'aa']]);
  expect(found('aaa', '', true)).toEqual([]);
});

test('a text that almost stands at every place takes no longer than another one', () => {
  const before = process.cpuUsage();
  const text = 'a'.repeat(2_000_000);
  expect(found(text, `${'a'.repeat(100_000)}b`, true)).toEqual([]);
  expect(found(text, `b${'a'.repeat(100_000)}`, true)).toEqual([]);
  const { user, system } = process.cpuUsage(before);
  // Position by position this takes minutes.
  expect((user + system) / 1_000).toBeLessThan(5_000);
});
