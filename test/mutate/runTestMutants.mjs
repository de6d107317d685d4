/**
 * `npm run mutate:tests -- --in 'src/runtime/**' --mistakes 300`: makes random small mistakes in functions, one at a time,
 * and asks whether a test fails. No digest or drawing takes part.
 * - `--in PATTERN`, several times: the sources. `--in machines` is the behaviour of all charts.
 * - `--tests PATTERN`, several times: the tests; the kernel's tests unless given.
 * - `--mistakes N`, `--seed N`: how many mistakes, and which. `--only TEXT`: those whose names contain the text.
 * Each mistake meets the test files that reach its place, those first that noticed most mistakes for their time. A test
 * that hangs has noticed it. Survivors are printed; the exit code is 1 if less than `--least` percent (90) are noticed.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { glob } from 'tinyglobby';
import { filesOf, machinesBehaviour, mistaken } from './sourceMutants.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const KERNEL = [
  'scenarios',
  'machines',
  'interpreter',
  'paths',
  'subAgents',
  'journals',
  'projector',
  'plugins',
  'requestLoop',
]
  .map((folder) => `test/${folder}/**/*.test.ts`)
  .concat(
    'test/simulation/lives.fixed.test.ts',
    'test/simulation/regressions.test.ts',
    'test/testing/*.test.ts',
    'test/*.test.ts',
  );
/** Tests that read the sources' text or measure memory detect the inserted conditions. */
const LEFT_OUT = [
  'test/tidy.test.ts',
  'test/sourceSeed.test.ts',
  'test/testing/reach.test.ts',
  'test/scenarios/garbage.test.ts',
  'test/inspect.test.ts',
];
const HANGS_MS = 240_000;

const { values } = parseArgs({
  options: {
    in: { type: 'string', multiple: true, default: ['machines'] },
    tests: { type: 'string', multiple: true, default: KERNEL },
    mistakes: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    least: { type: 'string', default: '90' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'runchart-mutants-'));
const plan = join(folder, 'plan.json');
const sources = values.in[0] === 'machines' ? 'machines' : values.in;

/** Runs the tests in this order and reports to `report.json`; true if one fails or hangs. */
function fails(tests, env) {
  writeFileSync(plan, JSON.stringify({ sources, tests }));
  const { status, error } = spawnSync(
    'npx',
    [
      'vitest',
      'run',
      '--config',
      'test/mutate/mutants.config.mjs',
      '--reporter=json',
      `--outputFile=${folder}/report.json`,
    ],
    {
      cwd: ROOT,
      env: { ...process.env, PLAN: plan, ...env },
      timeout: HANGS_MS * (env.REACHED ? 10 : 1),
      stdio: 'ignore',
      killSignal: 'SIGKILL',
    },
  );
  return error !== undefined || status !== 0;
}

/** The numbers below `count` in an order that the seed decides. */
function shuffled(count, seed) {
  let state = seed >>> 0;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const order = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

const { mistakes } = mistaken(
  ROOT,
  sources === 'machines' ? await machinesBehaviour(ROOT) : await filesOf(ROOT, sources),
);
const nameOf = ({ file, owner, line, what, was }) => `${file}:${line} ${owner}: ${what} (${was})`;
const all = mistakes.slice(1).map((mistake, index) => ({ ...mistake, number: index + 1, name: nameOf(mistake) }));
const wanted = all.filter(({ name }) => name.includes(values.only));
const chosen = shuffled(wanted.length, Number(values.seed))
  .slice(0, Number(values.mistakes))
  .map((index) => wanted[index]);

const tests = (await glob(values.tests, { cwd: ROOT, ignore: LEFT_OUT })).sort();
console.log(`${chosen.length} of ${wanted.length} mistakes; ${tests.length} test files`);
fails(tests, { REACHED: folder });
const { testResults } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
/** The questions in the sources cost memory and time, which a few tests measure. */
const red = new Set(testResults.filter(({ status }) => status === 'failed').map(({ name }) => relative(ROOT, name)));
if (red.size > 0) console.log(`left out, since they fail without a mistake: ${[...red].join(', ')}`);
const reached = new Map();
for (const line of readFileSync(join(folder, 'reached.jsonl'), 'utf8').trim().split('\n')) {
  const { file, reached: places } = JSON.parse(line);
  reached.set(relative(ROOT, file), new Set(places));
}
const cost = new Map();
for (const { name, startTime, endTime } of testResults)
  cost.set(relative(ROOT, name), Math.max(50, endTime - startTime));

const noticedBy = new Map();
const worth = (test) => ((noticedBy.get(test) ?? 0) + 1) / cost.get(test);
const survivors = [];
let unreached = 0;
for (const [index, mistake] of chosen.entries()) {
  const meets = tests
    .filter((test) => !red.has(test) && (mistake.loads || reached.get(test)?.has(mistake.place)))
    .sort((a, b) => worth(b) - worth(a));
  let noticed = false;
  if (meets.length === 0) unreached += 1;
  else {
    noticed = fails(meets, { MISTAKE: String(mistake.number) });
    if (noticed) {
      try {
        const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'));
        const finder = report.testResults.find(({ status }) => status === 'failed');
        if (finder) noticedBy.set(relative(ROOT, finder.name), (noticedBy.get(relative(ROOT, finder.name)) ?? 0) + 1);
      } catch {}
    }
  }
  rmSync(join(folder, 'report.json'), { force: true });
  if (!noticed) {
    survivors.push(mistake);
    console.log(`survives${meets.length === 0 ? ', reached by no test' : ''}: ${mistake.name}`);
  }
  if ((index + 1) % 10 === 0)
    console.log(`${new Date().toISOString()} ${index + 1}: ${index + 1 - survivors.length} noticed`);
}
const noticed = chosen.length - survivors.length;
const percent = (100 * noticed) / chosen.length;
console.log(`${noticed} of ${chosen.length} noticed (${percent.toFixed(1)} %), ${unreached} reached by no test`);
for (const [test, count] of [...noticedBy].sort((a, b) => b[1] - a[1]))
  console.log(`${String(count).padStart(4)} ${test}`);
rmSync(folder, { recursive: true });
if (percent < Number(values.least)) process.exitCode = 1;
