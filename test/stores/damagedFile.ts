/**
 * What the JSONL store makes of a file's content. Rule: what is refused is left as it is, and so is what is mended until
 * an append comes; the next opening finds nothing more to mend.
 */
import { readFile } from 'node:fs/promises';
import { expect } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { all, notice, opened } from '../../src/testing/storeSuite/storeCase.ts';
import { noticeCodes, type Place, placeWith } from './storeDirectory.ts';

/** Opening must be refused with this code and line, and must leave the file as it was. */
export async function refuses(content: string | Uint8Array, code: string, line?: number): Promise<Place> {
  const found = await placeWith(content);
  await expect(found.store.open('c')).rejects.toMatchObject({ name: 'CorruptLogError', code, line });
  expect((await readFile(found.path('c.jsonl'))).equals(Buffer.from(content))).toBe(true);
  return found;
}

/** Opens with these entries and notices; one more append makes the file whole again. */
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
    // What was mended once is not mended again.
    await handle.append([last], kept.length + 1);
    expect(await all(handle)).toEqual([...kept, next, last]);
  });
  await opened(found.store, 'c', async (handle) => {
    expect(await all(handle)).toEqual([...kept, next, last]);
    expect(noticeCodes(handle).filter((code) => ['torn_tail', 'zero_bytes', 'blank_tail'].includes(code))).toEqual([]);
  });
}
