/**
 * `npm run bench`: CPU time of runchart against a hand-written loop on the vendor's client, scenario by scenario, each
 * run of each contender in a process of its own, in turn. Quotes the medians of 7 and the ratio of each pair.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { scenarios } from './scripts.mjs';

const AIM = { A: 1.0, B: 1.4, C: 2.8, D: 0.6, G: 1.2 };
const wanted = process.argv.slice(2).filter((name) => name in scenarios);
const names = wanted.length > 0 ? wanted : Object.keys(AIM);
const rounds = Number(process.env.BENCH_ROUNDS ?? 7);

const script = fileURLToPath(new URL('./contend.mjs', import.meta.url));
const measure = (contender, name) =>
  JSON.parse(
    execFileSync(process.execPath, [script, contender, name], { env: { ...process.env, NODE_ENV: 'production' } }),
  );
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const cell = (value, digits = 2) => value.toFixed(digits).padStart(8);

console.log('scenario                      floor ms  runchart ms  ratio (min-max)        aim   MiB floor/runchart');
for (const name of names) {
  const pairs = Array.from({ length: rounds }, () => [measure('floor', name), measure('runchart', name)]);
  for (const [floor, ours] of pairs) if (floor.characters !== ours.characters) throw new Error(`${name}: texts differ`);
  const ratios = pairs.map(([floor, ours]) => ours.cpuMs / floor.cpuMs);
  const [floorMs, oursMs] = [0, 1].map((side) => median(pairs.map((pair) => pair[side].cpuMs)));
  const [floorMiB, oursMiB] = [0, 1].map((side) => median(pairs.map((pair) => pair[side].rssMiB)));
  const spread = `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)})`;
  const about = `${name} ${scenarios[name].about}`.padEnd(28);
  console.log(
    `${about}${cell(floorMs, 3)}  ${cell(oursMs, 3)}     ${spread.padEnd(20)} ${cell(AIM[name] ?? Number.NaN)}  ${floorMiB.toFixed(0)}/${oursMiB.toFixed(0)}`,
  );
}
