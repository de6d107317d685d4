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

/** The files that the edits change, by path, with what stands in them then. */
export function planted(edits) {
  const files = ['src', 'machines'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, folder, name)),
  );
  const sources = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const changed = new Map();
  for (const [find, replace] of edits) {
    const pattern = patternOf(find);
    const found = [...sources].flatMap(([file, source]) => Array(source.match(pattern)?.length ?? 0).fill(file));
    if (found.length !== 1) {
      const where = found.map((file) => file.slice(root.length)).join(', ');
      throw new Error(`expected once in src/ and machines/, found ${found.length} times (${where}): ${find}`);
    }
    const [file] = found;
    const source = sources.get(file).replace(pattern, () => replace);
    sources.set(file, source);
    changed.set(file, source);
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

/** For Vite. */
export const testPlugin = (changed) => ({
  name: 'defect',
  enforce: 'pre',
  load: (id) => changed.get(id.split('?')[0]),
});
