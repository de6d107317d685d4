/** Tests that the SHA-256 of the memory store is that of Node. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../../src/stores/sha256.ts';

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('sha256', () => {
  test('the text "abc" has the hash of FIPS 180', () => {
    expect(sha256(new TextEncoder().encode('abc'))).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });

  test('every length up to four blocks has the hash that Node computes', () => {
    const bytes = Uint8Array.from({ length: 257 }, (_, at) => (at * 131) % 256);
    for (let length = 0; length <= bytes.length; length += 1)
      expect(sha256(bytes.subarray(0, length)), `${length} bytes`).toBe(hashOf(bytes.subarray(0, length)));
  });

  test('a mebibyte, and a view into a larger buffer', () => {
    const large = Uint8Array.from({ length: 1024 * 1024 + 1 }, (_, at) => (at * at) % 251);
    expect(sha256(large)).toBe(hashOf(large));
    const view = new Uint8Array(large.buffer, 3, 100);
    expect(sha256(view)).toBe(hashOf(view));
  });
});
