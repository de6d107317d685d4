/**
 * Tests values that are sent to a server: names and arguments of calls, credentials, copies of JSON, objects in text.
 */
import { describe, expect, it } from 'vitest';
import type { Json } from '../../machines/vocabulary.ts';
import { objectAt } from '../../src/models/jsonScan.ts';
import { extraFrom, extraOf } from '../../src/models/wire/providerExtra.ts';
import { secretsIn } from '../../src/models/wire/secrets.ts';
import { wireArguments, wireName } from '../../src/models/wire/toolCalls.ts';
import { parseJson, plainCopy } from '../../src/models/wire/wireJson.ts';

/** Returns lists nested to this depth. */
const nested = (depth: number): Json => (depth === 0 ? 1 : [nested(depth - 1)]);
const nestedIn = (depth: number): Json => (depth === 0 ? 1 : { a: nestedIn(depth - 1) });

describe('a call is sent back to a server', () => {
  it.each([
    ['look_at-1', 'look_at-1'],
    ['look at.this', 'look_at_this'],
    ['größe', 'gr__e'],
    ['', 'unnamed'],
    ['🎉', '__'],
    ['x'.repeat(64), 'x'.repeat(64)],
    ['x'.repeat(65), 'x'.repeat(64)],
  ])('by the name %j as %j', (name, wire) => {
    expect(wireName(name)).toBe(wire);
  });

  it.each<[string, Json, string | undefined, object]>([
    ['an object', { a: [1] }, undefined, { a: [1] }],
    ['a list', [1], undefined, { invalid_arguments: [1] }],
    ['a text', 'a', undefined, { invalid_arguments: 'a' }],
    ['null', null, undefined, { invalid_arguments: null }],
    ['text that was no JSON', null, '{"a":', { invalid_arguments: '{"a":' }],
    ['empty text', {}, '', { invalid_arguments: '' }],
  ])('with arguments that are an object: %s', (_, args, argsText, wire) => {
    const call = { callId: 'c', name: 'n', args, ...(argsText !== undefined && { argsText }) };
    expect(wireArguments(call)).toEqual(wire);
  });

  it('with the attachments of its provider, and none of another one', () => {
    const extra = extraOf('acme', { t: 1 });
    expect(extraFrom('acme', extra)).toEqual({ provider: 'acme', t: 1 });
    for (const other of [undefined, null, 'acme', ['acme'], { t: 1 }, { provider: 7 }, extraOf('other', {})] as Json[])
      expect(extraFrom('acme', other)).toBeUndefined();
  });
});

describe('a credential in a header', () => {
  it.each([
    [{ authorization: 'Bearer abc' }, ['abc']],
    [{ Authorization: ' bearer  abc ' }, ['abc']],
    [{ authorization: 'Basic dXNlcg==' }, ['dXNlcg==']],
    [{ authorization: 'Token abc' }, ['abc']],
    [{ authorization: 'abc' }, ['abc']],
    [{ 'X-Api-Key': 'k', 'x-auth-token': 't', 'My-Secret': 's', COOKIE: 'c' }, ['k', 't', 's', 'c']],
    [{ 'content-type': 'application/json', accept: '*/*', 'user-agent': 'a' }, []],
    [{ authorization: ' ', 'x-api-key': '' }, []],
    [{ authorization: 'Bearer key', 'x-api-key': 'key' }, ['key']],
  ])('%j is %j', (headers, secrets) => {
    expect(secretsIn(headers as Record<string, string>)).toEqual(secrets);
    expect(secretsIn(headers as Record<string, string>, 'key')).toEqual([...new Set(['key', ...secrets])]);
    expect(secretsIn(headers as Record<string, string>, '')).toEqual(secrets);
  });
});

describe('a copy of parsed JSON', () => {
  it.each([0, 1, 5])('is as deep as %i levels and no deeper', (depth) => {
    for (const make of [nested, nestedIn]) {
      expect(plainCopy(make(depth), depth)).toEqual(make(depth));
      expect(plainCopy(make(depth + 1), depth)).toBeUndefined();
      expect(plainCopy([1, { a: make(depth) }], depth + 2)).toEqual([1, { a: make(depth) }]);
      expect(plainCopy([1, { a: make(depth + 1) }], depth + 2)).toBeUndefined();
    }
  });

  it('shares nothing, and has no prototype key', () => {
    const source = JSON.parse('{"a":[{"b":null}],"__proto__":{"c":1},"constructor":2}');
    const copy = plainCopy(source, 9);
    expect(JSON.stringify(copy)).toBe('{"a":[{"b":null}],"constructor":2}');
    source.a[0].b = 1;
    expect(JSON.stringify(copy)).toBe('{"a":[{"b":null}],"constructor":2}');
  });

  it('is undefined for text that is not JSON; null is JSON', () => {
    expect(['null', '{', '', '1 2', '"a"'].map(parseJson)).toEqual([null, undefined, undefined, undefined, 'a']);
  });
});

describe('an object in text', () => {
  const VALUES = [
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1.5',
    '1e5',
    '1E5',
    '1e+5',
    '1E-5',
    '-1.5e-3',
    '""',
    '"\\\\"',
    '"\\""',
    '"{"',
    '[]',
    '{}',
    '[1,"]"]',
  ];
  it.each(VALUES)('holds %s, wherever it stands', (value) => {
    for (const text of [
      `{"a":${value}}`,
      `{"a":[${value},${value}],"b":${value}}`,
      `{ "a" :\t${value}\r\n, "b" : ${value} }`,
    ]) {
      const read = objectAt(`${text}}`, 0);
      expect(read).toMatchObject({ end: text.length });
      const fields =
        'fields' in read ? [...read.fields].map(([name, span]) => [name, JSON.parse(text.slice(...span))]) : [];
      expect(Object.fromEntries(fields)).toEqual(JSON.parse(text));
    }
  });

  it('of 65 levels is one, and of 66 is none', () => {
    const deep = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
    expect(objectAt(deep(65), 0)).toMatchObject({ end: deep(65).length });
    expect(objectAt(deep(66), 0)).toEqual({ broken: expect.any(Number) });
  });

  it('has the last value of a repeated key, and no keys of nested objects', () => {
    const text = '{"a":1,"b":{"a":2,"c":3},"\\u0061":4}';
    const read = objectAt(text, 0);
    expect('fields' in read && [...read.fields].map(([name, span]) => [name, text.slice(...span)])).toEqual([
      ['a', '4'],
      ['b', '{"a":2,"c":3}'],
    ]);
  });
});
