/** Runs the tests that must find one planted defect, the one that DEFECT names; the sources as they are where it is not set. */
import { defineConfig } from 'vitest/config';
import { defects } from './all.mjs';
import { planted, testPlugin } from './plant.mjs';

const edits = defects.find(({ id }) => id === process.env.DEFECT)?.edits ?? [];

export default defineConfig({
  plugins: [testPlugin(planted(edits))],
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // What hangs is found out, and soon.
    testTimeout: edits.length > 0 ? 15_000 : 60_000,
    hookTimeout: edits.length > 0 ? 15_000 : 60_000,
    bail: edits.length > 0 ? 1 : 0,
    // A hunt loads what the one before it has loaded, but for the file of the defect.
    experimental: { fsModuleCache: true },
  },
});
