import { defineConfig } from 'vitest/config';

/** What goes over many lives or over all paths of a chart, and does not depend on the version of Node. */
const VOLUME = ['test/paths/*.test.ts', 'test/simulation/{lives,explore}*.test.ts'];

export default defineConfig({
  test: {
    // Guards against hanging alone: a slow machine that is shared may need ten times what a test takes.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    // Every core: the default leaves one out, which on a machine of two is half of them.
    maxWorkers: '100%',
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: ['test/e2e/**', ...VOLUME] } },
      { extends: true, test: { name: 'volume', include: VOLUME } },
      {
        extends: true,
        test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], globalSetup: ['test/support/build.ts'] },
      },
    ],
  },
});
