/**
 * `npm run simulate`: many simulated lives, one seed each. `--seed N` is the first seed, and `--runs N` the number of
 * lives. With one life, the default after `--seed`, that life is printed. `--minutes N` is a time limit. A violation
 * ends it with exit code 1, the seed, the shortest tape found and the command that repeats it. `--twice` repeats each
 * life and compares the logs. The digest of all logs compares two processes, or two versions of Node. About half of the
 * agents are equipped (`equipment/`). Each kind occurs in half of them: permissions, hooks, an MCP server, the
 * inspector's observer. A run of some minutes prints its progress once a minute.
 */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from '../support/bundled.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string' },
    minutes: { type: 'string' },
    tape: { type: 'string' },
    steps: { type: 'string' },
    twice: { type: 'boolean', default: false },
  },
});
const { shrink, simulate } = await bundled(
  "export { shrink } from '../../src/testing/index.ts'; export { simulateEquipped as simulate } from './equipment/index.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
);
const first = Number(values.seed ?? 1);
const until = values.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(values.minutes) * 60_000;
const asked = values.runs ?? (values.seed === undefined || values.minutes !== undefined ? undefined : 1);
const runs = Number(asked ?? (values.minutes === undefined ? 2000 : Number.POSITIVE_INFINITY));
const tape = values.tape?.split(',').map(Number);
const size = values.steps === undefined ? {} : { maxSteps: Number(values.steps) };

const line = (entry) => {
  const { seq, runId, type, at: _, conversationId: __, ...rest } = entry;
  return `${String(seq).padStart(4)} ${(runId ?? '-').padEnd(12)} ${type} ${JSON.stringify(rest).slice(0, 160)}`;
};
const show = ({ log, violations, steps, crashes }) => {
  for (const entry of log) console.log(line(entry));
  console.log(`${steps} steps, ${crashes} crashes`);
  for (const { invariant, detail } of violations) console.log(`broken: ${invariant}: ${detail}`);
};

const EQUIPMENT = ['permissions', 'hooks', 'mcp', 'inspector'];
const PROGRESS_MS = 60_000;
const cpu = process.cpuUsage();
const totals = { lives: 0, equipped: 0, steps: 0, crashes: 0, entries: 0 };
const having = new Map(EQUIPMENT.map((kind) => [kind, 0]));
const faults = new Map();
const lengths = [];
const digest = createHash('sha256');
/** The number of agents with each kind of equipment. */
const equipped = () =>
  `${totals.equipped} of them equipped (${[...having].map(([kind, count]) => `${kind} ${count}`).join(', ')})`;
let progressAt = Date.now() + PROGRESS_MS;
for (let seed = first; totals.lives < runs && Date.now() < until; seed++) {
  const report = await simulate({ seed, ...size, ...(tape && { tape }) });
  totals.lives += 1;
  totals.steps += report.steps;
  totals.crashes += report.crashes;
  totals.entries += report.log.length;
  const kinds = EQUIPMENT.filter((kind) => report.faults[`has-${kind}`]);
  if (kinds.length > 0) totals.equipped += 1;
  for (const kind of kinds) having.set(kind, having.get(kind) + 1);
  lengths.push(report.steps);
  digest.update(JSON.stringify(report.log));
  for (const [kind, count] of Object.entries(report.faults)) faults.set(kind, (faults.get(kind) ?? 0) + count);
  if (values.twice) {
    const again = await simulate({ seed, ...size });
    if (JSON.stringify(again.log) !== JSON.stringify(report.log)) {
      console.error(`seed ${seed} gave two different logs`);
      process.exit(1);
    }
  }
  if (report.violations.length > 0) {
    show(report);
    const [{ invariant }] = report.violations;
    const shorter = await shrink((numbers) => simulate({ seed, ...size, tape: numbers }), report.tape, invariant);
    console.error(`seed ${seed} breaks ${invariant}: npm run simulate -- --seed ${seed}`);
    console.error(`shortest tape found: npm run simulate -- --seed ${seed} --tape ${shorter.join(',') || '0'}`);
    process.exit(1);
  }
  if (runs === 1) show(report);
  if (Date.now() >= progressAt) {
    console.error(`${new Date().toISOString()} ${totals.lives} lives up to seed ${seed}, ${equipped()}`);
    progressAt = Date.now() + PROGRESS_MS;
  }
}
const used = process.cpuUsage(cpu);
const seconds = (used.user + used.system) / 1e6;
const mean = (total) => (total / totals.lives).toFixed(1);
console.log(
  `${totals.lives} lives, seeds ${first} to ${first + totals.lives - 1}, no invariant broken: mean ${mean(totals.steps)} steps, ` +
    `median ${lengths.sort((a, b) => a - b)[Math.floor(lengths.length / 2)]}, ` +
    `${mean(totals.entries)} entries, ${totals.crashes} crashes, ${(totals.lives / seconds).toFixed(0)} lives a second of CPU`,
);
console.log(equipped());
console.log(`digest of all logs: ${digest.digest('hex').slice(0, 32)}`);
const counts = [...faults].sort(([, a], [, b]) => b - a);
console.log(counts.map(([kind, count]) => `${kind} ${count}`).join(', '));
process.exit(0);
