/**
 * The judge and all charts as one text, with every mistake of `sourceMutants.mjs` included and none active. Invariant:
 * functions keep no state between calls, so a mistake can be switched on and off in one run of the text. A mistake in
 * code that runs while modules load has a separate run.
 */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { build } from 'esbuild';
import { machinesBehaviour, mistaken } from './sourceMutants.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);

/** The text, and the mistakes by number. */
export async function written() {
  const { texts, mistakes } = mistaken(ROOT, await machinesBehaviour(ROOT));
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
    // Mistakes are identified by the names of functions.
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

/** A separate judge with the mistake `on` active; 0 is none. */
export const loaded = (code, on) =>
  run(
    code,
    (id) => id === on,
    (first, last) => on >= first && on <= last,
  );

/**
 * One judge in which mistakes are switched on and off. Reached places are counted. Mistakes in one place are reached
 * together and share the number of the first one.
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
    /** The places that were reached since the last call. */
    passed: () => {
      const key = Buffer.from(row.buffer).toString('latin1');
      const found = rows.get(key) ?? row.slice();
      rows.set(key, found);
      row.fill(0);
      return found;
    },
  };
}
