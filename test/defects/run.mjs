/**
 * `npm run defects`: plants each defect of the list alone and lets its witness look for it: simulated lives, or a test file.
 * `--only id,id` hunts these, `--share 1/2` every second one. The exit code is 1 where one is not found (within 2,000
 * lives, or by any test of the file), where one could not be planted, where a tape that is kept of one does not show it
 * any more (`live.mjs <id> 2000 --shrink` gives a new one), and where a witness objects to the sources as they are.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import regressions from '../simulation/regressions.json' with { type: 'json' };
import { defects } from './all.mjs';

const LIVES = 2000;
const CLEAN = 200;
/** For all lives of one hunt, or all tests of one file, on a slow machine. */
const LONGEST_MS = 300_000;
const LIVE = fileURLToPath(new URL('live.mjs', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const reports = mkdtempSync(join(tmpdir(), 'runchart-defects-'));
const VITEST = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--config',
  'test/defects/vitest.config.mjs',
  '--maxWorkers=1',
];

const { values } = parseArgs({ options: { only: { type: 'string' }, share: { type: 'string' } } });
const only = values.only?.split(',');
for (const id of only ?? [])
  if (!defects.some((defect) => defect.id === id)) throw new Error(`no defect is named ${id}`);
const [part, parts] = (values.share ?? '1/1').split('/').map(Number);
const wanted = defects.filter(({ id }, index) => (only ? only.includes(id) : index % parts === part - 1));

const start = promisify(execFile);
const firstError = (error) => String(error.stderr || error.message).match(/Error: .*/)?.[0] ?? String(error.message);

/** What simulated lives say: `schedules`, and the `invariant` that broke. */
async function lived(id, ...how) {
  const env = { ...process.env, NODE_ENV: 'production' };
  const { stdout } = await start(process.execPath, [LIVE, id, ...how], { cwd: root, env, timeout: LONGEST_MS });
  return JSON.parse(stdout);
}
async function inLives({ id }) {
  const { invariant, detail, schedules } = await lived(id, `${LIVES}`);
  return invariant
    ? { lives: schedules, by: `${invariant}: ${detail}` }
    : { missed: `not found within ${LIVES} lives` };
}

let runs = 0;
/** What test files say under a defect, or under none: the names of tests that failed. `atLength` takes their whole volume. */
async function tested(id, files, atLength = false) {
  runs += 1;
  const report = join(reports, `${runs}.json`);
  const args = [...VITEST, '--reporter=json', `--outputFile=${report}`, ...files];
  // A test that fails ends the process with 1: the report tells it from a file that could not be loaded.
  const options = { cwd: root, env: { ...process.env, DEFECT: id, PROVE: atLength ? '1' : '' }, timeout: LONGEST_MS };
  const ended = await start(process.execPath, args, options).catch((error) => error);
  let told;
  try {
    told = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    throw ended instanceof Error ? ended : new Error('Error: no report was written');
  }
  const empty = told.testResults.find(({ assertionResults }) => assertionResults.length === 0);
  if (empty) throw new Error(`Error: ${empty.message || 'no test ran'}`);
  return told.testResults.flatMap(({ assertionResults }) =>
    assertionResults.flatMap(({ status, fullName }) => (status === 'failed' ? [fullName] : [])),
  );
}
/** What is not found at once may need the volume; and two that race meet by chance: a test of them looks again. */
const LOOKS = 8;

async function inTests({ id, witness }) {
  for (let look = 1; look <= LOOKS; look++) {
    const [first] = await tested(id, [witness], look > 1);
    if (first !== undefined) return { by: `${witness}: ${first}` };
  }
  return { missed: `no test of ${witness} fails` };
}

const rows = [];
const stale = [];
const objections = [];
/** Tasks that answer nothing; the first ones take longest. */
const tasks = [];
const kept = regressions.filter(({ defect }) => wanted.some(({ id }) => id === defect));
if (!only) {
  tasks.push(async () => {
    const files = [...new Set(wanted.flatMap(({ witness }) => witness ?? []))];
    for (const name of await tested('', files)) objections.push(`fails without a defect: ${name}`);
  });
  tasks.push(async () => {
    const { invariant, detail } = await lived('none', `${CLEAN}`);
    if (invariant) objections.push(`breaks without a defect: ${invariant}: ${detail}`);
  });
}
for (const defect of wanted) {
  tasks.push(async () => {
    const hunt = defect.witness ? inTests : inLives;
    const found = await hunt(defect).catch((error) => ({ missed: firstError(error) }));
    rows.push({ id: defect.id, ...found });
    const done = `${rows.length}/${wanted.length}`.padStart(7);
    console.log(
      `${done} ${defect.id.padEnd(34)} ${String(found.lives ?? '').padStart(5)}  ${(found.missed ?? found.by).slice(0, 120)}`,
    );
  });
}
for (const { defect, tape } of kept) {
  tasks.push(async () => {
    const { invariant } = await lived(defect, '1', '--tape', tape.replaceAll(' ', ','));
    if (!invariant) stale.push(defect);
  });
}
const worker = async () => {
  for (let task = tasks.shift(); task; task = tasks.shift()) {
    await task().catch((error) => objections.push(firstError(error)));
  }
};
await Promise.all(Array.from({ length: parts > 1 ? 1 : availableParallelism() }, worker));
rmSync(reports, { recursive: true, force: true });

const missed = rows.filter((row) => row.missed);
const lives = rows.flatMap((row) => row.lives ?? []).sort((a, b) => a - b);
console.log('');
for (const row of missed) console.log(`MISSED ${row.id}: ${row.missed}`);
for (const objection of objections) console.log(objection);
for (const id of stale) console.log(`the tape of ${id} is stale: node test/defects/live.mjs ${id} ${LIVES} --shrink`);
const byLives =
  lives.length > 0
    ? `, ${lives.length} by lives: median ${lives[Math.floor(lives.length / 2)]}, most ${lives.at(-1)}`
    : '';
console.log(`${kept.length - stale.length} of ${kept.length} kept tapes show their defect`);
console.log(`${rows.length - missed.length} of ${rows.length} found${byLives}`);
process.exitCode = missed.length + stale.length + objections.length > 0 ? 1 : 0;
