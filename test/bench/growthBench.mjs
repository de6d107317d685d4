/**
 * One run of 200 rounds: the bytes of its log, and the cost of round 200 compared with round 20. The model is a
 * generator in this process, so no request is serialised; only the copy of a list remains of the construction of a
 * request.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { createAgent, defineTool } from '../../dist/src/index.js';
import { jsonlStore } from '../../dist/src/node.js';

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
rmSync(directory, { recursive: true });
console.log(`log of ${ROUNDS} rounds: ${bytes} bytes, ${Math.round(bytes / ROUNDS)} a round`);
console.log(
  `round 20: ${median(early).toFixed(1)} µs, round 200: ${median(late).toFixed(1)} µs, ratio ${(median(late) / median(early)).toFixed(2)} (aim 1.30)`,
);
