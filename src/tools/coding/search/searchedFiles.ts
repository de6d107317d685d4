/**
 * The files that Grep and Glob look at, and their order by time. Rule: entries that `.gitignore` names are left out, unless the path of
 * the search leads into one.
 */
import { lstat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { filesBelow, inDirectory, type Place } from '../workspace.ts';
import { IgnoredEntries } from './ignoredEntries.ts';

/** More files than these are not sorted by time. */
const DATED_MAX = 20_000;

/** Names relative to the place, sorted. Throws the signal's reason on abort. */
export async function searchedFiles({ root, path }: Place, signal: AbortSignal): ReturnType<typeof filesBelow> {
  const ignored = await IgnoredEntries.above(root, path);
  return filesBelow(path, signal, undefined, ignored?.kept.bind(ignored));
}

/** The names of the files that changed last come first. Undefined if there are too many. */
export async function newestFirst(
  { path }: Place,
  names: readonly string[],
  signal: AbortSignal,
): Promise<string[] | undefined> {
  if (names.length > DATED_MAX) return undefined;
  const directories = new Map<string, string[]>();
  for (const name of names) {
    const files = directories.get(dirname(name)) ?? [];
    directories.set(dirname(name), files);
    files.push(name);
  }
  const times = new Map<string, number>();
  for (const [directory, files] of directories) {
    signal.throwIfAborted();
    await inDirectory(join(path, directory), async (heldPath) => {
      for (const name of files) {
        const stats = await lstat(join(heldPath, basename(name))).catch(() => undefined);
        times.set(name, stats?.mtimeMs ?? 0);
      }
    }).catch(() => undefined);
  }
  const timeOf = (name: string): number => times.get(name) ?? 0;
  return [...names].sort((a, b) => timeOf(b) - timeOf(a) || (a < b ? -1 : 1));
}
