/** The excerpt of each kind of value, at each of its limits, and of each shape of a credential. */
import { describe, expect, it } from 'vitest';
import { excerpt, pageJson, withoutCredentials } from '../../src/inspect/excerpt.ts';

const WIDE = { text: 1_000, items: 100, depth: 20, values: 1_000 };
const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

describe('a text with a character of two units at the limit', () => {
  it('ends before this character, and counts it among the rest', () => {
    const text = `${'a'.repeat(9)}😀😀`;
    expect(excerpt(text, { ...WIDE, text: 10 })).toBe('aaaaaaaaa… 4 more characters');
    expect(excerpt(text, { ...WIDE, text: 11 })).toBe('aaaaaaaaa😀… 2 more characters');
  });
});

describe('a value of each kind', () => {
  it.each<[string, unknown, unknown]>([
    ['a text', 'x', 'x'],
    ['an empty text', '', ''],
    ['zero', 0, 0],
    ['a number that is none in JSON', Number.NaN, 'NaN'],
    ['an endless number', Number.NEGATIVE_INFINITY, '-Infinity'],
    ['false', false, false],
    ['null', null, null],
    ['nothing', undefined, null],
    ['a large number', 12n, '12'],
    ['a symbol', Symbol('x'), 'Symbol(x)'],
    ['a function', Math.max, '[function max]'],
    [
      'a function without a name',
      (
        () => () =>
          undefined
      )(),
      '[function without name]',
    ],
    ['a time', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['an invalid time', new Date(Number.NaN), 'Invalid Date'],
    ['an error', new TypeError('no'), { name: 'TypeError', message: 'no' }],
    ['bytes', new Uint8Array(3), '[3 bytes]'],
    ['a buffer', new ArrayBuffer(5), '[5 bytes]'],
    ['a view of a buffer', new DataView(new ArrayBuffer(8), 2), '[6 bytes]'],
    ['a promise', Promise.resolve(1), '[promise]'],
    ['an actor', { sessionId: 'x:1', id: 'door', send: () => undefined }, '[actor door]'],
    ['an actor without an id', { sessionId: 'x:1', send: () => undefined }, '[actor x:1]'],
    ['a session that is no actor', { sessionId: 'x:1' }, { sessionId: 'x:1' }],
    ['a set', new Set([1, 'a']), [1, 'a']],
    ['a map', new Map<unknown, unknown>([['a', 1]]), [['a', 1]]],
    ['a map with a credential', new Map([['apiKey', 'x']]), [['apiKey', '[redacted]']]],
    ['absent fields', { a: undefined, b: 1 }, { b: 1 }],
    ['absent items', [undefined, 1], [null, 1]],
    ['a field that is named like the prototype', JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":1}')],
  ])('%s', (_, value, shown) => {
    expect(excerpt(value, WIDE)).toEqual(shown);
  });
});

describe('a limit', () => {
  it.each([0, 1, 4, 5, 6, 105])('of 5 items, of %i', (count) => {
    const more = count - 5;
    const limits = { ...WIDE, items: 5 };
    const list = [...numbers(Math.min(count, 5)), ...(more > 0 ? [`… ${more} more`] : [])];
    expect(excerpt(numbers(count), limits)).toEqual(list);
    expect(excerpt(new Set(numbers(count)), limits)).toEqual(list);
    const fields = Object.fromEntries(numbers(count).map((at) => [`k${at}`, at]));
    const shown = Object.fromEntries(numbers(Math.min(count, 5)).map((at) => [`k${at}`, at]));
    expect(excerpt(fields, limits)).toEqual({ ...shown, ...(more > 0 && { '…': `${more} more` }) });
  });

  it.each([4, 5, 6, 1_005])('of 5 characters, of %i', (count) => {
    const shown = count > 5 ? `xxxxx… ${count - 5} more characters` : 'x'.repeat(count);
    expect(excerpt('x'.repeat(count), { ...WIDE, text: 5 })).toBe(shown);
  });

  it('of the depth, and of all values together', () => {
    const deep = { a: { b: { c: 1 }, d: [1, 2] } };
    expect(excerpt(deep, { ...WIDE, depth: 0 })).toBe('[object]');
    expect(excerpt(deep, { ...WIDE, depth: 2 })).toEqual({ a: { b: '[object]', d: '[2 items]' } });
    expect(excerpt(deep, { ...WIDE, depth: 3 })).toEqual(deep);
    expect(excerpt([1, 2, 3], { ...WIDE, values: 4 })).toEqual([1, 2, 3]);
    expect(excerpt([1, 2, 3], { ...WIDE, values: 3 })).toEqual([1, 2, '…']);
  });
});

const long = 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8';
describe('a credential', () => {
  const SHAPES = [
    `sk-${long}`,
    ...['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'].map((start) => start + long),
    ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'npm_', 'AIza'].map((start) => start + long),
    'AKIAABCDEFGHIJKLMNOP',
    ...['xoxa-', 'xoxb-', 'xoxp-', 'xoxr-', 'xoxs-'].map((start) => start + long),
    `eyJ${long}.eyJ${long}.${long}`,
    `Bearer ${long}`,
  ];
  it.each(SHAPES)('is hidden by its shape, and where a text is cut within it: %s', (secret) => {
    const text = `before ${secret} after`;
    expect(withoutCredentials(text)).toBe('before [redacted] after');
    expect(pageJson({ text })).toEqual({ text: 'before [redacted] after' });
    for (let cut = 8; cut < text.length; cut += 1)
      expect(excerpt(text, { ...WIDE, text: cut })).not.toContain(secret.slice(0, 8));
  });

  it.each([
    ...['authorization', 'Authorization', 'apiKey', 'api_key', 'api-key', 'password', 'passwd', 'clientSecret'],
    ...['credentials', 'set-cookie', 'token', 'accessToken', 'access_token', 'X-Auth-Token'],
  ])('is hidden under the name %s', (name) => {
    expect(excerpt({ [name]: 'x y' }, WIDE)).toEqual({ [name]: '[redacted]' });
    expect(excerpt({ [name]: '' }, WIDE)).toEqual({ [name]: '' });
    expect(excerpt({ [name]: 7 }, WIDE)).toEqual({ [name]: 7 });
    expect(withoutCredentials(JSON.stringify({ a: 1, [name]: 'x y', b: 2 }))).toBe(
      JSON.stringify({ a: 1, [name]: '[redacted]', b: 2 }),
    );
  });

  it.each([
    ['a key of lines', `-----BEGIN PRIVATE KEY-----\nsk-${long}\nrest\n-----END PRIVATE KEY-----`],
    ['a field', `"password": "x sk-${long} rest"`],
    ['a line of configuration', `MY_TOKEN=ghp_${long} rest`],
    ['an address', `https://me:ghp_${long}.rest@host`],
  ])('within %s hides nothing less of what is around it', (_, text) => {
    expect(withoutCredentials(text)).toContain('[redacted]');
    expect(withoutCredentials(text)).not.toContain('rest');
  });

  it.each(['tokens', 'maxTokens', 'tokenCount', 'author'])('is none under the name %s', (name) => {
    expect(excerpt({ [name]: 'x y' }, WIDE)).toEqual({ [name]: 'x y' });
  });
});
