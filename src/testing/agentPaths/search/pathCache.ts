/**
 * Caches found paths between test runs. They depend on the behaviours of calls, on policies and phases, and on the
 * files of the charts and the search. Invariant: a cache that cannot be read or written is ignored.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { hash } from '../../../../machines/internal.ts';
import type { Bounds, Step } from './nextMoves.ts';

/** The words of a cover, and every transition that the graph can take. */
export interface FoundPaths {
  readonly words: readonly (readonly Step[])[];
  readonly reachable: readonly string[];
  /** The bounds that were lowered. */
  readonly closer?: Partial<Bounds>;
}

const kept = new Map<string, FoundPaths>();

/** Returns a folder under the `node_modules` of the working directory, or undefined if there is none. */
function folder(): string | undefined {
  try {
    const root = createRequire(join(process.cwd(), 'package.json')).resolve('xstate/package.json');
    return join(root, '..', '..', '.cache', 'runchart-paths');
  } catch {
    return undefined;
  }
}

let fingerprint: string | undefined;

/**
 * Returns a hash of all files of the charts and the search, because a change in any of them may change the paths.
 * Undefined if the files are missing.
 */
function fingerprintOfFiles(): string | undefined {
  if (fingerprint !== undefined) return fingerprint;
  try {
    const texts = ['../../../../machines', '..'].flatMap((folder) => {
      const path = join(import.meta.dirname, folder);
      const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((file) => /\.[jt]s$/.test(file));
      return files.sort().map((file) => `${file} ${readFileSync(join(path, file), 'utf8')}`);
    });
    fingerprint = hash(texts.join('\n'));
    return fingerprint;
  } catch {
    return undefined;
  }
}

/** Returns the cached paths for this description, or else the result of `find`. */
export function foundBefore(described: string, find: () => FoundPaths): FoundPaths {
  const files = fingerprintOfFiles();
  if (files === undefined) return find();
  const name = hash(`${described} ${files}`);
  const cached = kept.get(name) ?? read(name);
  if (cached) {
    kept.set(name, cached);
    return cached;
  }
  const paths = find();
  kept.set(name, paths);
  write(name, paths);
  return paths;
}

function read(name: string): FoundPaths | undefined {
  const place = folder();
  if (!place) return undefined;
  try {
    return JSON.parse(readFileSync(join(place, `${name}.json`), 'utf8')) as FoundPaths;
  } catch {
    return undefined;
  }
}

function write(name: string, paths: FoundPaths): void {
  const place = folder();
  if (!place) return;
  try {
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `${name}.json`), JSON.stringify(paths));
  } catch {
    // If the folder is not writable, nothing is cached.
  }
}
