/** The accepted values of each validator, on both sides of its boundaries, and the contents of a refusal. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { ConfigurationError } from '../src/errors.ts';
import * as validation from '../src/validation.ts';

const { check, checkOptionsOf, checkPlace, display, invalidOption, isLiteral, list, number, object, orFalse, whole } =
  validation;

class Own {
  readonly a = 1;
}
const message = (act: () => unknown): string | undefined => {
  try {
    act();
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
};

const refusesSchema = { validate: () => ({ value: 1 }), jsonSchema: { input: () => Promise.reject } };
const throwing = () => {
  throw new Error('no JSON Schema');
};
const { flag, callback, text, nonEmptyText, choice, numberOrInfinity, strings, standardSchema, anything } = validation;
const rows: readonly (readonly [
  name: string,
  validator: validation.Validator,
  accepted: unknown[],
  refused: unknown[],
])[] = [
  ['flag', flag, [true, false], [undefined, null, 0, 1, 'true', {}]],
  ['callback', callback, [() => 1, Own], [undefined, null, {}, 'f']],
  ['text', text, ['', 'a'], [undefined, null, 1, ['a']]],
  ['nonEmptyText', nonEmptyText, ['a', ' '], ['', undefined, 1, ['a']]],
  ['choice', choice('a', 'b'), ['a', 'b'], ['c', '', 'A', undefined, ['a']]],
  ['number(2)', number(2), [2, 2.5, 1e300], [1.999, -2, Number.NaN, Number.POSITIVE_INFINITY, '3', undefined, 2n]],
  ['number(0)', number(0), [0, -0, 0.1], [-0.1, Number.NEGATIVE_INFINITY]],
  [
    'numberOrInfinity(1)',
    numberOrInfinity(1),
    [1, 1.5, Number.POSITIVE_INFINITY],
    [0.999, Number.NaN, Number.NEGATIVE_INFINITY, '1', undefined],
  ],
  ['whole(1)', whole(1), [1, 2, Number.MAX_SAFE_INTEGER], [0, 1.5, 2 ** 53, Number.POSITIVE_INFINITY, '1', undefined]],
  ['whole(0)', whole(0), [0], [-1]],
  ['strings', strings, [[], ['a', '']], [['a', 1], 'a', { 0: 'a', length: 1 }, new Array(1)]],
  ['orFalse(whole(1))', orFalse(whole(1)), [false, 1], [true, 0, undefined, null]],
  ['object', object({}), [{}, Object.create(null), new Own()], [null, [], 'a', undefined, () => 1]],
  ['anything', anything, [undefined, null, 0, () => 1], []],
  [
    'standardSchema',
    standardSchema,
    [z.string(), { '~standard': { validate: () => 1 } }],
    [undefined, null, {}, { '~standard': {} }, { '~standard': { ...refusesSchema, jsonSchema: { input: throwing } } }],
  ],
];

describe.each(rows)('the validator %s', (_, validator, accepted, refused) => {
  it('accepts these values and refuses those', () => {
    expect(accepted.filter((value) => !validator.test(value))).toEqual([]);
    expect(refused.filter((value) => validator.test(value))).toEqual([]);
  });
});

it('a literal object is one of this realm, of another one or without a prototype, and no instance of a class', () => {
  expect([{}, Object.create(null), Object.create(Object.create(null))].map(isLiteral)).toEqual([true, true, true]);
  expect([new Own(), new Map(), Object.create({})].map(isLiteral)).toEqual([false, false, false]);
});

describe('a checked object', () => {
  const validator = object(
    { a: whole(1), names: list('names'), inner: object({ b: flag }, { defaults: { b: true, c: 1 } }) },
    { defaults: { a: 5, d: 'd' } },
  );
  const checked = (options: object) => check('x', options, validator);

  it('is over the defaults of each level, and a value that is undefined counts as absent', () => {
    expect(checked({})).toEqual({ a: 5, d: 'd' });
    expect(checked({ a: undefined, inner: { b: undefined } })).toEqual({ a: 5, d: 'd', inner: { b: true, c: 1 } });
    expect(checked({ a: 1, inner: { b: false } })).toEqual({ a: 1, d: 'd', inner: { b: false, c: 1 } });
    expect(message(() => checked({ a: null }))).toBe('x.a must be a whole number of at least 1, got null');
  });

  it('is a copy whose lists are copies, so that a later change has no effect', () => {
    const names = ['a'];
    const options = { names };
    const copy = checked(options) as typeof options;
    names.push('b');
    expect(copy).not.toBe(options);
    expect(copy.names).toEqual(['a']);
    expect(Object.keys(validator.defaults ?? {})).toEqual(['a', 'd']);
  });

  it.each([
    [{ b: 1 }, 'x.b is unknown; known are a, names, inner'],
    [{ inner: { z: 1 } }, 'x.inner.z is unknown; known are b'],
    [{ inner: { b: 1 } }, 'x.inner.b must be true or false, got 1'],
    [{ inner: [] }, 'x.inner must be an object, got a list'],
    [{ names: 'a' }, 'x.names must be a list of names, got a value of type string'],
    [{ b: undefined }, 'x.b is unknown; known are a, names, inner'],
  ])('names the wrong field of %j', (options, words) => expect(message(() => checked(options))).toBe(words));

  it('of a call names the call and the option', () => {
    const of = (options: unknown) => message(() => checkOptionsOf('open', options, validator));
    expect(of(5)).toBe('the options of open must be an object, got 5');
    expect(of({ b: 1 })).toBe('open: the option b is unknown; known are a, names, inner');
    expect(of({ a: 0 })).toBe('open: a must be a whole number of at least 1, got 0');
    expect(of({ a: 1 })).toBeUndefined();
  });

  it('keeps an undeclared field out that its validator does not refuse, and refuses the others', () => {
    const some = object({ a: flag }, { refuses: (value) => typeof value === 'function' });
    expect(check('x', { a: true, seen: 1 }, some)).toEqual({ a: true });
    expect(message(() => check('x', { act: () => 1 }, some))).toBe('x.act is unknown; known are a');
  });
});

describe('a refused value', () => {
  it.each([
    ['a', '"a"'],
    ['a\nb', '"a\\nb"'],
    [5, '5'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Infinity'],
    [null, 'null'],
    [undefined, 'undefined'],
    [{ a: 1 }, '{"a":1}'],
    [5n, 'bigint'],
    ['x'.repeat(198), `"${'x'.repeat(198)}"`],
    ['x'.repeat(199), `"${'x'.repeat(199)}…`],
    // No half of a character is shown.
    ['😀'.repeat(100), `"${'😀'.repeat(99)}…`],
    [`x${'😀'.repeat(100)}`, `"x${'😀'.repeat(99)}…`],
  ])('is shown on one line of at most 200 characters, as JSON or by its type: %#', (value, shown) =>
    expect(display(value)).toBe(shown),
  );

  it.each([
    ['sk-key', 'a value of type string'],
    [['sk-key'], 'a list'],
    [{ key: 'sk-key' }, 'a value of type object'],
    [() => 'sk-key', 'a value of type function'],
    [undefined, 'a value of type undefined'],
    [5, '5'],
    [false, 'false'],
    [null, 'null'],
  ])('that may be a credential is not shown: %#', (value, shown) => {
    expect(display(value, true)).toBe(shown);
    expect(invalidOption('the key', { expected: 'a key', secret: true }, value).message).toBe(
      `the key must be a key, got ${shown}`,
    );
  });
});

describe('a place in a log', () => {
  it.each([undefined, 1, 2])('may be %s', (until) => expect(message(() => checkPlace(until, 1))).toBeUndefined());

  it.each([
    [0, '0'],
    [-1, '-1'],
    [1.5, '1.5'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    ['1', '"1"'],
    [null, 'null'],
  ])('may not be %s', (until, shown) => {
    expect(message(() => checkPlace(until, 1))).toBe(
      `until counts entries: expected a whole number of at least 1, got ${shown}; leave it out for all`,
    );
  });

  it('may be 0 where it counts from 0', () => expect(message(() => checkPlace(0, 0))).toBeUndefined());
});
