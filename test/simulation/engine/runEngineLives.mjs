/**
 * `npm run simulate:engine`: many lives of a conversation that a durable engine holds, one seed each. `--seed N` is the first seed, and
 * `--runs N` the number of lives. `--minutes N` is a time limit. With `--replies N` another invocation continues after so many replies,
 * and with `--version N` the invocations after so many have another version of the charts. With `--agents`, the agent has sub-agents, and
 * with `--timers` models fail and runs have time limits. A violation ends it with exit code 1 and the seed.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundled } from '../../support/bundled.mjs';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    runs: { type: 'string' },
    minutes: { type: 'string' },
    replies: { type: 'string' },
    version: { type: 'string' },
    agents: { type: 'boolean' },
    timers: { type: 'boolean' },
  },
});
const { simulateEngine } = await bundled(
  "export { simulateEngine } from './engineLife.ts';",
  fileURLToPath(new URL('.', import.meta.url)),
);
const first = Number(values.seed ?? 1);
const until = values.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(values.minutes) * 60_000;
const most = Number(values.runs ?? (values.minutes ? Number.POSITIVE_INFINITY : values.seed ? 1 : 200));
const life = {
  ...(values.replies && { repliesMost: Number(values.replies) }),
  ...(values.agents && { hasSubAgents: true }),
  ...(values.timers && { hasTimers: true }),
  ...(values.version && { sameVersion: Number(values.version) }),
};
const totals = {};
const cpu = process.cpuUsage();
let lives = 0;
for (let seed = first; lives < most && Date.now() < until; seed++) {
  const { violations, counts, log } = await simulateEngine({ ...life, seed });
  lives += 1;
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count;
  if (most === 1 || violations.length > 0)
    for (const { seq, runId, type, at: _, conversationId: __, ...rest } of log)
      console.log(
        `${String(seq).padStart(4)} ${(runId ?? '-').padEnd(16)} ${type} ${JSON.stringify(rest).slice(0, 160)}`,
      );
  for (const { invariant, detail } of violations) console.error(`seed ${seed} breaks ${invariant}: ${detail}`);
  if (violations.length > 0) process.exit(1);
}
const { user, system } = process.cpuUsage(cpu);
console.log(
  `${lives} lives from seed ${first}, none broken: ${(lives / ((user + system) / 1e6)).toFixed(1)} a second of CPU`,
);
console.log(
  Object.entries(totals)
    .map(([name, count]) => `${name} ${count}`)
    .join(', '),
);
process.exit(0);
