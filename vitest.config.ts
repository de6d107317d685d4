import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { HANG_MS, proves } from './test/support/tier.ts';

/** What replaces modules or system calls, or counts what its process holds: each file has a process of its own. */
export const APART = [
  'test/package/*.test.ts',
  'test/content/withoutSharp.test.ts',
  'test/cli/interactive/{drawnTerminal,lineTerminal}.test.ts',
  'test/cli/runCommand.test.ts',
  'test/client/releasedAnswers.test.ts',
  'test/hostile/timeAndProcess.test.ts',
  'test/inspect/{channel,handlerStreams,page/*}.test.ts',
  'test/models/{everyEnd,listedPrices,openaiAbort}.test.ts',
  'test/restate/{notifyHub,watchers,worker}.test.ts',
  'test/scenarios/garbage.test.ts',
  'test/stores/jsonl{FullDisk,Links,Races,Refusals,Rows,Size}.test.ts',
  'test/stores/postgres/{betweenProcesses,leases,queries,storeParts}.test.ts',
  'test/testing/smallTools.test.ts',
  'test/tools/coding/{bashOutput,grep,processTree,webPages}.test.ts',
];
/** Processes of the built package. */
const BUILT = ['test/e2e/**/*.test.ts'];
/** Nothing but volume. */
const AT_LENGTH = ['test/simulation/explore.test.ts'];
/** Short files that take long: Vitest begins with the largest files, and would leave these to the end. */
const LONG = [
  'browser/browser',
  'docs/fences',
  'paths/run.states',
  'crash/kill',
  'paths/states',
  'inspect/page',
  'interpreter/shadow',
  'simulation/ownAgent',
  'paths/run.paths',
];

/** Nothing long is left to one worker alone, while the others have nothing to do. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const long = LONG.flatMap((name) => sorted.filter(({ moduleId }) => moduleId.endsWith(`/test/${name}.test.ts`)));
    const rest = sorted.filter((file) => !long.includes(file));
    const at = rest.findIndex(({ project }) => project === long[0]?.project);
    return [...rest.slice(0, at), ...long, ...rest.slice(at)];
  }
}

export default defineConfig({
  test: {
    // Guards against hanging alone: a slow machine that is shared may need ten times what a test takes.
    testTimeout: proves ? HANG_MS : 60_000,
    hookTimeout: proves ? HANG_MS : 60_000,
    expect: { poll: { timeout: proves ? 90_000 : 20_000 } },
    setupFiles: ['test/support/seedFastCheck.ts'],
    // What was transformed is kept in node_modules: the next project, run or planted defect takes it from there.
    experimental: { fsModuleCache: true },
    // One more than there are cores: of three one waits, for a process, a browser or a disk.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
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
      {
        extends: true,
        test: { name: 'e2e', include: BUILT, isolate: false, globalSetup: ['test/support/builtPackage.ts'] },
      },
    ],
  },
});
