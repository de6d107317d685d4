/**
 * Simulated lives under planted defects. Invariant: a life runs in a separate process, which is ended if it hangs. The
 * code is bundled here, and only the changed source files are read again for each defect.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { context } from 'esbuild';
import { bundleOptions } from '../support/bundled.mjs';
import { bundlerPlugin } from './plantDefect.mjs';

const LIVE = fileURLToPath(new URL('huntDefect.mjs', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
const start = promisify(execFile);

const PLAIN = "export { simulate } from '../simulation/checkedLife.ts';";
const EQUIPPED = "export { simulateEquipped as simulate } from '../simulation/equipment/index.ts';";
/**
 * The modules of a life, as the text of a module. `equipped` lives have permissions, hooks, an MCP server, an
 * inspector.
 */
export const entryOf = (equipped) =>
  `export { shrink } from '../../src/testing/index.ts';
   ${equipped ? EQUIPPED : PLAIN}`;

/** `longestMs`: for all lives of one call. */
export async function openLives(longestMs) {
  const place = await mkdtemp(join(tmpdir(), 'runchart-lives-'));
  const contexts = new Map();
  let planted = new Map();
  const contextOf = async (equipped) => {
    const existing = contexts.get(equipped);
    if (existing) return existing;
    const stdin = { contents: entryOf(equipped), resolveDir: HERE, loader: 'ts' };
    const outfile = join(place, `${equipped ? 'equipped' : 'plain'}.mjs`);
    // Called for every source: the changed ones are known only later.
    const plugins = [bundlerPlugin({ get: (path) => planted.get(path) })];
    const made = { outfile, bundler: await context({ ...bundleOptions, stdin, outfile, plugins }) };
    contexts.set(equipped, made);
    return made;
  };
  return {
    /** Loads the files of `changed` under a defect; `live` runs lives of it, as `huntDefect.mjs` describes. */
    async plant(changed, equipped = false) {
      planted = changed;
      const { outfile, bundler } = await contextOf(equipped);
      await bundler.rebuild();
      const env = { ...process.env, NODE_ENV: 'production' };
      return async (id, ...how) => {
        const args = [LIVE, id, ...how, '--bundle', outfile];
        const { stdout } = await start(process.execPath, args, { env, timeout: longestMs });
        return JSON.parse(stdout);
      };
    },
    async close() {
      await Promise.all([...contexts.values()].map(({ bundler }) => bundler.dispose()));
      await rm(place, { recursive: true });
    },
  };
}
