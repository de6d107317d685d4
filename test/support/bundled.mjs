/**
 * Loads TypeScript of the tests into this process. The file is bundled with its imports, so no build is needed and the
 * current sources run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

/** Some of the packages are CommonJS and load Node's modules with `require`. */
const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
export const bundleOptions = { bundle: true, platform: 'node', format: 'esm', banner, logLevel: 'warning' };

/**
 * Returns the exports of `contents`. Imports are resolved from `resolveDir`, and `plugins` may change what is loaded.
 */
export async function bundled(contents, resolveDir, plugins = []) {
  const place = await mkdtemp(join(tmpdir(), 'runchart-bundle-'));
  const outfile = join(place, 'bundle.mjs');
  const stdin = { contents, resolveDir, loader: 'ts' };
  try {
    await build({ ...bundleOptions, stdin, outfile, plugins });
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(place, { recursive: true });
  }
}
