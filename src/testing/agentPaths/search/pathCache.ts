/**
 * Found paths, kept between runs of the tests: they depend on how calls behave, on policies and phases, and on nothing
 * else. Rule: what is kept is replayed before it counts; a cache that cannot be read or written is none.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { hash } from '../../../../machines/internal.ts';
import { chartsPrint } from './coverage.ts';
import type { Step } from './exploration.ts';

/** The words of a cover, and every transition that the graph can take. */
export interface FoundPaths {
  readonly words: readonly (readonly Step[])[];
  readonly reachable: readonly string[];
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

/** What was found for this description before, else what `find` finds. */
export function foundBefore(described: string, find: () => FoundPaths): FoundPaths {
  const name = hash(`${described} ${chartsPrint()}`);
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
