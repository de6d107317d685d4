/**
 * Found paths, kept between runs of the tests: they depend on how calls behave, on policies and phases, and on the files of
 * the charts and of the search. Rule: a cache that cannot be read or written is none.
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
  /** The bounds that had to be drawn closer. */
  readonly closer?: Partial<Bounds>;
}

const kept = new Map<string, FoundPaths>();

/** Under node_modules of the directory where the tests run; nothing where there is none. */
function folder(): string | undefined {
  try {
    const root = createRequire(join(process.cwd(), 'package.json')).resolve('xstate/package.json');
    return join(root, '..', '..', '.cache', 'runchart-paths');
  } catch {
    return undefined;
  }
}

let fingerprint: string | undefined;

/** Of all files of the charts and of the search: a change in any may change the paths. Nothing where they are not at hand. */
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

/** What was found for this description before, else what `find` finds. */
export function foundBefore(described: string, find: () => FoundPaths): FoundPaths {
  const files = fingerprintOfFiles();
  if (files === undefined) return find();
  const name = hash(`${described} ${files}`);
  const known = kept.get(name) ?? read(name);
  if (known) {
    kept.set(name, known);
    return known;
  }
  const found = find();
  kept.set(name, found);
  write(name, found);
  return found;
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

function write(name: string, found: FoundPaths): void {
  const place = folder();
  if (!place) return;
  try {
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `${name}.json`), JSON.stringify(found));
  } catch {
    // A place that cannot be written to keeps nothing.
  }
}
