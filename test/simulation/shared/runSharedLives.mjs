/**
 * `npm run simulate:shared`: many lives of two or three processes over one simulated database, one seed each. `--seed N` is the first
 * seed, and `--runs N` the number of lives. With one life, the default after `--seed`, that life is printed. `--minutes N` is a time
 * limit. A violation ends it with exit code 1, the seed, the shortest tape found and the command that repeats it. `--twice` repeats
 * each life and compares the logs. `--keep` continues after a violation, and counts the broken lives. `--trace` prints every event.
 */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from '../../support/bundled.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string' },
    minutes: { type: 'string' },
    tape: { type: 'string' },
    twice: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});
const { shrink, simulateShared } = await bundled(
  "export { shrink } from '../../../src/testing/simulation/shrink.ts'; export { simulateShared } from './sharedLife.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
);
const first = Number(values.seed ?? 1);
const until = values.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(values.minutes) * 60_000;
const asked = values.runs ?? (values.seed === undefined || values.minutes !== undefined ? undefined : 1);
const runs = Number(asked ?? (values.minutes === undefined ? 500 : Number.POSITIVE_INFINITY));
const tape = values.tape?.split(',').map(Number);

const show = ({ logs, violations, steps, crashes, takeovers }) => {
  for (const [id, log] of Object.entries(logs)) {
    console.log(`conversation ${id}`);
    for (const { seq, runId, type, at: _, conversationId: __, ...rest } of log)
      console.log(
        `${String(seq).padStart(4)} ${(runId ?? '-').padEnd(12)} ${type} ${JSON.stringify(rest).slice(0, 160)}`,
      );
  }
  console.log(`${steps} steps, ${crashes} crashes, ${takeovers} takeovers`);
  for (const { invariant, detail } of violations) console.log(`broken: ${invariant}: ${detail}`);
};

const PROGRESS_MS = 60_000;
const cpu = process.cpuUsage();
const totals = { lives: 0, broken: 0, steps: 0, crashes: 0, takeovers: 0, entries: 0 };
const faults = new Map();
const digest = createHash('sha256');
let progressAt = Date.now() + PROGRESS_MS;
for (let seed = first; totals.lives < runs && Date.now() < until; seed++) {
  const report = await simulateShared({ seed, tape, trace: values.trace ? console.log : undefined });
  totals.lives += 1;
  for (const count of ['steps', 'crashes', 'takeovers']) totals[count] += report[count];
  for (const log of Object.values(report.logs)) totals.entries += log.length;
  digest.update(JSON.stringify(report.logs));
  for (const [kind, count] of Object.entries(report.faults)) faults.set(kind, (faults.get(kind) ?? 0) + count);
  if (values.twice) {
    const again = await simulateShared({ seed, tape });
    if (JSON.stringify(again.logs) !== JSON.stringify(report.logs)) {
      console.error(`seed ${seed} gave two different logs`);
      process.exit(1);
    }
  }
  if (report.violations.length > 0) {
    totals.broken += 1;
    const [{ invariant, detail }] = report.violations;
    if (values.keep) console.error(`seed ${seed} breaks ${invariant}: ${detail.slice(0, 300)}`);
    else {
      show(report);
      const shorter = await shrink((numbers) => simulateShared({ seed, tape: numbers }), report.tape, invariant);
      console.error(`seed ${seed} breaks ${invariant}: npm run simulate:shared -- --seed ${seed}`);
      console.error(
        `shortest tape found: npm run simulate:shared -- --seed ${seed} --tape ${shorter.join(',') || '0'}`,
      );
      process.exit(1);
    }
  }
  if (runs === 1) show(report);
  if (Date.now() >= progressAt) {
    console.error(`${new Date().toISOString()} ${totals.lives} lives up to seed ${seed}, ${totals.broken} broken`);
    progressAt = Date.now() + PROGRESS_MS;
  }
}
const used = process.cpuUsage(cpu);
const seconds = (used.user + used.system) / 1e6;
const mean = (total) => (total / totals.lives).toFixed(1);
console.log(
  `${totals.lives} lives, seeds ${first} to ${first + totals.lives - 1}, ${totals.broken} broken: mean ${mean(totals.steps)} steps, ` +
    `${mean(totals.entries)} entries, ${totals.crashes} crashes, ${totals.takeovers} takeovers, ${(totals.lives / seconds).toFixed(1)} lives a second of CPU`,
);
console.log(`digest of all logs: ${digest.digest('hex').slice(0, 32)}`);
const counts = [...faults].sort(([, a], [, b]) => b - a);
console.log(counts.map(([kind, count]) => `${kind} ${count}`).join(', '));
process.exit(0);
