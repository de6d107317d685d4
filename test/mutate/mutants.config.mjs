/** The tests of one mistake, in the order in which `runTestMutants.mjs` lists them. */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import { filesOf, machinesBehaviour, mistaken } from './sourceMutants.mjs';

const root = new URL('../..', import.meta.url).pathname;
const { sources, tests } = JSON.parse(readFileSync(process.env.PLAN, 'utf8'));
const { texts } = mistaken(root, sources === 'machines' ? await machinesBehaviour(root) : await filesOf(root, sources));

class AsListed extends BaseSequencer {
  async sort(files) {
    const place = (file) => tests.findIndex((test) => file.moduleId.endsWith(`/${test}`));
    return [...files].sort((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  root,
  plugins: [{ name: 'mistakes', enforce: 'pre', transform: (_, id) => texts.get(id.replace(/\?.*/, '')) }],
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    setupFiles: ['test/mutate/mistakenSources.ts', 'test/support/seedFastCheck.ts'],
    include: tests,
    // Digests notice every change.
    testNamePattern: /^(?!.*committed digest says)/,
    isolate: false,
    maxWorkers: 1,
    bail: process.env.REACHED === undefined ? 1 : 0,
    sequence: { sequencer: AsListed },
  },
});
