/**
 * `npm run walk -- --runs 2000 --seed 1`: random walks from a seed on. The required number of answers with 400
 * is 0. One run prints its log.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from '../support/bundled.mjs';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const [runs, first] = [Number(values.runs), Number(values.seed)];

const { walk, walkServer } = await bundled(
  "export { walk } from './walk.ts'; export { walkServer } from './strictServer.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
);

const server = await walkServer();
const total = { requests: 0, refused: 0, restarts: 0, entries: 0, failed: 0 };
const began = performance.now();
for (let seed = first; seed < first + runs; seed++) {
  const { requests, refused, restarts, faults, log } = await walk(seed, server);
  total.requests += requests;
  total.refused += refused;
  total.restarts += restarts;
  total.entries += log.length;
  if (runs === 1) for (const entry of log) console.log(JSON.stringify(entry));
  if (faults.length === 0) continue;
  total.failed += 1;
  console.error([`seed ${seed} (npm run walk -- --runs 1 --seed ${seed})`, ...faults].join('\n  '));
}
await server.close();
const seconds = ((performance.now() - began) / 1000).toFixed(1);
const { requests, refused, restarts, entries, failed } = total;
console.log(
  `${runs} runs from seed ${first} in ${seconds} s: ${requests} requests, ${refused} x 400, ${restarts} restarts, ${entries} entries, ${failed} runs with faults`,
);
process.exitCode = failed > 0 ? 1 : 0;
