/**
 * One run of 200 rounds: the bytes of its log, and the cost of round 200 compared with round 20. The model is a
 * generator in this process, so no request is serialised; only the copy of a list remains of the construction of a
 * request. Then the cost of opening and viewing a log of 1,000 to 100,000 entries, compared with parsing its lines, and the time for
 * which opening blocks the event loop.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import * as z from 'zod';
import { createAgent, defineTool } from '../../dist/src/index.js';
import { jsonlStore } from '../../dist/src/node.js';
import { repeatedLog } from './longLog.mjs';

const ROUNDS = 200;
const echo = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => `echo: ${text}`,
});
const policies = { limits: { turns: 1000, identicalCalls: 1000 } };

/** Times of the model calls of one run, in microseconds. */
async function timedRun(store) {
  const times = [];
  let round = 0;
  const model = {
    id: 'bench',
    async *stream() {
      times.push(performance.now() * 1000);
      round += 1;
      if (round > ROUNDS) {
        yield { type: 'text-delta', text: 'done' };
        yield { type: 'finish', reason: 'stop' };
        return;
      }
      yield { type: 'tool-call', callId: `call_${round}`, name: 'echo', args: `{"text":"round ${round}"}` };
      yield { type: 'finish', reason: 'tool-calls' };
    },
  };
  const agent = createAgent({ model, tools: [echo], policies, ...(store && { store }) });
  const conversation = await agent.open('growth');
  const result = await conversation.send('Go.').result;
  if (result.turns !== ROUNDS + 1) throw new Error(JSON.stringify(result));
  await agent.close();
  return times;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const steps = (times, from, to) => Array.from({ length: to - from }, (_, i) => times[from + i + 1] - times[from + i]);

for (let i = 0; i < 20; i++) await timedRun();
const early = [];
const late = [];
for (let i = 0; i < 60; i++) {
  const times = await timedRun();
  early.push(...steps(times, 15, 25));
  late.push(...steps(times, 190, 200));
}
const directory = mkdtempSync(join(tmpdir(), 'runchart-growth-'));
await timedRun(jsonlStore(directory));
const file = readdirSync(directory).find((name) => name.endsWith('.jsonl'));
const bytes = statSync(join(directory, file)).size;
console.log(`log of ${ROUNDS} rounds: ${bytes} bytes, ${Math.round(bytes / ROUNDS)} a round`);
console.log(
  `round 20: ${median(early).toFixed(1)} µs, round 200: ${median(late).toFixed(1)} µs, ratio ${(median(late) / median(early)).toFixed(2)} (aim 1.30)`,
);

const idleModel = { id: 'bench', async *stream() {} };
const openedBy = (store) => createAgent({ model: idleModel, tools: [echo], store });

const cpuMs = () => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;
const turnOfLoop = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function measureOpening(id) {
  const start = cpuMs();
  const lines = readFileSync(join(directory, `${id}.jsonl`), 'utf8').split('\n');
  const parsed = lines.filter((line) => line !== '').map((line) => JSON.parse(line));
  const parse = cpuMs() - start;
  const stringifyStart = cpuMs();
  JSON.stringify(parsed);
  const stringify = cpuMs() - stringifyStart;
  const agent = openedBy(jsonlStore(directory));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await turnOfLoop(5);
  delay.reset();
  const openStart = cpuMs();
  const conversation = await agent.open(id);
  const open = cpuMs() - openStart;
  await turnOfLoop(5);
  delay.disable();
  const viewStart = cpuMs();
  conversation.view();
  const view = cpuMs() - viewStart;
  await agent.close();
  return { parse, stringify, open, view, blocked: delay.max / 1e6 };
}

for (const count of [1000, 10_000, 100_000]) {
  const id = await repeatedLog(directory, count);
  const repeats = count > 10_000 ? 5 : 15;
  const measured = [];
  for (let repeat = 0; repeat < repeats; repeat++) measured.push(await measureOpening(id));
  const of = (name) => median(measured.map((each) => each[name]));
  const cost = (name) => `${name} ${of(name).toFixed(1)}`;
  console.log(
    `${count} entries, CPU ms: ${cost('parse')}, ${cost('stringify')}, ${cost('open')}, ${cost('view')}; ` +
      `open is ${(of('open') / of('parse')).toFixed(1)} times parse (aim 3), ` +
      `view ${(of('view') / (of('parse') + of('stringify'))).toFixed(1)} times parse and stringify (aim 2), ` +
      `loop blocked for ${of('blocked').toFixed(0)} ms (aim 30)`,
  );
}
rmSync(directory, { recursive: true });
