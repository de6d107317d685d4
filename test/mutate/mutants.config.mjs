/** The tests of a mistake, in the order in which `runTestMutants.mjs` lists them. */
import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import { filesOf, machinesBehaviour, mistaken } from './sourceMutants.mjs';

const root = new URL('../..', import.meta.url).pathname;
const sources = process.env.SOURCES.split(' ');
const { texts } = mistaken(
  root,
  sources[0] === 'machines' ? await machinesBehaviour(root) : await filesOf(root, sources),
);

class AsListed extends BaseSequencer {
  async sort(files) {
    return files;
  }
}

export default defineConfig({
  root,
  plugins: [{ name: 'mistakes', enforce: 'pre', transform: (_, id) => texts.get(id.replace(/\?.*/, '')) }],
  test: {
    // This limit only ends hangs: a slow machine that is shared may need ten times the usual time of a test.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    setupFiles: ['test/mutate/mistakenSources.ts', 'test/support/seedFastCheck.ts'],
    include: ['test/**/*.test.ts'],
    // Digests notice every change.
    testNamePattern: /^(?!.*committed digest)/,
    isolate: false,
    maxWorkers: 1,
    bail: process.env.REACHED === undefined ? 1 : 0,
    sequence: { sequencer: AsListed },
  },
});
