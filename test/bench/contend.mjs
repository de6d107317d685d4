/** One contender, one scenario, one process: prints CPU milliseconds a run and the peak memory, as JSON. */
import { scenarios } from './scripts.mjs';

const [, , contender, name] = process.argv;
const { makeContender } = await import(`./${contender}.mjs`);
const { runs, warm, together } = scenarios[name];
const run = makeContender(scenarios[name]);

async function many(count) {
  if (together) await Promise.all(Array.from({ length: count }, () => run()));
  else for (let i = 0; i < count; i++) await run();
}

const { characters, bytes } = await run();
await many(warm);
const before = process.cpuUsage();
await many(runs);
const used = process.cpuUsage(before);
const cpuMs = (used.user + used.system) / 1000 / runs;
process.stdout.write(JSON.stringify({ cpuMs, rssMiB: process.resourceUsage().maxRSS / 1024, characters, bytes }));
