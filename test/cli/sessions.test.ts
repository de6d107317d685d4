/** Which sessions a name that leads nowhere may stand for. */
import { describe, expect, test } from 'vitest';
import { nearNames } from '../../src/cli/sessions/sessionStore.ts';

describe('the names that are near', () => {
  const names = ['rent', 'renovation', 'trip-2026', '20261122-170000-a1b2c3', '20261122-170000-ffffff', 'ünïcode 🎉'];

  test.for<[string, string, string[]]>([
    ['two letters swapped', 'rnet', ['rent']],
    ['a letter left out', 'ret', ['rent']],
    ['a letter too many', 'rennt', ['rent']],
    ['another letter', 'vent', ['rent']],
    ['other cases', 'TRIP-2026', ['trip-2026']],
    ['a beginning alone', 'ren', ['rent', 'renovation']],
    ['a time alone', '20261122', ['20261122-170000-a1b2c3', '20261122-170000-ffffff']],
    ['the nearest of two', '20261122-170000-a1b2c4', ['20261122-170000-a1b2c3', '20261122-170000-ffffff']],
    ['an accent', 'unïcode 🎉', ['ünïcode 🎉']],
    ['nothing like it', 'holiday', []],
    ['too many letters changed', 'trap-1999', []],
    ['no name at all', '', []],
  ])('%s', ([, given, near]) => {
    expect(nearNames(given, names)).toEqual(near);
  });

  test('are three at most, the nearest first', () => {
    const many = ['abcdef3', 'abcxxz', 'abcdef1', 'abcdef2', 'abcdxf'];
    expect(nearNames('abcdef', many)).toEqual(['abcdef3', 'abcdef1', 'abcdef2']);
    expect(nearNames('abcdxx', many)).toEqual(['abcdxf', 'abcxxz']);
  });
});
