/**
 * The judge and all charts as one text, with every mistake of `sources.mjs` in it and none made; run once for each
 * mistake. Rule: each run has modules of its own, so nothing that one mistake left is seen by the next.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import { mistaken } from './sources.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);

/** The text, and the mistakes by number. */
export async function written() {
  const { texts, mistakes } = await mistaken(ROOT);
  const plugin = {
    name: 'mistakes',
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.ts$/ }, ({ path }) =>
        texts.has(path) ? { contents: texts.get(path), loader: 'ts' } : undefined,
      ),
  };
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('judge.ts', import.meta.url))],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    // Mistakes are told by the names of functions.
    keepNames: true,
    external: ['xstate', '@xstate/graph', 'rxjs'],
    plugins: [plugin],
    logLevel: 'warning',
  });
  return { code: outputFiles[0].text, mistakes };
}

let script;
/** The judge with the mistake `on` made; 0 is none. `hits` learns where a mistake could have shown. */
export function loaded(code, on, hits) {
  script ??= new Script(`(function (require, module, exports, __m, __any) {${code}\n})`);
  const module = { exports: {} };
  const made = (id) => id === on;
  const anyMade = (first, last) => on >= first && on <= last;
  const noted = (id) => {
    hits[id] = 1;
    return id === on;
  };
  const anyNoted = (first, last) => {
    hits.fill(1, first, last + 1);
    return anyMade(first, last);
  };
  script.runInThisContext()(require, module, module.exports, ...(hits ? [noted, anyNoted] : [made, anyMade]));
  return module.exports;
}
