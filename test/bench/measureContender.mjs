/** One contender, one scenario, one process: prints CPU milliseconds a run and the peak memory, as JSON. */
import { scenarios } from './scripts.mjs';

const [, , contender, name] = process.argv;
const { makeContender, storedBytes } = await import(`./${contender}.mjs`);
const { runs, warm, together, log } = scenarios[name];
const run = makeContender(scenarios[name]);

async function many(count) {
  if (together) await Promise.all(Array.from({ length: count }, () => run()));
  else for (let i = 0; i < count; i++) await run();
}

const first = await run();
const { characters } = first;
// The stores of the timed runs keep their entries. The file store shows the size of a log.
const bytes = log && storedBytes ? await storedBytes(scenarios[name]) : first.bytes;
await many(warm);
const before = process.cpuUsage();
await many(runs);
const used = process.cpuUsage(before);
const cpuMs = (used.user + used.system) / 1000 / runs;
process.stdout.write(JSON.stringify({ cpuMs, rssMiB: process.resourceUsage().maxRSS / 1024, characters, bytes }));
