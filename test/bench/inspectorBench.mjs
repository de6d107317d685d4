/**
 * The cost of an inspector for a run. The figure is the CPU time of ten turns with one tool call each. It is measured
 * without an inspector, with one without a page, and with a page that reads everything. The first two run in one
 * process, in alternating slices, and count the main thread alone if Node reports it. Two processes would differ by
 * more than the measured cost. A page is measured in a separate process, beside one without an inspector, since it
 * reads at its own pace. Needs a build.
 *
 * The figures exaggerate. Model, tool and store answer within microtasks, so hundreds of runs per second are observed.
 * The inspector is compared with runchart's own work alone. A run with a real model waits most of its time, and has
 * prompts and files to process in both cases. Between two runs the event loop turns once, because a page receives
 * nothing before.
 */
import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { createAgent, defineTool, memoryStore } from '../../dist/src/index.js';
import { startInspector } from '../../dist/src/inspect/index.js';

const WARM = 600;
const RUNS = 800;
const ROUNDS = 5;
/** Runs of a slice, and alternating slices, of which the first are not counted. */
const SLICE = 20;
const SLICES = 80;
const WARM_SLICES = 40;
const TURNS = 10;

const tool = defineTool({
  name: 'echo',
  description: 'Returns its text.',
  parameters: z.object({ text: z.string() }),
  execute: ({ text }) => text,
});

/** A reply of 40 deltas, and a call except in the last turn. */
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

/**
 * Ended runs are removed: with a store that keeps all of them, most of the time would be garbage collection. `times`:
 * receives the duration of each.
 */
async function runs({ agent, store }, count, times) {
  for (let run = 0; run < count; run += 1) {
    const began = performance.now();
    const conversation = await agent.open();
    const { reason } = await conversation.send('Go.').result;
    if (reason !== 'completed') throw new Error(`a run ended as ${reason}: ${conversation.log().at(-2)?.cause}`);
    await conversation.close();
    await store.delete(conversation.id);
    times?.push(performance.now() - began);
    await new Promise(setImmediate);
  }
}

/** A page in another process reads the messages; here only the cost of sending counts. */
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
  const nextOutput = () => new Promise((resolve) => page.stdout.once('data', resolve));
  await nextOutput();
  return { hasAll: nextOutput, stop: () => page.kill() };
}

function agentWith(inspector) {
  const store = memoryStore();
  const inspect = inspector && { inspect: inspector.observe };
  return { store, agent: createAgent({ model: model(), tools: [tool], store, ...inspect }) };
}

/**
 * The duration of the slowest of the fastest third of all runs: it hardly contains other work of the machine and the
 * collector.
 */
const third = (times) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 3)];

/** Without an inspector and with one without a page: CPU of a run in ms, and the duration of the fastest third. */
async function inTurn() {
  const cpu = () => {
    const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
    return (user + system) / 1000;
  };
  const inspector = await startInspector();
  const agents = [agentWith(undefined), agentWith(inspector)];
  const sums = [0, 0];
  const times = [[], []];
  for (let slice = -WARM_SLICES; slice < SLICES; slice += 1) {
    for (const offset of [0, 1]) {
      const at = (slice + WARM_SLICES + offset) % 2;
      const before = cpu();
      await runs(agents[at], SLICE, slice >= 0 ? times[at] : undefined);
      if (slice >= 0) sums[at] += cpu() - before;
    }
  }
  for (const { agent } of agents) await agent.close();
  await inspector.close();
  return { cpu: sums.map((sum) => sum / SLICES / SLICE), fast: times.map(third) };
}

/** CPU of a run in ms, of the whole process. */
async function apart(isWatched) {
  const inspector = isWatched ? await startInspector() : undefined;
  const page = inspector && (await watched(inspector));
  const observed = agentWith(inspector);
  let before = process.cpuUsage();
  for (const count of [WARM, RUNS]) {
    const hasAll = page?.hasAll();
    before = process.cpuUsage();
    await runs(observed, count);
    await hasAll;
  }
  const { user, system } = process.cpuUsage(before);
  page?.stop();
  await observed.agent.close();
  await inspector?.close();
  return (user + system) / 1000 / RUNS;
}

const self = fileURLToPath(import.meta.url);
const inProcess = (mode) => JSON.parse(execFileSync(process.execPath, [self, mode], { encoding: 'utf8' }));
const sum = (values) => values.reduce((all, value) => all + value, 0);
const share = ([off, on]) => `${((on / off - 1) * 100).toFixed(0)}`;
const difference = (off, on) =>
  `${off.toFixed(2)} ms without an inspector, ${on.toFixed(2)} ms with it: ${share([off, on])} % more`;

function compare() {
  const pairs = Array.from({ length: ROUNDS }, () => inProcess('inTurn'));
  const of = (what) => [0, 1].map((at) => sum(pairs.map((pair) => pair[what][at])) / ROUNDS);
  const each = (what) => pairs.map((pair) => share(pair[what])).join(', ');
  console.log(`A run of ${TURNS} turns without a page, CPU: ${difference(...of('cpu'))} (${each('cpu')})`);
  console.log(`the fastest third: ${difference(...of('fast'))} (${each('fast')})`);
  const rounds = Array.from({ length: ROUNDS }, () => [inProcess('off'), inProcess('watched')]);
  // Other processes on the machine only add time.
  const [least, watchedLeast] = [0, 1].map((at) => Math.min(...rounds.map((round) => round[at])));
  console.log(`with a page that reads everything, CPU: ${difference(least, watchedLeast)}`);
}

const [mode] = process.argv.slice(2);
if (mode === undefined) compare();
else console.log(JSON.stringify(await (mode === 'inTurn' ? inTurn() : apart(mode === 'watched'))));
