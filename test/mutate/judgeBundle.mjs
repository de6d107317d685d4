/**
 * The judge and all charts as one text, with every mistake of `sourceMutants.mjs` in it and none made. Rule: functions keep
 * nothing from one call to the next, so a mistake in one is made and taken back in one run of the text; what is mistaken
 * while modules load has a run of its own.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import { mistaken } from './sourceMutants.mjs';

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
function run(code, ...questions) {
  script ??= new Script(`(function (require, module, exports, __m, __any) {${code}\n})`);
  const module = { exports: {} };
  script.runInThisContext()(require, module, module.exports, ...questions);
  return module.exports;
}

/** A judge of its own with the mistake `on` made; 0 is none. */
export const loaded = (code, on) =>
  run(
    code,
    (id) => id === on,
    (first, last) => on >= first && on <= last,
  );

/**
 * One judge in which mistakes are made and taken back. What is passed counts by place: mistakes that stand in one place
 * are passed together, and have the number of the first.
 */
export function switched(code, count) {
  let on = 0;
  const row = new Uint8Array((count >> 3) + 1);
  const rows = new Map();
  const pass = (id) => {
    row[id >> 3] |= 1 << (id & 7);
  };
  const judge = run(
    code,
    (id) => {
      pass(id);
      return id === on;
    },
    (first, last) => {
      pass(first);
      return on >= first && on <= last;
    },
  );
  return {
    judge,
    make: (id) => {
      on = id;
    },
    /** Which places were passed since this was asked last. */
    passed: () => {
      const key = Buffer.from(row.buffer).toString('latin1');
      const found = rows.get(key) ?? row.slice();
      rows.set(key, found);
      row.fill(0);
      return found;
    },
  };
}
