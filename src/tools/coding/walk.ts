/**
 * The files below a directory. Rule: hidden entries, `.git`, `node_modules` and links are left out, the number of
 * entries looked at is bounded, and no pattern of a model ever takes part.
 */
import { type Dirent, readdir } from 'node:fs';
import { join } from 'node:path';
import { glob } from 'tinyglobby';

const ENTRIES_MAX = 200_000;

export interface Walk {
  /** Relative to the directory with `/` between the parts, sorted by code unit. */
  names: string[];
  /** Not everything was looked at. */
  cut: boolean;
}

type Listed = (error: Error | null, entries: Dirent[]) => void;

/** Throws the signal's reason on abort. Directories that cannot be read count as empty. */
export async function filesBelow(directory: string, signal: AbortSignal, entriesMax = ENTRIES_MAX): Promise<Walk> {
  let seen = 0;
  let cut = false;
  const boundedReaddir = (path: string, options: { withFileTypes: true }, done: Listed): void => {
    if (seen >= entriesMax) {
      cut = true;
      done(null, []);
      return;
    }
    readdir(join(directory, path.slice(path.indexOf('/'))), options, (error, entries = []) => {
      seen += entries.length;
      done(error, entries);
    });
  };
  const names = await glob('**/*', {
    // The library sees the directory as its root: in a base of its own it would take a backslash for a separator.
    cwd: '/',
    fs: { readdir: boundedReaddir as unknown as typeof readdir },
    dot: false,
    followSymbolicLinks: false,
    expandDirectories: false,
    ignore: ['**/node_modules', '**/.git'],
    signal,
  });
  signal.throwIfAborted();
  return { names: names.sort(), cut };
}
