/**
 * The seed of all random test data. Invariant: the contents of `src/` and `machines/` alone determine it. New sources
 * give new samples; a change of a page, a test or the history cannot turn a run red.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['machines', 'src'];
const SOURCE = /\.(ts|tsx|json)$/;
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The first of a thousand seeds for these sources, far above the fixed ones. */
export function seedOfSources(place: string): number {
  const hash = createHash('sha256');
  for (const folder of FOLDERS) {
    const names = readdirSync(join(place, folder), { recursive: true, encoding: 'utf8' });
    const files = names.filter((file) => SOURCE.test(file)).map((file) => file.replaceAll('\\', '/'));
    for (const file of files.sort()) {
      const text = readFileSync(join(place, folder, file), 'utf8').replaceAll('\r\n', '\n');
      hash.update(`${folder}/${file}\0${text}\0`);
    }
  }
  return 1_000_000 + Number.parseInt(hash.digest('hex').slice(0, 5), 16) * 1_000;
}

let own: number | undefined;
/** The seed of the current sources. `SEED=N` replaces it, to repeat a failure after the sources have changed. */
export function sourceSeed(): number {
  if (process.env.SEED) return Number(process.env.SEED);
  own ??= seedOfSources(root);
  return own;
}
