/** References of bytes, and the errors of the SQLite store, which pass from its thread. */
import { describe, expect, test } from 'vitest';
import {
  ConfigurationError,
  CorruptLogError,
  RunchartError,
  SessionBusyError,
  StoreConflictError,
} from '../../src/errors.ts';
import { blobReference, checkMediaType, hashIn } from '../../src/stores/blobReference.ts';
import { databaseError } from '../../src/stores/sqlite/nodeSqlite.ts';
import { describeError, errorFrom } from '../../src/stores/sqlite/threadMessages.ts';
import { resultOrError } from '../support/resultOrError.ts';

describe('a reference of bytes', () => {
  const part = (length: number): string => 'x'.repeat(length);
  test.each<[string, boolean]>([
    ['image/png', true],
    ['text/plain; charset=utf-8', true],
    ['text/plain;charset=utf-8', true],
    [`${part(64)}/${part(64)}`, true],
    [`${part(65)}/x`, false],
    [`x/${part(65)}`, false],
    ['a/b; a=b; a=b; a=b; a=b', true],
    ['a/b; a=b; a=b; a=b; a=b; a=b', false],
    ['image', false],
    ['image/', false],
    ['image/png;', false],
    ['image/../x', false],
    ['image/png\n', false],
    ['', false],
  ])('of the media type %j is one: %s', (mediaType, isOne) => {
    const hash = 'ab'.repeat(32);
    if (isOne) {
      expect(() => checkMediaType(mediaType)).not.toThrow();
      expect(hashIn(blobReference(hash, mediaType))).toBe(hash);
    } else {
      expect(resultOrError(() => checkMediaType(mediaType))).toBeInstanceOf(ConfigurationError);
      expect(resultOrError(() => hashIn(blobReference(hash, mediaType)))).toMatchObject({ code: 'store' });
    }
    for (const odd of ['AB'.repeat(32), 'ab'.repeat(31), `${hash}a`, '../'.repeat(21)])
      expect(resultOrError(() => hashIn(blobReference(odd, 'image/png')))).toMatchObject({ code: 'store' });
  });
});

describe('an error of the thread of a SQLite store', () => {
  test.each<[string, RunchartError | Error, typeof RunchartError, string]>([
    ['busy', new SessionBusyError('why'), SessionBusyError as never, 'session_busy'],
    ['conflict', new StoreConflictError('why'), StoreConflictError as never, 'store_conflict'],
    ['configuration', new ConfigurationError('why'), ConfigurationError as never, 'configuration'],
    ['gap', new CorruptLogError('gap', 'why', 7), CorruptLogError as never, 'gap'],
    ['corrupt, without a line', new CorruptLogError('corrupt', 'why'), CorruptLogError as never, 'corrupt'],
    ['not found', new RunchartError('not_found', 'why'), RunchartError, 'not_found'],
    ['closed', new RunchartError('closed', 'why'), RunchartError, 'closed'],
    ['store', new RunchartError('store', 'why'), RunchartError, 'store'],
    ['another', new Error('why'), RunchartError, 'store'],
  ])('keeps its class, its code and its line: %s', (_, error, Class, code) => {
    const passed = errorFrom(structuredClone(describeError(error)));
    expect(passed).toBeInstanceOf(Class);
    expect(passed.constructor).toBe(Class);
    expect(passed.code).toBe(code);
    expect(passed.message).toContain('why');
    expect((passed as CorruptLogError).line).toBe((error as CorruptLogError).line);
  });

  test.each<[number | undefined, string]>([
    [26, 'no_header'],
    [26 + 256, 'no_header'],
    [11, 'corrupt'],
    [11 + 512, 'corrupt'],
    [13, 'store'],
    [5, 'store'],
    [undefined, 'store'],
  ])('of SQLite with the number %s is %s', (errcode, code) => {
    const cause = Object.assign(new Error('why'), errcode !== undefined && { errcode });
    const error = databaseError('what', cause);
    expect(error).toMatchObject({ code, message: expect.stringContaining('what: ') });
    expect(error instanceof CorruptLogError).toBe(code !== 'store');
    expect(databaseError('again', error)).toBe(error);
  });
});
