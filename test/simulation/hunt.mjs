/**
 * `npm run defects`: plants each defect of the list into the built library, one process each, and lets the simulator
 * look for it. `--only id` hunts that one. The exit code is 1 where one is not found within 2,000 schedules, where one
 * could not be planted, where the tape that is kept of one does not show it any more (`plant.mjs <id> 2000 --shrink`
 * gives a new one), and where the library as it is breaks an invariant.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { defects } from './defects.mjs';
import regressions from './regressions.json' with { type: 'json' };

const AT_ONCE = 2;
const SCHEDULES = 2000;
const CLEAN = 200;
/** For all schedules of one hunt on a slow machine. */
const LONGEST = 300_000;
const PLANT = fileURLToPath(new URL('plant.mjs', import.meta.url));

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const wanted = defects.filter(({ id }) => values.only === undefined || id === values.only);
if (wanted.length === 0) throw new Error(`no defect is named ${values.only}`);

const run = promisify(execFile);
async function hunt(id, ...how) {
  try {
    const env = { ...process.env, NODE_ENV: 'production' };
    const { stdout } = await run(process.execPath, [PLANT, id, ...how], { env, timeout: LONGEST });
    return JSON.parse(stdout);
  } catch (error) {
    const [first] = String(error.stderr || error.message).match(/Error: .*/) ?? [String(error.message)];
    return { id, schedules: 0, failed: first };
  }
}

const jobs = wanted.map(({ id }) => [id, String(SCHEDULES)]);
if (values.only === undefined) jobs.unshift(['none', String(CLEAN)]);
const kept = regressions.filter(({ defect }) => wanted.some(({ id }) => id === defect));
const tapes = kept.map(({ defect, tape }) => [defect, '1', '--tape', tape.replaceAll(' ', ',')]);
const reports = [];
const stale = [];
const worker = async () => {
  for (let job = jobs.shift(); job; job = jobs.shift()) reports.push(await hunt(...job));
  for (let job = tapes.shift(); job; job = tapes.shift()) {
    const { id, invariant } = await hunt(...job);
    if (!invariant) stale.push(id);
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));

const clean = reports.find(({ id }) => id === 'none');
const rows = reports.filter((report) => report !== clean).sort((a, b) => (a.id < b.id ? -1 : 1));
for (const { id, schedules, invariant, detail, failed } of rows) {
  const said = failed ?? (invariant ? `${invariant}: ${detail}` : `not found within ${schedules}`);
  console.log(`${id.padEnd(34)} ${String(invariant ? schedules : '-').padStart(5)}  ${said.slice(0, 120)}`);
}
const missed = rows.filter(({ invariant }) => !invariant);
const counts = rows.flatMap(({ invariant, schedules }) => (invariant ? [schedules] : [])).sort((a, b) => a - b);
const median = counts[Math.floor(counts.length / 2)] ?? 0;
console.log(`${counts.length} of ${rows.length} found: median ${median}, most ${counts.at(-1) ?? 0} schedules`);
if (clean) console.log(clean.failed ?? clean.invariant ?? `${clean.schedules} schedules without a defect: none broken`);
console.log(`${kept.length - stale.length} of ${kept.length} kept tapes show their defect`);
for (const id of stale)
  console.log(`the tape of ${id} is stale: node test/simulation/plant.mjs ${id} ${SCHEDULES} --shrink`);
process.exitCode = missed.length > 0 || stale.length > 0 || clean?.invariant || clean?.failed ? 1 : 0;
