/**
 * Test files under planted defects, in one Vitest that keeps running. Its transformed files are cached, so a defect
 * costs a worker, the evaluation of modules and the tests. Invariant: each run has a separate process and loads only
 * its own planted texts.
 */
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createVitest } from 'vitest/node';
import { testPlugin } from './plantDefect.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
/**
 * For one test of the first tier, and of the whole volume. A limit for tests that hang, far above that of slow ones.
 */
const HANG_MS = [120_000, 600_000];
/** Random values of a test are the same in every search, for any sources; each later look uses others. */
const SEED = 1_000_000;
const SEED_STEP = 1_000;
/** For a worker that ignores the request to end. */
const END_MS = 30_000;

const nowhere = () =>
  new Writable({
    write: (_chunk, _encoding, done) => done(),
  });
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** As the name pattern receives it. */
const nameOf = ({ name, parent }) => (parent.type === 'module' ? name : `${nameOf(parent)} ${name}`);

/** Settles like `work`; rejects with `message` if that takes longer than `ms`. */
async function within(ms, message, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function openVitest(load, reporter) {
  const options = {
    root,
    config: false,
    watch: false,
    cache: false,
    silent: true,
    isolate: true,
    pool: 'forks',
    maxWorkers: 1,
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seedFastCheck.ts'],
    reporters: [reporter],
    experimental: { fsModuleCache: true },
  };
  const vitest = await createVitest('test', options, { plugins: [load] }, { stdout: nowhere(), stderr: nowhere() });
  await vitest.standalone();
  return vitest;
}

/** `longestMs`: for all tests of one run. */
export function openWitnesses(longestMs) {
  const changed = new Map();
  const failed = [];
  let slowestMs = 0;
  let ended;
  const reporter = {
    onTestCaseResult(test) {
      slowestMs = Math.max(slowestMs, test.diagnostic()?.duration ?? 0);
      if (test.result().state === 'failed') failed.push(nameOf(test));
    },
    onTestModuleEnd: (module) => {
      ended = module;
    },
  };
  let vitest;
  /** Files that the previous run had changed are loaded from disk again. */
  function plant(planted) {
    const files = [...changed.keys(), ...planted.keys()];
    changed.clear();
    for (const [file, source] of planted) changed.set(file, source);
    for (const file of files) vitest.invalidateFile(file);
  }
  async function close() {
    const closing = vitest;
    vitest = undefined;
    await closing?.close();
  }
  async function ends(specification) {
    const message = `not over after ${longestMs / 1000} s`;
    try {
      return await within(longestMs, message, vitest.runTestSpecifications([specification]));
    } catch (error) {
      // The second request kills.
      const cancelled = Promise.all(['keyboard-input', 'keyboard-input'].map((why) => vitest.cancelCurrentRun(why)));
      await within(END_MS, message, cancelled).catch(() => {});
      await within(END_MS, message, close()).catch(() => {});
      throw error;
    }
  }
  return {
    /**
     * Runs the tests of `file` with `planted` in place of sources. `failed`: the first test that fails, or all if
     * nothing is planted. `names`: only these tests. `look`: 1 is the volume of `npm test`, 2 the whole volume, each
     * later one the whole volume with other random values. `timeoutMs`: for each test.
     */
    async run(planted, file, { names, look = 1, timeoutMs = HANG_MS[look > 1 ? 1 : 0] } = {}) {
      vitest ??= await openVitest(testPlugin(changed), reporter);
      plant(planted);
      failed.length = 0;
      slowestMs = 0;
      ended = undefined;
      vitest.state.filesMap.clear();
      const project = vitest.getRootProject();
      const { config } = project;
      Object.assign(config, { testTimeout: timeoutMs, hookTimeout: timeoutMs, bail: planted.size > 0 ? 1 : 0 });
      config.expect = { poll: { timeout: timeoutMs / 3 } };
      const seed = SEED + Math.max(0, look - 2) * SEED_STEP;
      config.env = { ...config.env, PROVE: look > 1 ? '1' : '', SEED: `${seed}` };
      const testNamePattern = names && new RegExp(`^(?:${names.map(escaped).join('|')})$`);
      const { unhandledErrors } = await ends(project.createSpecification(`${root}${file}`, { testNamePattern }));
      const [wrong] = [...(ended?.errors() ?? []), ...unhandledErrors];
      const ran = ended && [...ended.children.allTests()].some((test) => test.result().state !== 'skipped');
      // A missing name is not a failure.
      const gone = names && ended && !wrong;
      if (failed.length === 0 && !(ran && ended.ok()) && !gone)
        throw new Error(`Error: ${file}: ${wrong?.message ?? 'no test ran'}`);
      return { failed: [...failed], slowestMs };
    },
    close,
  };
}
