/**
 * `npm run mutate:tests -- --in 'src/runtime/**' --mistakes 300`: makes random small mistakes in functions, one at a time,
 * and asks whether a test fails. No digest or drawing takes part.
 * - `--in PATTERN`, several times: the sources. `--in machines` is the behaviour of all charts.
 * - `--tests PATTERN`, several times: the tests; the kernel's tests unless given.
 * - `--mistakes N`, `--seed N`: how many mistakes, and which. `--from N` leaves out the first ones of that order.
 * - `--only TEXT`, several times: mistakes whose names contain one of the texts. `--verbose`: prints the detector of each mistake.
 * Each mistake meets the test files that reach its place, those first that noticed most mistakes for their time. If the
 * loading of modules reaches a place, all other files follow. A test that hangs has noticed the mistake. Survivors are
 * printed; the exit code is 1 if less than `--least` percent (90) are noticed.
 * `equivalents.json` and, for other sources than `machines/`, `testEquivalents.json` list mistakes that change nothing,
 * with the reason. They count as survivors without a run.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { glob } from 'tinyglobby';
import equivalents from './equivalents.json' with { type: 'json' };
import { filesOf, machinesBehaviour, mistaken } from './sourceMutants.mjs';
import testEquivalents from './testEquivalents.json' with { type: 'json' };

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
  'content',
  'conversation',
  'hostile',
  'log',
  'models',
  'restate',
  'session',
  'transports',
]
  .map((folder) => `test/${folder}/**/*.test.ts`)
  .concat(
    'test/simulation/lives.fixed.test.ts',
    'test/simulation/regressions.test.ts',
    'test/simulation/engine/*.test.ts',
    'test/stores/copyConversations.test.ts',
    'test/otel/openTelemetry.test.ts',
    'test/client/*.test.ts',
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
/** No test takes this long. */
const HANGS_MS = 400_000;

const { values } = parseArgs({
  options: {
    in: { type: 'string', multiple: true, default: ['machines'] },
    tests: { type: 'string', multiple: true, default: KERNEL },
    mistakes: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    only: { type: 'string', multiple: true, default: [''] },
    verbose: { type: 'boolean', default: false },
    least: { type: 'string', default: '90' },
  },
});

const sources = values.in[0] === 'machines' ? 'machines' : values.in;

/** A process that runs tests, once or for one mistake after the other. Killed with its workers, it is started anew. */
class TestServer {
  #child;
  #env;

  constructor(env) {
    this.#env = { ...process.env, SOURCES: values.in.join(' '), ...env };
  }

  /** The results, or undefined if a test hangs. */
  async run(message) {
    this.#child ??= await this.#start();
    return new Promise((resolve) => {
      let timer;
      const settle = (answer) => {
        clearTimeout(timer);
        child.off('message', onMessage).off('exit', settle);
        if (answer?.results === undefined) this.kill();
        resolve(answer?.results === undefined ? undefined : answer);
      };
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(settle, HANGS_MS);
      };
      const onMessage = (message) => (message.alive ? wait() : settle(message));
      const child = this.#child;
      child.on('message', onMessage).on('exit', settle);
      wait();
      child.send(message);
    });
  }

  async #start() {
    const child = fork(join(ROOT, 'test/mutate/testServer.mjs'), {
      cwd: ROOT,
      env: this.#env,
      stdio: 'ignore',
      detached: true,
    });
    await once(child, 'message');
    return child;
  }

  /** Ends the process and its workers. */
  kill() {
    if (this.#child === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {}
    this.#child = undefined;
  }
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
const reasons = new Map(
  (sources === 'machines' ? equivalents : testEquivalents).flatMap(({ open, reason, changes }) =>
    open ? [] : changes.map((change) => [change, reason]),
  ),
);
const times = new Map();
/** The reason why the mistake changes nothing, if a list has one. Lists name a mistake by its function, not by its line. */
function reasonFor({ owner, what, was }) {
  const name = `${owner}: ${what}: ${was}`;
  times.set(name, (times.get(name) ?? 0) + 1);
  return reasons.get(times.get(name) > 1 ? `${name} (${times.get(name)})` : name);
}
const all = mistakes
  .slice(1)
  .map((mistake, index) => ({ ...mistake, number: index + 1, name: nameOf(mistake), equal: reasonFor(mistake) }));
const wanted = all.filter(({ name }) => values.only.some((text) => name.includes(text)));
const chosen = shuffled(wanted.length, Number(values.seed))
  .slice(Number(values.from), Number(values.from) + Number(values.mistakes))
  .map((index) => wanted[index]);

const tests = (await glob(values.tests, { cwd: ROOT, ignore: LEFT_OUT })).sort();
console.log(`${chosen.length} of ${wanted.length} mistakes; ${tests.length} test files`);

/**
 * The places that each test file reaches, the places that are reached while modules are loaded, and the durations; kept
 * until a source or a test changes.
 */
async function reach() {
  const hash = createHash('sha256').update(JSON.stringify([values.in, tests]));
  const patterns = [
    '{machines,src,test}/**/*',
    '!test/mutate/**',
    'test/mutate/sourceMutants.mjs',
    'test/mutate/mistakenSources.ts',
    'package-lock.json',
  ];
  for (const file of (await glob(patterns, { cwd: ROOT })).sort())
    hash.update(file).update(readFileSync(join(ROOT, file)));
  const kept = join(ROOT, 'node_modules/.cache/runchart-mutants', `${hash.digest('hex')}.json`);
  if (existsSync(kept)) return JSON.parse(readFileSync(kept, 'utf8'));
  const folder = mkdtempSync(join(tmpdir(), 'runchart-mutants-'));
  const server = new TestServer({ REACHED: folder });
  const answer = await server.run({ mistake: 0, files: tests, own: true });
  server.kill();
  if (answer === undefined) throw new Error('A test hangs without a mistake.');
  if (answer.unhandled.length > 0) throw new Error(`Without a mistake: ${answer.unhandled.join(', ')}`);
  const lines = readFileSync(join(folder, 'reached.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  rmSync(folder, { recursive: true });
  const result = {
    results: answer.results,
    reached: lines.map(({ file, reached }) => [relative(ROOT, file), reached]),
    loaded: [...new Set(lines.flatMap(({ loaded }) => loaded))],
  };
  mkdirSync(dirname(kept), { recursive: true });
  writeFileSync(kept, JSON.stringify(result));
  return result;
}

const { results, reached, loaded } = await reach();
/** The questions in the sources cost memory and time, which a few tests measure. */
const red = new Set(results.filter(({ failed }) => failed).map(({ file }) => file));
if (red.size > 0) console.log(`left out, since they fail without a mistake: ${[...red].join(', ')}`);
const places = new Map(reached.map(([file, numbers]) => [file, new Set(numbers)]));
const reaches = (test, { place }) => places.get(test)?.has(place) === true;
/** A place that is reached while its module is loaded: every test may notice a mistake there. */
const loadedPlaces = new Set(loaded);
const isOfLoad = ({ loads, place }) => loads || loadedPlaces.has(place);
const cost = new Map(results.map(({ file, ms }) => [file, Math.max(50, ms)]));

const noticedBy = new Map();
const worth = (test) => ((noticedBy.get(test) ?? 0) + 1) / cost.get(test);
const survivors = [];
const server = new TestServer({});
let unreached = 0;
let equal = 0;

/** The first tests, which take this share of the time of all, run in the shared process. */
const SHARED_PART = 0.06;
/** The remains of mistakes accumulate in the shared process. */
const SHARED_RUNS = 40;
let sharedRuns = 0;

const reasonOf = (answer) => {
  if (answer === undefined) return { error: 'hangs' };
  return answer.results.find(({ failed }) => failed) ?? (answer.unhandled.length > 0 && { error: answer.unhandled[0] });
};

/**
 * A failure of one of the first tests in the shared process. It counts if the same test passes there
 * without the mistake: nothing of an earlier mistake causes it.
 */
async function sharedFailure({ number }, meets) {
  const limit = SHARED_PART * meets.reduce((sum, test) => sum + cost.get(test), 0);
  let total = 0;
  const files = meets.filter((test, index) => {
    total += cost.get(test);
    return index === 0 || total < limit;
  });
  sharedRuns += 1;
  const answer = await server.run({ mistake: number, files, end: sharedRuns % SHARED_RUNS === 0 });
  const failure = reasonOf(answer);
  if (!failure?.file) return undefined;
  const without = await server.run({ mistake: 0, files: [failure.file] });
  if (!reasonOf(without)) return failure;
  sharedRuns = -1;
  return undefined;
}

function note(failure, mistake) {
  if (failure.file) noticedBy.set(failure.file, (noticedBy.get(failure.file) ?? 0) + 1);
  if (!failure.file || /timed out/i.test(failure.error ?? '')) console.log(`${failure.error}: ${mistake.name}`);
  if (values.verbose) console.log(`noticed: ${mistake.name}\n  ${failure.file}: ${failure.test}\n  ${failure.error}`);
}
/** First the tests that reach the place themselves. */
const testsOf = (mistake) =>
  tests
    .filter((test) => !red.has(test) && (isOfLoad(mistake) || reaches(test, mistake)))
    .sort((a, b) => Number(reaches(b, mistake)) - Number(reaches(a, mistake)) || worth(b) - worth(a));
const progress = (done, open) => {
  if (done % 10 === 0)
    console.log(`${new Date().toISOString()} ${done}: ${done - survivors.length - open} noticed, ${open} open`);
};

/** Mistakes that the shared process does not notice. Only a process of their own decides whether they survive. */
const open = [];
for (const [index, mistake] of chosen.entries()) {
  const meets = testsOf(mistake);
  if (mistake.equal) {
    survivors.push(mistake);
    equal += 1;
    if (values.verbose) console.log(`listed: ${mistake.name}`);
  } else if (meets.length === 0) {
    survivors.push(mistake);
    unreached += 1;
    console.log(`survives, reached by no test: ${mistake.name}`);
  } else {
    // The shared process has loaded the modules already.
    const reaching = mistake.loads ? [] : meets.filter((test) => reaches(test, mistake));
    const failure = reaching.length > 0 ? await sharedFailure(mistake, reaching) : undefined;
    if (failure) note(failure, mistake);
    else {
      open.push(mistake);
      if (values.verbose) console.log(`open: ${mistake.name}`);
    }
  }
  progress(index + 1, open.length);
}
for (const [index, mistake] of open.entries()) {
  const failure = reasonOf(await server.run({ mistake: mistake.number, files: testsOf(mistake), own: true }));
  if (failure) note(failure, mistake);
  else {
    survivors.push(mistake);
    console.log(`survives: ${mistake.name}`);
  }
  progress(chosen.length, open.length - index - 1);
}
server.kill();
const noticed = chosen.length - survivors.length;
const percent = (100 * noticed) / chosen.length;
console.log(
  `${noticed} of ${chosen.length} noticed (${percent.toFixed(1)} %), ${equal} listed, ${unreached} reached by no test`,
);
for (const [test, count] of [...noticedBy].sort((a, b) => b[1] - a[1]))
  console.log(`${String(count).padStart(4)} ${test}`);
if (percent < Number(values.least)) process.exitCode = 1;
