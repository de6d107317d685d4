/**
 * What an inspector costs a run: CPU of so many runs of ten turns with a tool call each, without one, with one that nobody
 * watches, and with a page that takes everything until it has all of it, in turns. Prints the medians and the median of
 * the ratios of neighbours. Needs a build.
 */
import * as z from 'zod';
import { createAgent, defineTool } from '../../dist/src/index.js';
import { startInspector } from '../../dist/src/inspect/index.js';

const RUNS = 150;
const ROUNDS = 15;
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

async function cpuOf(inspect, after = async () => {}) {
  const agent = createAgent({ model: model(), tools: [tool], ...(inspect && { inspect }) });
  globalThis.gc?.();
  const before = process.cpuUsage();
  for (let run = 0; run < RUNS; run += 1) {
    const conversation = await agent.open();
    const { reason } = await conversation.send('Go.').result;
    if (reason !== 'completed') throw new Error(`a run ended as ${reason}: ${conversation.log().at(-2)?.cause}`);
    await conversation.close();
  }
  await after();
  const { user, system } = process.cpuUsage(before);
  await agent.close();
  return (user + system) / 1000 / RUNS;
}

const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** A page in another process takes what it is sent; here only what the sending costs counts. */
async function watched(inspector) {
  const { spawn } = await import('node:child_process');
  const url = inspector.url.replace('http', 'ws').replace('/?', '/ws?');
  const script = `import { WebSocket } from 'ws';
    const socket = new WebSocket(${JSON.stringify(url)});
    let closed = 0;
    socket.on('open', () => { socket.send('{"type":"subscribe","from":0}'); console.log('open'); });
    socket.on('message', (frame) => {
      closed += String(frame).split('"type":"closed"').length - 1;
      if (closed === ${RUNS}) console.log('all');
    });
    socket.on('close', () => process.exit(0));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = () => new Promise((resolve) => child.stdout.once('data', resolve));
  await said();
  return { hasAll: said(), stop: () => child.kill() };
}

const costs = { off: [], on: [], watched: [] };
await cpuOf();
for (let round = 0; round < ROUNDS; round += 1) {
  costs.off.push(await cpuOf());
  const alone = await startInspector();
  costs.on.push(await cpuOf(alone.observe));
  await alone.close();
  const shown = await startInspector();
  const page = await watched(shown);
  costs.watched.push(await cpuOf(shown.observe, () => page.hasAll));
  page.stop();
  await shown.close();
}
const more = (list) => `${((median(list.map((cost, round) => cost / costs.off[round])) - 1) * 100).toFixed(0)} % more`;
const ms = (list) => `${median([...list]).toFixed(2)} ms`;
console.log(`CPU of a run of ${TURNS} turns: ${ms(costs.off)} without an inspector`);
console.log(`with one that nobody watches: ${ms(costs.on)}, ${more(costs.on)}`);
console.log(`with a page that takes everything: ${ms(costs.watched)}, ${more(costs.watched)}`);
