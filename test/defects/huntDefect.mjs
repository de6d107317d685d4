/**
 * Searches for one planted defect by simulated lives. `huntDefect.mjs <id> 2000` tries seeds 1 to 2,000 until an
 * invariant breaks, first those of `--seeds 37,4`. It prints its result as JSON, with `--shrink` also the shortest
 * failing tape. With `--tape` it runs that one life. `--bundle` names a module that already has the defect.
 */
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    shrink: { type: 'boolean', default: false },
    tape: { type: 'string' },
    seeds: { type: 'string', default: '' },
    bundle: { type: 'string' },
  },
});
const [id, most = '0'] = positionals;

/** The sources with the defect, or unchanged for `none`. */
async function bundle() {
  const [{ bundled }, { defects }, { entryOf }, { bundlerPlugin, planted }] = await Promise.all([
    import('../support/bundled.mjs'),
    import('./allDefects.mjs'),
    import('./plantedLives.mjs'),
    import('./plantDefect.mjs'),
  ]);
  const { edits = [], equipped = false } = defects.find((defect) => defect.id === id) ?? {};
  if (edits.length === 0 && id !== 'none') throw new Error(`no defect is named ${id}`);
  return bundled(entryOf(equipped), import.meta.dirname, [bundlerPlugin(planted(edits))]);
}
const { shrink, simulate } = await (values.bundle ? import(pathToFileURL(values.bundle).href) : bundle());

const quiet = () => {};
process.on('uncaughtException', quiet);
const chosenTape = values.tape?.split(',').map(Number);
const first = values.seeds.split(',').filter(Boolean).map(Number);
const seeds = chosenTape ? [1] : [...first, ...Array.from({ length: Number(most) }, (_, index) => index + 1)];
let found;
let report;
let seed;
for (seed of seeds) {
  report = await simulate({ seed, ...(chosenTape && { tape: chosenTape }) });
  [found] = report.violations;
  if (found) break;
}
const live = (tape) => simulate({ seed: 0, tape });
const tape = found && values.shrink ? { tape: await shrink(live, report.tape, found.invariant) } : {};
process.stdout.write(JSON.stringify({ id, seed, ...found, ...tape }), () => process.exit(0));
