/**
 * `npm run defects` plants each defect of the list alone. Its witness, simulated lives or a test file, must detect it.
 * `--only id,id` selects defects, `--share 1/2` half of the witnesses, and `--every 2` half of the defects; the sources
 * determine which half. A part leaves out those that take minutes, `isSlow`. `finds.json` contains the test or the seed that detected each, and `--record` updates it.
 * Invariant: a record only determines the first try, so an outdated one costs time.
 * The exit code is 1 in these cases:
 * - A defect is not detected within 2,000 lives, or by any test of the file.
 * - A defect cannot be planted.
 * - A recorded tape no longer shows its defect. `huntDefect.mjs <id> 2000 --shrink` returns a new one.
 * - The test that detected a defect also fails without it.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import regressions from '../simulation/regressions.json' with { type: 'json' };
import { bundled } from '../support/bundled.mjs';
import { defects } from './allDefects.mjs';
import { planted } from './plantDefect.mjs';
import { openLives } from './plantedLives.mjs';
import { openWitnesses } from './witnesses.mjs';

const LIVES = 2000;
/** Lives without a defect, besides those that detected one. */
const CLEAN = 50;
/** For all lives of one search, or all tests of one file, on a slow machine: ends a hang. */
const LONGEST_MS = 1_800_000;
/** A recorded test hangs if it takes this long, and this many times as long as without a defect a moment before. */
const HANG_MS = 5_000;
const SLOWER = 6;
/**
 * A defect that is not detected at once may need the full volume. A race may occur by chance, so its test runs again.
 */
const LOOKS = 8;
const FINDS = fileURLToPath(new URL('finds.json', import.meta.url));

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    share: { type: 'string' },
    every: { type: 'string', default: '1' },
    record: { type: 'boolean', default: false },
  },
});
const only = values.only?.split(',');
for (const id of only ?? [])
  if (!defects.some((defect) => defect.id === id)) throw new Error(`no defect is named ${id}`);
const [part, parts] = (values.share ?? '1/1').split('/').map(Number);

/** By id: `tests` has the name of a test, `looks` the number of its run if the first is not enough, `lives` a seed. */
const readFinds = () => JSON.parse(readFileSync(FINDS, 'utf8'));
const finds = readFinds();

/** Grouped by the result of `keyOf`, in the order of the list. */
function grouped(list, keyOf) {
  const groups = new Map();
  for (const item of list) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups.values()];
}

const every = Number(values.every);
const { seedOfSources } = await bundled(
  "export { seedOfSources } from '../support/sourceSeed.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
);
const root = fileURLToPath(new URL('../..', import.meta.url));
const from = Math.floor(seedOfSources(root) / 1_000) % every;

/** All defects of one test file, which are searched one after another; each defect of the lives separately. */
function units() {
  const isTaken = ({ isSlow }, index) => index % every === from && !(isSlow && every > 1);
  const hunted = defects.filter((defect, index) => only?.includes(defect.id) ?? isTaken(defect, index));
  const ofTests = hunted.filter(({ witness }) => witness);
  const together = grouped(ofTests, ({ witness }) => witness).sort((a, b) => b.length - a.length);
  const alone = hunted.filter(({ witness }) => !witness).map((defect) => [defect]);
  return [...together, ...alone].filter((_, index) => index % parts === part - 1);
}

const rows = [];
const stale = [];
const objections = [];
const queue = units();
const total = queue.flat().length;
const firstError = (error) => String(error.stderr || error.message).match(/Error: .*/)?.[0] ?? String(error.message);

function show(row, since) {
  rows.push(row);
  const done = `${rows.length}/${total}`.padStart(7);
  const seconds = `${((performance.now() - since) / 1000).toFixed(1)} s`.padStart(8);
  const what = (row.missed ?? row.by).slice(0, 120);
  console.log(`${done} ${seconds} ${row.id.padEnd(34)} ${String(row.seed ?? '').padStart(5)}  ${what}`);
}

/** Runs tests without a defect. For each look, the duration of the slowest one. */
async function cleanly(witnesses, witness, tests) {
  const slowest = new Map();
  for (const alike of grouped(tests, ({ look }) => look)) {
    const [{ look }] = alike;
    const names = [...new Set(alike.map(({ name }) => name))];
    try {
      const { failed, slowestMs } = await witnesses.run(new Map(), witness, { names, look });
      slowest.set(look, slowestMs);
      for (const name of failed) objections.push(`fails without a defect: ${witness}: ${name}`);
    } catch (error) {
      objections.push(`fails without a defect: ${firstError(error)}`);
    }
  }
  return slowest;
}

/** Undefined without a record. */
function recordedFor({ id }) {
  const name = finds.tests[id];
  return name === undefined ? undefined : { name, look: finds.looks[id] ?? 1 };
}
async function inRecordedTest(witnesses, { id, witness, edits }, slowest) {
  const test = recordedFor({ id });
  if (!test) return undefined;
  const timeoutMs = Math.max(HANG_MS, SLOWER * (slowest.get(test.look) ?? 0));
  const how = { names: [test.name], look: test.look, timeoutMs };
  // The result of a record is not final.
  const { failed } = await witnesses.run(planted(edits), witness, how).catch(() => ({ failed: [] }));
  return failed.length > 0 ? { by: `${witness}: ${test.name}`, test } : undefined;
}
async function inAllTests(witnesses, { witness, edits }) {
  const changed = planted(edits);
  for (let look = 1; look <= LOOKS; look++) {
    const [name] = (await witnesses.run(changed, witness, { look })).failed;
    if (name === undefined) continue;
    const again = values.record ? await witnesses.run(changed, witness, { names: [name], look }) : undefined;
    const by = `${look > 2 ? `(look ${look}) ` : ''}${witness}: ${name}`;
    return { by, test: { name, look, findsAlone: again?.failed.length === 1 } };
  }
  return { missed: `no test of ${witness} fails` };
}

/** Searches for all defects of one test file. The tests that detect them also run without a defect. */
async function huntInTests({ witnesses }, group) {
  const [{ witness }] = group;
  const slowest = await cleanly(
    witnesses,
    witness,
    group.flatMap((defect) => recordedFor(defect) ?? []),
  );
  const newFinders = [];
  for (const defect of group) {
    const since = performance.now();
    try {
      let row = await inRecordedTest(witnesses, defect, slowest);
      if (!row) {
        row = await inAllTests(witnesses, defect);
        if (row.test) newFinders.push(row.test);
      }
      show({ id: defect.id, ...row }, since);
    } catch (error) {
      show({ id: defect.id, missed: firstError(error) }, since);
    }
  }
  await cleanly(witnesses, witness, newFinders);
}

/** Searches for one defect by lives, and by its recorded tapes. */
async function huntInLives({ lives }, [{ id, equipped, edits }]) {
  const since = performance.now();
  try {
    const live = await lives.plant(planted(edits), equipped);
    const { invariant, detail, seed } = await live(id, `${LIVES}`, '--seeds', `${finds.lives[id] ?? ''}`);
    if (invariant) show({ id, seed, equipped, by: `${invariant}: ${detail}` }, since);
    else show({ id, missed: `not found within ${LIVES} lives` }, since);
  } catch (error) {
    show({ id, missed: firstError(error) }, since);
  }
}
const tapes = regressions.filter(({ defect }) => queue.flat().some(({ id }) => id === defect));
async function playTape({ lives }, { defect, tape }) {
  const { edits, equipped } = defects.find(({ id }) => id === defect);
  const live = await lives.plant(planted(edits), equipped);
  const { invariant } = await live(defect, '--tape', tape.replaceAll(' ', ','));
  if (!invariant) stale.push(defect);
}
/** The lives that detected a defect, run without one. */
async function liveClean({ lives }, equipped) {
  const seeds = rows
    .filter((row) => row.seed !== undefined && Boolean(row.equipped) === equipped)
    .map(({ seed }) => seed);
  const live = await lives.plant(new Map(), equipped);
  const { invariant, detail, seed } = await live('none', `${CLEAN}`, '--seeds', [...new Set(seeds)].join());
  if (invariant) objections.push(`life ${seed} breaks without a defect: ${invariant}: ${detail}`);
}

/**
 * Merged with the results that the other share wrote meanwhile. A test that detects a defect only after others is not
 * recorded.
 */
function record() {
  const { tests, looks, lives } = readFinds();
  for (const { id, test, seed } of rows) {
    if (test === undefined || test.findsAlone !== undefined) for (const kind of [tests, looks, lives]) delete kind[id];
    if (seed !== undefined) lives[id] = seed;
    if (test?.findsAlone) tests[id] = test.name;
    if (test?.findsAlone && test.look > 1) looks[id] = test.look;
  }
  const ids = defects.map(({ id }) => id);
  const kept = (kind) => Object.fromEntries(ids.flatMap((id) => (id in kind ? [[id, kind[id]]] : [])));
  const sorted = { tests: kept(tests), looks: kept(looks), lives: kept(lives) };
  writeFileSync(`${FINDS}.${part}`, `${JSON.stringify(sorted, null, 2)}\n`);
  renameSync(`${FINDS}.${part}`, FINDS);
}

const machines = await Promise.all(
  Array.from({ length: parts > 1 ? 1 : availableParallelism() }, async () => ({
    witnesses: openWitnesses(LONGEST_MS),
    lives: await openLives(LONGEST_MS),
  })),
);
/** An error is a complaint. Each machine does one thing at a time. Earlier results are recorded. */
async function all(tasks) {
  const next = tasks.values();
  const work = async (machine) => {
    for (const task of next) {
      await task(machine).catch((error) => objections.push(firstError(error)));
      if (values.record) record();
    }
  };
  await Promise.all(machines.map(work));
}
await all([
  ...queue.map((group) => (machine) => (group[0].witness ? huntInTests : huntInLives)(machine, group)),
  ...tapes.map((tape) => (machine) => playTape(machine, tape)),
]);
const kinds = new Set(rows.filter((row) => row.seed !== undefined).map((row) => Boolean(row.equipped)));
await all([...kinds].map((equipped) => (machine) => liveClean(machine, equipped)));
await Promise.all(machines.flatMap(({ witnesses, lives }) => [witnesses.close(), lives.close()]));

const missed = rows.filter((row) => row.missed);
const seeds = rows.flatMap((row) => row.seed ?? []).sort((a, b) => a - b);
console.log('');
for (const row of missed) console.log(`MISSED ${row.id}: ${row.missed}`);
for (const objection of objections) console.log(objection);
for (const id of stale)
  console.log(`the tape of ${id} is stale: node test/defects/huntDefect.mjs ${id} ${LIVES} --shrink`);
const byLives =
  seeds.length > 0
    ? `, ${seeds.length} by lives: median ${seeds[Math.floor(seeds.length / 2)]}, most ${seeds.at(-1)}`
    : '';
console.log(`${tapes.length - stale.length} of ${tapes.length} kept tapes show their defect`);
console.log(`${rows.length - missed.length} of ${rows.length} found${byLives}`);
process.exitCode = missed.length + stale.length + objections.length > 0 ? 1 : 0;
