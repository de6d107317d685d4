/**
 * Hunts one planted defect: lives of seeds 1, 2, 3 … until an invariant breaks. Prints what it found as JSON; with
 * `--shrink` also the shortest tape found that still breaks it. With `--tape` it lives that one life.
 */
import { register } from 'node:module';
import { parseArgs } from 'node:util';
import { defects } from './defects.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { shrink: { type: 'boolean', default: false }, tape: { type: 'string' } },
});
const [id, most] = positionals;
const defect = defects.find((candidate) => candidate.id === id);
if (id !== 'none') register('./mutation.mjs', import.meta.url, { data: { edits: defect.edits } });
const { shrink, simulate } = await import('../../dist/src/testing/index.js');

const quiet = () => {};
process.on('uncaughtException', quiet);
const given = values.tape?.split(',').map(Number);
let found;
let report;
let schedules = 0;
while (!found && schedules < (given ? 1 : Number(most))) {
  schedules += 1;
  report = await simulate({ seed: schedules, ...(given && { tape: given }) });
  [found] = report.violations;
}
const live = (tape) => simulate({ seed: 0, tape });
const tape = found && values.shrink ? { tape: await shrink(live, report.tape, found.invariant) } : {};
process.stdout.write(JSON.stringify({ id, schedules, ...found, ...tape }), () => process.exit(0));
