/** Hunts one planted defect: lives of seeds 1, 2, 3 … until an invariant breaks. Prints what it found as JSON. */
import { register } from 'node:module';
import { defects } from './defects.mjs';

const [id, most] = process.argv.slice(2);
const defect = defects.find((candidate) => candidate.id === id);
if (id !== 'none') register('./mutation.mjs', import.meta.url, { data: { edits: defect.edits } });
const { simulate } = await import('../../dist/src/testing/index.js');

const quiet = () => {};
process.on('uncaughtException', quiet);
let found;
let schedules = 0;
while (!found && schedules < Number(most)) {
  schedules += 1;
  const { violations } = await simulate({ seed: schedules });
  [found] = violations;
}
process.stdout.write(JSON.stringify({ id, schedules, ...found }), () => process.exit(0));
