/**
 * The seed of everything that tests draw at random. Rule: the contents of `src/` and `machines/` alone decide it, so that
 * new sources try something new, and neither a page, a test nor the history turns a run red that was green.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['machines', 'src'];
const SOURCE = /\.(ts|tsx|json)$/;
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The first of a thousand seeds that belong to these sources, far beyond the fixed ones. */
export function seedOfSources(place: string): number {
  const hash = createHash('sha256');
  for (const folder of FOLDERS) {
    const found = readdirSync(join(place, folder), { recursive: true, encoding: 'utf8' });
    const files = found.filter((file) => SOURCE.test(file)).map((file) => file.replaceAll('\\', '/'));
    for (const file of files.sort()) {
      const text = readFileSync(join(place, folder, file), 'utf8').replaceAll('\r\n', '\n');
      hash.update(`${folder}/${file}\0${text}\0`);
    }
  }
  return 1_000_000 + Number.parseInt(hash.digest('hex').slice(0, 5), 16) * 1_000;
}

let own: number | undefined;
/** The seed of the sources as they are. `SEED=N` takes its place: a failure is repeated after the sources have changed. */
export function sourceSeed(): number {
  if (process.env.SEED) return Number(process.env.SEED);
  own ??= seedOfSources(root);
  return own;
}
