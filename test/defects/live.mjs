/**
 * Hunts one planted defect by simulated lives: seeds 1, 2, 3 … until an invariant breaks. Prints what it found as JSON;
 * with `--shrink` also the shortest tape found that still breaks it. With `--tape` it lives that one life.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from '../support/bundled.mjs';
import { defects } from './all.mjs';
import { bundlerPlugin, planted } from './plant.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { shrink: { type: 'boolean', default: false }, tape: { type: 'string' } },
});
const [id, most] = positionals;
const edits = defects.find((defect) => defect.id === id)?.edits ?? [];
if (edits.length === 0 && id !== 'none') throw new Error(`no defect is named ${id}`);
const { shrink, simulate } = await bundled(
  "export { shrink, simulate } from '../../src/testing/index.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
  [bundlerPlugin(planted(edits))],
);

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
