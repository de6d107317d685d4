/** Lists and names as a tool shows them, and the bounds of `.gitignore` files. */
import { describe, expect, it } from 'vitest';
import { ignoreBudget, ignoreRules, isLeftOut } from '../../../src/tools/coding/search/ignoreRules.ts';
import { listing, shownName } from '../../../src/tools/coding/search/listing.ts';

describe('a list', () => {
  const options = { empty: 'nothing', narrow: 'give less' };
  const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `n${at}`);

  it('has all its lines up to 1,000, then the notes', () => {
    expect(listing(['a', 'b'], options)).toBe('a\nb');
    expect(listing(['a'], { ...options, notes: ['x', 'y'] })).toBe('a\n[x]\n[y]');
    expect(listing(names(1_000), options)).toBe(names(1_000).join('\n'));
    expect(listing(names(1_001), { ...options, notes: ['x'] })).toBe(
      `${names(1_000).join('\n')}\n[x]\n[cut: the first 1000 are shown and there are more; give less]`,
    );
  });

  it('that is empty begins with [nothing]', () => {
    expect(listing([], options)).toBe('[nothing]');
    const notes = ['x'];
    expect(listing([], { ...options, notes })).toBe('[nothing]\n[x]');
    expect(notes).toEqual(['x']);
  });

  it('has at most 200 KiB in bytes, line ends included', () => {
    const line = 'é'.repeat(511);
    const cut = listing(Array(201).fill(`${line}x`), options);
    expect(cut).toBe(
      `${Array(200).fill(`${line}x`).join('\n')}\n[cut: the first 200 are shown and there are more; give less]`,
    );
    expect(listing(Array(200).fill(`${line}x`), options)).not.toContain('cut');
  });
});

describe('a name', () => {
  it.each(['a', 'ä b', '..', 'a"b', 'a\\b', '😀', 'ש'])('%j is shown as it is', (name) => {
    expect(shownName(name)).toBe(name);
  });

  it.each([
    ['a\nb', '"a\\nb"'],
    ['a\u001b[2J', '"a\\u001b[2J"'],
    ['\u007f', '"\\u007f"'],
    ['\u0085', '"\\u0085"'],
    ['\u2028', '"\\u2028"'],
    ['\u2029', '"\\u2029"'],
    ['a\u202eb', '"a\\u202eb"'],
    ['\u2066x\u2069', '"\\u2066x\\u2069"'],
    ['\u200f', '"\\u200f"'],
    ['\u061c', '"\\u061c"'],
    ['\ud800', '"\\ud800"'],
    ['"\n', '"\\"\\n"'],
  ])('%j is shown as %s', (name, shown) => {
    expect(shownName(name)).toBe(shown);
  });
});

describe('the rules of a .gitignore file', () => {
  const isOut = (rules: string, path: string, isDirectory = false): boolean | undefined =>
    isLeftOut(ignoreRules(rules), path.split('/'), isDirectory, ignoreBudget());

  it('are at most 1,000 lines, each of at most 1,024 characters', () => {
    expect([isOut(`${'#\n'.repeat(999)}a`, 'a'), isOut(`${'#\n'.repeat(1_000)}a`, 'a')]).toEqual([true, undefined]);
    const long = 'a'.repeat(1_024);
    expect([isOut(long, long), isOut(`${long}a`, `${long}a`)]).toEqual([true, undefined]);
  });

  it('know the classes of characters', () => {
    const CLASSES: { readonly [name: string]: readonly [fits: string, others: string] } = {
      alpha: ['aZ', '1_-'],
      digit: ['09', 'a'],
      alnum: ['aZ9', '_-'],
      upper: ['AZ', 'a1'],
      lower: ['az', 'A1'],
      space: [' \t', 'a'],
      xdigit: ['0fA9', 'g'],
      punct: ['!-_~@', 'a1 '],
    };
    for (const [name, [fits, others]] of Object.entries(CLASSES)) {
      for (const each of fits) expect([name, each, isOut(`x[[:${name}:]]y`, `x${each}y`)]).toEqual([name, each, true]);
      for (const each of others)
        expect([name, each, isOut(`x[[:${name}:]]y`, `x${each}y`)]).toEqual([name, each, undefined]);
      expect(isOut(`x[![:${name}:]]y`, `x${fits[0]}y`)).toBeUndefined();
    }
  });

  it.each<[rules: string, path: string, isDirectory: boolean, out: boolean | undefined]>([
    ['a\r\nb\r\n', 'a', false, true],
    ['a/', 'a', true, true],
    ['a/', 'a', false, undefined],
    ['a/', 'x/y/a', true, true],
    ['a/', 'x/a', false, undefined],
    ['/a/', 'a', true, true],
    ['/a/', 'x/a', true, undefined],
    ['a/b/', 'a/b', true, true],
    ['a/b/', 'x/a/b', true, undefined],
    ['a\n!a', 'a', false, false],
    ['!a\na', 'a', false, true],
    ['#a', '#a', false, undefined],
    ['\\!a', '!a', false, true],
    ['a/b', 'a/b', false, true],
    ['a/b', 'x/a/b', false, undefined],
    ['**/b', 'x/a/b', false, true],
    ['b', 'x/a/b', false, true],
    ['/b', 'x/b', false, undefined],
    ['a/**', 'a', true, undefined],
    ['a/**', 'a/x/y', false, true],
    ['a/**/b', 'a/b', false, true],
    ['a//b', 'a/b', false, undefined],
    ['[]a]', ']', false, true],
    ['[a-]', '-', false, true],
    ['[\\]]', ']', false, true],
    ['[^a]', 'b', false, true],
    ['', 'a', false, undefined],
  ])('%j leave out %j (a directory: %s): %s', (rules, path, isDirectory, out) => {
    expect(isOut(rules, path, isDirectory)).toBe(out);
  });

  it('leave nothing out once the steps of a walk are used up', () => {
    const budget = { steps: 3 };
    const rules = ignoreRules('ab');
    expect(isLeftOut(rules, ['ab'], false, { steps: 100 })).toBe(true);
    expect(isLeftOut(rules, ['ab'], false, budget)).toBeUndefined();
    expect(isLeftOut(rules, ['ab'], false, budget)).toBeUndefined();
  });
});
