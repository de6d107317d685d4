/**
 * `npm run prove` runs more than `npm test`, with three jobs in parallel. With `EXHAUSTIVE=1` it runs everything. It
 * prints each start and end, then a table with the counts of each job. `--only walk,crash` selects jobs, and `--rest` adds the
 * test files that have one size. Invariant: a job fails if its exit code is not 0 or its figures cannot be read. Its output is
 * then shown.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** One more than two cores: processes, kills and browsers wait much of their time. */
const AT_ONCE = 3;
const STILL_MS = 60_000;
const LINES_SHOWN = 120;
const SLOWEST_SHOWN = 6;
const root = fileURLToPath(new URL('..', import.meta.url));
const reports = mkdtempSync(join(tmpdir(), 'runchart-prove-'));

const script = (name, args, read) => ({ name, args, read });
/** Test files at their full size, in one process. */
function tests(name, ...files) {
  const report = join(reports, `${name.replaceAll(' ', '-')}.json`);
  const vitest = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=dot',
    '--reporter=json',
    `--outputFile=${report}`,
  ];
  return script(name, [...vitest, ...files], () => {
    const {
      numPassedTests: passed,
      numFailedTests,
      numTotalTestSuites,
      testResults,
    } = JSON.parse(readFileSync(report, 'utf8'));
    const broken = testResults.filter(
      ({ status, assertionResults }) => status !== 'passed' && assertionResults.length === 0,
    );
    const failed = numFailedTests + broken.length;
    const seconds = ({ startTime, endTime }) => Math.round((endTime - startTime) / 1000);
    const slowest = testResults
      .toSorted((one, other) => seconds(other) - seconds(one))
      .slice(0, SLOWEST_SHOWN)
      .map((file) => `${seconds(file)} s ${relative(root, file.name)}`);
    return {
      slowest,
      passed,
      failed,
      figures: `${passed + failed} tests in ${numTotalTestSuites} groups`,
    };
  });
}
/** A script that prints its counts in the last lines. */
const counts = (pattern, figures) => (output) => {
  const found = pattern.exec(output);
  if (!found) throw new Error(`expected a line like ${pattern}`);
  const { passed, failed } = figures(...found.slice(1).map(Number));
  return { passed, failed, figures: found[0] };
};
const ofAll = (found, all) => ({ passed: found, failed: all - found });

/** Folders that have a job of their own. */
const OWN = /^test\/(interpreter|paths|simulation|crash|e2e|walk|browser)\//;
const files = readdirSync(join(root, 'test'), { recursive: true })
  .map((file) => `test/${file}`)
  .filter((file) => file.endsWith('.test.ts') && !OWN.test(file));
/** The tier decides on the size of these. */
const isSized = (file) =>
  /\b(proves|sampled|volume)\b.* from '[./]*\/support\/tier\.ts'/.test(readFileSync(join(root, file), 'utf8'));
const atLength = files.filter(isSized);
const rest = files.filter((file) => !isSized(file));

const exhausts = process.env.EXHAUSTIVE === '1';
const defects = ['test/defects/runDefects.mjs', '--every', exhausts ? '1' : '16', '--share'];

/** The longest first, so that nothing is left alone at the end. */
const JOBS = [
  tests('at length 1', '--shard=1/3', ...atLength),
  tests('e2e', 'test/e2e'),
  tests('at length 2', '--shard=2/3', ...atLength),
  tests('at length 3', '--shard=3/3', ...atLength),
  script('defects 1', [...defects, '1/2'], counts(/^(\d+) of (\d+) found.*$/m, ofAll)),
  script('defects 2', [...defects, '2/2'], counts(/^(\d+) of (\d+) found.*$/m, ofAll)),
  script(
    'mutants',
    ['test/mutate/runMutants.mjs', '--threads', '1', '--in', 'charts', '--every', exhausts ? '1' : '24'],
    counts(/^(\d+) of (\d+) mistakes noticed.*$/m, ofAll),
  ),
  tests('explore', 'test/simulation/explore'),
  tests('paths', 'test/paths'),
  tests('engine lives', 'test/simulation/engine', 'test/simulation/shared'),
  tests(
    'random agents',
    ...['choiceTape', 'rightAgents', 'ownAgent', 'callerCode', 'drawn'].map((name) => `test/simulation/${name}`),
  ),
  tests('lives', 'test/simulation/lives', 'test/simulation/regressions'),
  script(
    'browser',
    ['test/browser/runBrowser.mjs'],
    counts(/^browser: (\d+) passed, (\d+) failed$/m, (passed, failed) => ({ passed, failed })),
  ),
  script(
    'walk',
    ['test/walk/runWalks.mjs', '--runs', '500', '--seed', '1'],
    counts(/^(\d+) runs from seed .*, (\d+) runs with faults$/m, (runs, failed) => ({ passed: runs - failed, failed })),
  ),
  tests('shadow', 'test/interpreter'),
  tests('crash', 'test/crash'),
];

const { values } = parseArgs({ options: { only: { type: 'string' }, rest: { type: 'boolean' } } });
if (values.rest) JOBS.unshift(tests('rest 1', '--shard=1/2', ...rest), tests('rest 2', '--shard=2/2', ...rest));
const wanted = values.only?.split(',');
for (const name of wanted ?? []) {
  if (!JOBS.some((job) => job.name === name))
    throw new Error(`no job is named ${name}: ${JOBS.map((job) => job.name).join(', ')}`);
}

const began = performance.now();
const secondsSince = (then) => Math.round((performance.now() - then) / 1000);
const say = (text) => console.log(`${String(secondsSince(began)).padStart(4)} s  ${text}`);

function ended(args, onOutput) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      // Vitest's option for workers applies to each of its projects, and this one applies to all together.
      env: { ...process.env, PROVE: '1', VITEST_MAX_WORKERS: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', onOutput);
    child.once('error', (error) => resolve(`it did not start: ${error.message}`));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `it ended with ${code ?? signal}`));
  });
}

async function run({ name, args, read }) {
  const since = performance.now();
  let output = '';
  say(`${name}: begins`);
  const still = setInterval(() => say(`${name}: ${secondsSince(since)} s under way`), STILL_MS);
  let wrong = await ended(args, (text) => {
    output += text;
  });
  clearInterval(still);
  let row = { passed: 0, failed: 1, figures: '' };
  try {
    row = read(output);
  } catch (error) {
    wrong ??= error.message;
  }
  const failed = Math.max(row.failed, wrong === undefined ? 0 : 1);
  const seconds = secondsSince(since);
  say(`${name}: ${failed === 0 ? 'passed' : 'FAILED'} after ${seconds} s, ${row.figures || wrong}`);
  if (row.slowest) say(`${name}: slowest ${row.slowest.join(', ')}`);
  if (failed > 0) {
    console.log(output.split('\n').slice(-LINES_SHOWN).join('\n'));
  }
  return { name, seconds, ...row, failed };
}

const queue = JOBS.filter(({ name }) => wanted?.includes(name) ?? true);
const rows = [];
const worker = async () => {
  for (let job = queue.shift(); job; job = queue.shift()) rows.push(await run(job));
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));
rmSync(reports, { recursive: true, force: true });

const width = Math.max(...rows.map(({ figures }) => figures.length), 'figures'.length);
const line = (name, figures, seconds, verdict) =>
  console.log(`${name.padEnd(12)} ${figures.padEnd(width)} ${seconds.padStart(7)}  ${verdict}`);
console.log('');
line('proof', 'figures', 'seconds', 'verdict');
for (const { name, figures, seconds, failed } of rows)
  line(name, figures, `${seconds}`, failed === 0 ? 'pass' : 'FAIL');
const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
console.log(`\n${sum('passed')} passed, ${sum('failed')} failed`);
process.exitCode = sum('failed') > 0 ? 1 : 0;
