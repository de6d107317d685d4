import { defineConfig } from 'vitest/config';
import { proves } from './test/support/tier.ts';

/** What replaces modules or system calls, or counts what its process holds: each file has a process of its own. */
const APART = [
  'test/package/*.test.ts',
  'test/content/withoutSharp.test.ts',
  'test/stores/jsonl{,Append,FullDisk,Links,Races,Refusals,Rubbish,Size,Versions}.test.ts',
  'test/tools/coding/{bashEnvironment,bashOutput,grep,processTree,read}.test.ts',
];
/** Processes of the built package. */
const BUILT = ['test/e2e/**/*.test.ts'];
/** Nothing but volume. */
const AT_LENGTH = ['test/simulation/explore.test.ts'];

export default defineConfig({
  test: {
    // Guards against hanging alone: a slow machine that is shared may need ten times what a test takes.
    testTimeout: proves ? 600_000 : 60_000,
    hookTimeout: proves ? 600_000 : 60_000,
    expect: { poll: { timeout: 20_000 } },
    // What was transformed is kept in node_modules: the next project, run or planted defect takes it from there.
    experimental: { fsModuleCache: true },
    // Every core: the default leaves one out, which on a machine of two is half of them.
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        // The sources are loaded once a worker, not once a file: that is most of what a small test costs.
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...APART, ...BUILT, ...(proves ? [] : AT_LENGTH)],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'apart', include: APART } },
      { extends: true, test: { name: 'e2e', include: BUILT, isolate: false, globalSetup: ['test/support/build.ts'] } },
    ],
  },
});
