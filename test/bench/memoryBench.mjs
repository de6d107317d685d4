/**
 * `npm run bench:memory` (B17): 10,000 finished runs and 1,000 suspended conversations in one process. The heap after a
 * forced collection is within 5 % of that after the first 100; no listener, actor or timer remains. The script keeps
 * the engine from compiling hot code, since compiled code takes memory too and does not indicate a leak.
 */
import { fileURLToPath } from 'node:url';
import { bundled } from '../support/bundled.mjs';

const SHARE_MAX = 1.05;
const [finished = 10_000, suspended = 1_000] = process.argv.slice(2).map(Number);
const here = fileURLToPath(new URL('.', import.meta.url));
const { ManyRuns } = await bundled("export { ManyRuns } from '../support/manyRuns.ts';", here);

const runs = new ManyRuns();

/** Bytes that are still held, without objects that only wait for collection or finalisation. */
async function held() {
  for (let round = 0; round < 5; round++) {
    globalThis.gc();
    // Removes the actors that were collected.
    void runs.actors;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().heapUsed;
}

const failures = [];
let base = 0;
async function measure(name) {
  const bytes = await held();
  base ||= bytes;
  const { listeners, timers, actors } = runs;
  const share = bytes / base;
  console.log(
    `${name.padEnd(32)} ${(bytes / 2 ** 20).toFixed(2).padStart(8)} MiB ${(share * 100).toFixed(1).padStart(7)} %   ${listeners} listeners, ${timers} timers, ${actors} actors`,
  );
  if (share > SHARE_MAX) failures.push(`${name}: ${(share * 100).toFixed(1)} % of the first value`);
  if (listeners + timers + actors > 0) failures.push(`${name}: something is left`);
}

for (let run = 0; run < 100; run++) await runs.finish();
for (let run = 0; run < 10; run++) await runs.suspend();
await measure('after the first 100');
for (let run = 100; run < finished; run++) {
  await runs.finish();
  if (run % 2_500 === 2_499) await measure(`after ${run + 1} finished`);
}
for (let run = 0; run < suspended; run++) await runs.suspend();
await measure(`and ${suspended} suspended`);
if (failures.length > 0) console.error(failures.join('\n'));
process.exitCode = failures.length > 0 ? 1 : 0;
