/**
 * Plants a defect while sources are loaded. Invariant: nothing on disk changes. A defect contains texts and no file
 * names, so a file may move. A text must occur exactly once, so that the planted
 * defect is the described one; otherwise planting throws.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** White space must equal the formatter's. */
const patternOf = (text) => new RegExp(text.trim().split(/\s+/).map(escaped).join('\\s+'), 'g');

let read;
/** All sources by path. */
function sources() {
  read ??= new Map(
    ['src', 'machines'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => [join(root, folder, name), readFileSync(join(root, folder, name), 'utf8')]),
    ),
  );
  return read;
}
const longest = (words) => words.reduce((best, word) => (word.length > best.length ? word : best), '');

/** The files that the edits change, by path, with their new content. */
export function planted(edits) {
  const changed = new Map();
  for (const [find, replace] of edits) {
    const pattern = patternOf(find);
    const word = longest(find.trim().split(/\s+/));
    const found = [...sources()].flatMap(([file, original]) => {
      const source = changed.get(file) ?? original;
      return source.includes(word) ? Array(source.match(pattern)?.length ?? 0).fill(file) : [];
    });
    if (found.length !== 1) {
      const where = found.map((file) => file.slice(root.length)).join(', ');
      throw new Error(`expected once in src/ and machines/, found ${found.length} times (${where}): ${find}`);
    }
    const [file] = found;
    changed.set(
      file,
      (changed.get(file) ?? sources().get(file)).replace(pattern, () => replace),
    );
  }
  return changed;
}

/** For esbuild. */
export const bundlerPlugin = (changed) => ({
  name: 'defect',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const contents = changed.get(path);
      return contents === undefined ? undefined : { contents, loader: 'ts' };
    });
  },
});

const fileOf = (id) => id.split('?')[0];
/** For Vite. Its cache of a file is keyed by the content on disk, so a file that is changed here is not cached. */
export const testPlugin = (changed) => ({
  name: 'defect',
  enforce: 'pre',
  load: (id) => changed.get(fileOf(id)),
  configureVitest: ({ experimental_defineCacheKeyGenerator: keep }) =>
    keep(({ id }) => (changed.has(fileOf(id)) ? false : undefined)),
});
