/**
 * A child process of `runTestMutants.mjs`. It keeps the transformed sources and tests, and runs the test files of each
 * message in that order. It answers with the results, and sends `{ alive: true }` after each test. A message with `own`
 * gets a process that has loaded nothing before; other messages share a process that has loaded the sources.
 */
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createVitest } from 'vitest/node';
import { endKept, keptPool } from './keptWorker.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const alive = () => process.send({ alive: true });
let isOwn = true;

const vitest = await createVitest('test', {
  root: ROOT,
  config: 'test/mutate/mutants.config.mjs',
  watch: false,
  pool: keptPool(() => isOwn),
  reporters: [{ onTestCaseResult: alive, onTestModuleEnd: alive }],
});
await vitest.standalone();

function resultOf(module) {
  const tests = [...module.children.allTests()].filter((test) => test.result().state === 'failed');
  const errors = [...module.errors(), ...tests.flatMap((test) => test.result().errors ?? [])];
  return {
    file: relative(ROOT, module.moduleId),
    failed: module.state() === 'failed',
    test: tests[0]?.fullName,
    error: errors[0]?.message?.split('\n')[0],
    ms: module.diagnostic().duration,
  };
}

async function run({ mistake, files, own, end }) {
  if (end) endKept();
  isOwn = own === true;
  const project = vitest.getRootProject();
  project.provide('mistake', mistake);
  // Vitest stops at the first failure that it counts here.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const specifications = files.map((file) => project.createSpecification(join(ROOT, file)));
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  process.send({ results: testModules.map(resultOf), unhandled: unhandledErrors.map(({ message }) => message) });
}

process.on('message', run);
process.on('disconnect', () => process.exit());
process.send({ ready: true });
