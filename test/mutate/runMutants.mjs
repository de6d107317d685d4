/**
 * `npm run mutate` makes one mistake at a time, in a chart (guard, arrow, initial state, action) or in a function of
 * `machines/`. It follows the paths from the effects, and checks whether the clauses or the digest in `test/paths`
 * detect it.
 * - `--in charts`, `--in functions`: one half.
 * - `--every 5`: one in five. `--from 2` takes the second of each five.
 * - `--every 3,40`: one in three of the charts and one in forty of the functions.
 * - `--only TEXT`: mistakes whose names contain the text.
 * - `--names FILE`: mistakes that a file names, one a line.
 * - `--steps 5000`: fewer steps for each mistake, which is faster and leaves more survivors.
 * - `--least 85`: requires this many of 100, whatever survives.
 * The exit code is 1 in these cases:
 * - The charts differ from the committed digests.
 * - Fewer than 95 of 100 effective mistakes are detected.
 * - A survivor is missing from `equivalents.json`.
 * - In a whole run, a mistake that is listed there does not survive.
 * `equivalents.json` lists mistakes without effect and, as `open`, those that no path detects yet.
 */
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import equivalents from './equivalents.json' with { type: 'json' };
import { loaded, written } from './judgeBundle.mjs';

const DUE = '95';
/** The number of steps for one mistake, and for a mistake that is listed as without effect. */
const STEPS_LONG = '40000';
const LISTED_STEPS = 3_000;
const { values } = parseArgs({
  options: {
    in: { type: 'string', default: 'all' },
    only: { type: 'string', default: '' },
    names: { type: 'string' },
    threads: { type: 'string', default: '2' },
    every: { type: 'string', default: '1' },
    from: { type: 'string', default: '1' },
    least: { type: 'string' },
    steps: { type: 'string', default: STEPS_LONG },
  },
});
const began = Date.now();

const { code, mistakes } = await written();

const judge = loaded(code, 0);
const ids = judge.chartIds();

const listed = new Map(equivalents.flatMap(({ open, changes }) => changes.map((change) => [change, open === true])));
const jobs = [];
const names = new Map();
const job = (name, rest) => {
  const times = (names.get(name) ?? 0) + 1;
  names.set(name, times);
  const own = times > 1 ? `${name} (${times})` : name;
  jobs.push({ name: own, atMost: listed.has(own) ? LISTED_STEPS : Number(values.steps), ...rest });
};
const perChart = ids.map(() => 0);
for (const { chart, name, what, source } of judge.mutantNames()) {
  job(name, { chart, index: perChart[chart]++, source, group: `${ids[chart]} ${what}` });
}
const placesOf = new Map();
for (const { file, place } of mistakes.slice(1)) placesOf.set(file, [...(placesOf.get(file) ?? []), place]);
for (const [id, mistake] of mistakes.entries()) {
  if (!mistake) continue;
  const { file, owner, what, was, line, place } = mistake;
  // A mistake keeps its name when its function moves.
  const group = file.replace(/^machines\//, '');
  job(`${owner}: ${what}: ${was}`, { id, place, near: placesOf.get(file), group, at: `${group}:${line}` });
}
const named = values.names && new Set((await readFile(values.names, 'utf8')).split('\n'));
const [everyChart, everyFunction = everyChart] = values.every.split(',').map(Number);
const sides = { all: () => true, charts: ({ id }) => id === undefined, functions: ({ id }) => id !== undefined };
const isIn = sides[values.in];
if (!isIn) throw new Error(`--in takes ${Object.keys(sides).join(', ')}, not ${values.in}`);
const wanted = jobs.filter((job) => isIn(job) && (named ? named.has(job.name) : job.name.includes(values.only)));
const first = Number(values.from) - 1;
const halves = [wanted.filter(sides.charts), wanted.filter(sides.functions)];
const queue = [everyChart, everyFunction].flatMap((every, half) =>
  halves[half].filter((_, index) => index % every === first % every),
);
const all = queue.length;

const verdicts = [];
const tell = ({ name, at }, { unreached }) =>
  console.log(`survives${unreached ? ' unreached' : ''}: ${name}${at ? `\t${at}` : ''}`);
const memory = { maxOldGenerationSizeMb: 6_000 };
const work = (index) =>
  new Promise((done, fail) => {
    let worker;
    let job;
    const noted = (answer) => {
      verdicts.push(answer);
      const { job: own, verdict: found } = answer;
      if (!found.digest && !found.invariant && !listed.has(own.name)) tell(own, found);
      if (verdicts.length % 250 === 0) console.log(`${verdicts.length} of ${all}, ${seconds()} s`);
    };
    const next = () => {
      job = queue.shift();
      if (job) worker.postMessage(job);
      else worker.terminate().then(done, fail);
    };
    const start = () => {
      const controls = index === 0 && verdicts.length === 0;
      const workerData = { code, count: mistakes.length, controls };
      worker = new Worker(new URL('mutantWorker.mjs', import.meta.url), { workerData, resourceLimits: memory });
      worker.on('error', (error) => {
        if (error.code !== 'ERR_WORKER_OUT_OF_MEMORY' || !job) return fail(error);
        noted({ job, verdict: { digest: 'it does not end' } });
        start();
      });
      worker.on('message', ({ wrong, ...answer }) => {
        if (wrong) return fail(new Error(wrong));
        if (answer.job) noted(answer);
        next();
      });
    };
    start();
  });
const seconds = () => Math.round((Date.now() - began) / 1000);
await Promise.all(
  Array.from({ length: Math.min(availableParallelism(), Number(values.threads)) }, (_, index) => work(index)),
);

const rows = new Map();
const survivors = [];
for (const { job, verdict } of verdicts) {
  const row = rows.get(job.group) ?? { all: 0, killed: 0, clauses: 0, unreached: 0 };
  rows.set(job.group, row);
  row.all += 1;
  if (verdict.unreached) row.unreached += 1;
  if (verdict.invariant) row.clauses += 1;
  if (verdict.invariant || verdict.digest) row.killed += 1;
  else survivors.push({ ...job, unreached: verdict.unreached });
}
const total = { all: 0, killed: 0, clauses: 0, unreached: 0 };
const line = (name, row) =>
  `${name.padEnd(34)} ${[row.all, row.killed, row.clauses, row.unreached].map((n) => String(n).padStart(6)).join(' ')}`;
console.log(`${' '.repeat(34)} ${['all', 'killed', 'clause', 'unseen'].map((word) => word.padStart(6)).join(' ')}`);
for (const [name, row] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) {
  console.log(line(name, row));
  for (const key of Object.keys(total)) total[key] += row[key];
}
console.log(line('all', total));

const unlisted = survivors.filter(({ name }) => !listed.has(name));
const without = survivors.filter(({ name }) => listed.get(name) === false).length;
const settled = total.killed + survivors.length - unlisted.length;
const share = (part) => `${((100 * part) / (total.all - without)).toFixed(1)} %`;
console.log(
  `${share(total.killed)} of what changes something noticed, ${share(total.clauses)} by the clauses alone, in ${seconds()} s`,
);
console.log(`${settled} of ${total.all} mistakes noticed, or listed as changing nothing`);
const alive = new Set(survivors.map(({ name }) => name));
// A whole run also finds listed mistakes that no longer exist.
const whole = wanted.length === jobs.length && everyChart === 1 && everyFunction === 1;
const killed = new Set(verdicts.map(({ job }) => job.name).filter((name) => !alive.has(name)));
const dead = [...listed.keys()].filter((name) => (whole ? !alive.has(name) : killed.has(name)));
for (const name of dead) console.log(`listed, and does not survive: ${name}`);
const due = Number(values.least ?? DUE) / 100;
const unexplained = values.least === undefined ? unlisted.length : 0;
process.exitCode = unexplained > 0 || (whole && dead.length > 0) || total.killed < due * (total.all - without) ? 1 : 0;
