/**
 * Checks how the JSONL store opens a damaged file. Invariant: a refused file stays unchanged. A repairable file stays
 * unchanged until an append, and has no damage at the next opening.
 */
import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { all, notice, opened } from '../../src/testing/storeSuite/storeCase.ts';
import { noticeCodes, type Place, placeWith } from './storeDirectory.ts';

/** Expects that opening is refused with this code and line, and that the file stays unchanged. */
export async function refuses(content: string | Uint8Array, code: string, line?: number): Promise<Place> {
  const found = await placeWith(content);
  await expect(found.store.open('c')).rejects.toMatchObject({ name: 'CorruptLogError', code, line });
  expect((await readFile(found.path('c.jsonl'))).equals(Buffer.from(content))).toBe(true);
  return found;
}

/** Expects these entries and notices, and that one append repairs the file. */
export async function mends(content: string | Uint8Array, kept: LogEntry[], codes: string[]): Promise<void> {
  const found = await placeWith(content);
  const next = notice('c', kept.length, 'next');
  const last = notice('c', kept.length + 1, 'last');
  await opened(found.store, 'c', async (handle) => {
    expect(noticeCodes(handle)).toEqual(codes);
    expect(await all(handle)).toEqual(kept);
    expect((await readFile(found.path('c.jsonl'))).equals(Buffer.from(content))).toBe(true);
    await handle.append([next], kept.length);
    expect(await all(handle)).toEqual([...kept, next]);
    // A repaired file is not repaired again.
    await handle.append([last], kept.length + 1);
    expect(await all(handle)).toEqual([...kept, next, last]);
  });
  await opened(found.store, 'c', async (handle) => {
    expect(await all(handle)).toEqual([...kept, next, last]);
    expect(noticeCodes(handle).filter((code) => ['torn_tail', 'zero_bytes', 'blank_tail'].includes(code))).toEqual([]);
  });
}
