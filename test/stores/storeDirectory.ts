/**
 * Directories and files for tests of the JSONL store. Invariant: every test has its own directory, which is removed
 * afterwards. Damaged bytes come from a real store.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import type { LogHandle, LogStore } from '../../src/stores/logStore.ts';
import { write } from '../../src/testing/storeSuite/storeCase.ts';

export interface Place {
  directory: string;
  store: LogStore;
  path(name: string): string;
}

export async function place(): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'runchart-store-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return { directory, store: jsonlStore(directory), path: (name) => join(directory, name) };
}

/** Returns the lines, header first, that a store writes for these entries of conversation `c`. */
export async function linesFor(entries: readonly LogEntry[]): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'runchart-lines-'));
  try {
    await write(jsonlStore(directory), 'c', entries);
    return (await readFile(join(directory, 'c.jsonl'), 'utf8')).split('\n').slice(0, -1);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Makes a directory whose conversation `c` has exactly this content. */
export async function placeWith(content: string | Uint8Array): Promise<Place> {
  const found = await place();
  await writeFile(found.path('c.jsonl'), content);
  return found;
}

export async function contentOf({ path }: Place): Promise<string> {
  return readFile(path('c.jsonl'), 'utf8');
}

export function noticeCodes(handle: LogHandle): string[] {
  return (handle.notices ?? []).map((notice) => notice.code);
}
