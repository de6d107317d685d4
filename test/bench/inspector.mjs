/**
 * What an inspector costs a run: CPU of a run of ten turns with a tool call each, without one, with one that nobody
 * watches, and with a page that takes everything until it has all of it, in turns. Each is measured in a process of its
 * own that has run some before: a collection that finds no conversation alive throws away what was compiled for them, and
 * a process that does all three in turns, collecting in between, compiles most of the time. Prints the least of each,
 * since what else runs on a machine only adds. Needs a build.
 *
 * It exaggerates: model, tool and store answer within microtasks, so hundreds of runs a second are observed, what an
 * inspector does is held against nothing but runchart's own work, and a page is sent tens of megabytes a second. A run with
 * a real model waits most of its time, and has prompts and files to pay for in both cases. Between two runs the loop turns
 * once: a page is sent nothing before.
 */
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { createAgent, defineTool } from '../../dist/src/index.js';
import { startInspector } from '../../dist/src/inspect/index.js';

const WARM = 600;
const RUNS = 800;
const ROUNDS = 9;
const TURNS = 10;

const tool = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => text,
});

/** A reply of 40 deltas, and a call but in the last turn. */
function model() {
  let turn = 0;
  return {
    id: 'bench',
    async *stream() {
      turn += 1;
      for (let piece = 0; piece < 40; piece += 1) yield { type: 'text-delta', text: 'some words ' };
      if (turn % TURNS !== 0)
        yield { type: 'tool-call', callId: `c${turn}`, name: 'echo', args: `{"text":"${turn}${'x'.repeat(200)}"}` };
      const reason = turn % TURNS === 0 ? 'stop' : 'tool-calls';
      yield { type: 'finish', reason, usage: { inputTokens: 100, outputTokens: 40 } };
    },
  };
}

async function runs(agent, count) {
  for (let run = 0; run < count; run += 1) {
    const conversation = await agent.open();
    const { reason } = await conversation.send('Go.').result;
    if (reason !== 'completed') throw new Error(`a run ended as ${reason}: ${conversation.log().at(-2)?.cause}`);
    await conversation.close();
    await new Promise(setImmediate);
  }
}

/** A page in another process takes what it is sent; here only what the sending costs counts. */
async function watched(inspector) {
  const url = inspector.url.replace('http', 'ws').replace('/?', '/ws?');
  const script = `import { WebSocket } from 'ws';
    const socket = new WebSocket(${JSON.stringify(url)});
    let closed = 0;
    socket.on('open', () => { socket.send('{"type":"subscribe","from":0}'); console.log('open'); });
    socket.on('message', (frame) => {
      const before = closed;
      closed += String(frame).split('"type":"closed"').length - 1;
      for (const all of [${WARM}, ${WARM + RUNS}]) if (before < all && closed >= all) console.log('all');
    });
    socket.on('close', () => process.exit(0));`;
  const page = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = () => new Promise((resolve) => page.stdout.once('data', resolve));
  await said();
  return { hasAll: said, stop: () => page.kill() };
}

/** CPU of a run, in ms. */
async function measure(mode) {
  const inspector = mode === 'off' ? undefined : await startInspector();
  const page = mode === 'watched' ? await watched(inspector) : undefined;
  const agent = createAgent({ model: model(), tools: [tool], ...(inspector && { inspect: inspector.observe }) });
  let before = process.cpuUsage();
  for (const count of [WARM, RUNS]) {
    const hasAll = page?.hasAll();
    before = process.cpuUsage();
    await runs(agent, count);
    await hasAll;
  }
  const { user, system } = process.cpuUsage(before);
  page?.stop();
  await agent.close();
  await inspector?.close();
  return (user + system) / 1000 / RUNS;
}

function compare() {
  const costs = { off: [], on: [], watched: [] };
  const self = fileURLToPath(import.meta.url);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [mode, list] of Object.entries(costs))
      list.push(Number(execFileSync(process.execPath, [self, mode], { encoding: 'utf8' })));
  const [off, on, watched] = Object.values(costs).map((list) => Math.min(...list));
  const more = (cost) => `${cost.toFixed(2)} ms, ${((cost / off - 1) * 100).toFixed(0)} % more`;
  console.log(`CPU of a run of ${TURNS} turns: ${off.toFixed(2)} ms without an inspector`);
  console.log(`with one that nobody watches: ${more(on)}`);
  console.log(`with a page that takes everything: ${more(watched)}`);
}

const [mode] = process.argv.slice(2);
if (mode === undefined) compare();
else console.log(await measure(mode));
