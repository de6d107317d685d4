/**
 * Plants a defect while sources are loaded. Rule: nothing on disk changes; a defect names texts and no files, so that a
 * file may move; a text that is not found exactly once is an error, since then nothing, or something else, was planted.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** White space is as the formatter leaves it. */
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

/** The files that the edits change, by path, with what stands in them then. */
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
/** For Vite. What is kept of a file between runs is known by what the disk holds: a file that is changed here is not kept. */
export const testPlugin = (changed) => ({
  name: 'defect',
  enforce: 'pre',
  load: (id) => changed.get(fileOf(id)),
  configureVitest: ({ experimental_defineCacheKeyGenerator: keep }) =>
    keep(({ id }) => (changed.has(fileOf(id)) ? false : undefined)),
});
