/**
 * `npm run bench [names]`: the cost of a run of runchart compared with a hand-written loop on the vendor's client, and
 * with fetch alone. All variants run in one process in alternating slices of about 20 ms. The figure is the CPU time of
 * the main thread if Node 24 reports it, otherwise of the process. H: each in a separate process, alternating, CPU of
 * the process, peak memory and stored bytes. Last the aims, with simulated lives a second of CPU. `paths` among the
 * names, or no name: the CPU that the first generation of an agent's cases takes. `BENCH_ROUNDS` sets the number of
 * repetitions; docs/performance.md explains the figures.
 */
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { bundled } from '../support/bundled.mjs';
import { pathAgents } from './pathAgents.mjs';
import { scenarios } from './scripts.mjs';

const AIM = { A: 0.7, B: 0.9, C: 1.5, D: 0.32, E0: 0.8, E2000: 0.9, F10: 2.2, F1000: 2, G: 0.9, H200: 1.3 };
/** Stored bytes of H200 compared with the baseline's, and lives a second and core, the latter at least. */
const BYTES_AIM = 3;
const LIVES_AIM = 150;
const LIVES = 300;
/** The folder of the library's own simulated lives, which have every check. */
const SIMULATION = fileURLToPath(new URL('../simulation/', import.meta.url));
/** CPU seconds of the first generation of one agent's cases. */
const GENERATION_AIM = 4;
const CONTENDERS = ['floor', 'runchart', 'bareFetch'];
/** Rounds of T before it is measured, and before it is measured as steady. */
const WARM_ROUNDS = 15;
const STEADY_ROUNDS = 100;
const wanted = process.argv.slice(2).filter((name) => name in scenarios);
const isPartial = process.argv.length > 2;
const names = isPartial ? wanted : Object.keys(scenarios);
const measuresPaths = !isPartial || process.argv.includes('paths');
const rounds = Number(process.env.BENCH_ROUNDS ?? 7);

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const cell = (value, digits = 2, width = 9) => (value?.toFixed(digits) ?? '').padStart(width);
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * All contenders alternate in this process: milliseconds a run, from sums, after a short warm-up and after a long one.
 */
async function inTurn(name) {
  const { slice, together } = scenarios[name];
  const runs = [];
  for (const contender of CONTENDERS) {
    const { makeContender } = await import(`./${contender}.mjs`);
    runs.push(makeContender(scenarios[name]));
  }
  const count = together ? Math.ceil(slice / 10) : slice;
  let round = 0;
  async function measured(until) {
    const sums = runs.map(() => 0);
    for (; round < until; round++) {
      for (let offset = 0; offset < runs.length; offset++) {
        const at = (round + offset) % runs.length;
        const before = cpuMs();
        if (together) await Promise.all(Array.from({ length: count }, () => runs[at]()));
        else for (let i = 0; i < count; i++) await runs[at]();
        sums[at] += cpuMs() - before;
      }
    }
    return sums.map((sum) => sum / (2 * rounds * count));
  }
  await measured(Math.min(WARM_ROUNDS, 2 * rounds));
  const soon = await measured(round + 2 * rounds);
  await measured(Math.min(STEADY_ROUNDS, 15 * rounds));
  return { soon, steady: await measured(round + 2 * rounds) };
}

const script = fileURLToPath(new URL('./measureContender.mjs', import.meta.url));
const apart = (contender, name) =>
  JSON.parse(
    execFileSync(process.execPath, [script, contender, name], { env: { ...process.env, NODE_ENV: 'production' } }),
  );

const generation = fileURLToPath(new URL('./measureGeneration.mjs', import.meta.url));
/** The median over the rounds, each in a process of its own that has no paths of an earlier one. */
function generated(name) {
  const once = () => JSON.parse(execFileSync(process.execPath, [generation, name], { cwd: tmpdir() }));
  const sets = Array.from({ length: rounds }, once);
  return { ...sets[0], cpuSeconds: median(sets.map(({ cpuSeconds }) => cpuSeconds)) };
}

/** Simulated lives a second of this process's CPU. */
async function livesASecond() {
  const { simulate } = await bundled("export { simulate } from './checkedLife.ts';", SIMULATION);
  for (let seed = 1; seed <= LIVES / 3; seed++) await simulate({ seed });
  const before = process.cpuUsage();
  for (let seed = 1; seed <= LIVES; seed++) await simulate({ seed });
  const { user, system } = process.cpuUsage(before);
  return LIVES / ((user + system) / 1e6);
}

const reached = [];
const head = 'scenario                          floor ms    ratio  bare fetch      aim';
console.log(
  `T  ${head}   steady   (${process.threadCpuUsage ? 'main thread' : 'process'}, Node ${process.versions.node})`,
);
for (const name of names) {
  const { soon, steady } = await inTurn(name);
  const [floor, ours, bare] = soon;
  const late = steady[1] / steady[0];
  const about = `${name} ${scenarios[name].about}`.padEnd(32);
  console.log(
    `T  ${about}${cell(floor, 3)}${cell(ours / floor)}${cell(bare / floor, 2, 12)}${cell(AIM[name])}${cell(late)}`,
  );
  if (AIM[name]) reached.push([name, (ours / floor).toFixed(2), late.toFixed(2), `<= ${AIM[name]}`]);
}
console.log(`\nH  ${head}   min-max      MiB floor/ours   bytes floor/ours`);
for (const name of names) {
  const sets = Array.from({ length: rounds }, () => CONTENDERS.map((contender) => apart(contender, name)));
  for (const [floor, ours] of sets) if (floor.characters !== ours.characters) throw new Error(`${name}: texts differ`);
  const ratios = sets.map(([floor, ours]) => ours.cpuMs / floor.cpuMs);
  const of = (side, key) => median(sets.map((set) => set[side][key]));
  const about = `${name} ${scenarios[name].about}`.padEnd(32);
  const spread = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`.padStart(10);
  const memory = `${of(0, 'rssMiB').toFixed(0)}/${of(1, 'rssMiB').toFixed(0)}`.padStart(14);
  const bytes = of(1, 'bytes') > 0 ? `   ${of(0, 'bytes')}/${of(1, 'bytes')}` : '';
  if (scenarios[name].log) {
    reached.push([`bytes of ${name}`, (of(1, 'bytes') / of(0, 'bytes')).toFixed(2), '', `<= ${BYTES_AIM}`]);
  }
  const bare = of(2, 'cpuMs') / of(0, 'cpuMs');
  console.log(
    `H  ${about}${cell(of(0, 'cpuMs'), 3)}${cell(median(ratios))}${cell(bare, 2, 12)}${cell(AIM[name])}${spread}${memory}${bytes}`,
  );
}
if (measuresPaths) {
  console.log('\nagentPaths           CPU s    cases   bounds that were lowered');
  for (const name of Object.keys(pathAgents)) {
    const { cpuSeconds, cases, closer } = generated(name);
    const lowered = Object.entries(closer).map(([bound, value]) => `${bound} ${value}`);
    console.log(`${name.padEnd(19)}${cell(cpuSeconds, 2, 7)}${String(cases).padStart(9)}   ${lowered.join(', ')}`);
    reached.push([`paths: ${name}`, cpuSeconds.toFixed(2), '', `<= ${GENERATION_AIM}`]);
  }
}
if (!isPartial) reached.push(['lives a second', (await livesASecond()).toFixed(0), '', `>= ${LIVES_AIM}`]);
console.log('\nT, T steady, and the aims');
for (const [what, value, steady, aim] of reached)
  console.log(`${what.padEnd(27)}${value.padStart(8)}${steady.padStart(8)}   ${aim}`);
