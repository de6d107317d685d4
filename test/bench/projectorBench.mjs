/**
 * The speed of the projector: entries per second for a whole log, and the cost of a push with a view in short and long
 * conversations. All figures are medians of CPU time, which a busy machine affects least. Run by hand: `node
 * --expose-gc test/bench/projectorBench.mjs [entries]`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const SIZE = Number(process.argv[2] ?? 1_000_000);
const SAMPLE = 1000;
const SAMPLES = 30;
const RUNS = 9;

async function load() {
  const folder = mkdtempSync(join(tmpdir(), 'projector-'));
  const outfile = join(folder, 'projector.mjs');
  const entry = fileURLToPath(new URL('../../src/projector/index.ts', import.meta.url));
  await build({ entryPoints: [entry], bundle: true, format: 'esm', outfile });
  try {
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Requests of ten entries: a message, two replies with calls and their results, the records between them, a stop. */
function makeLog(size) {
  const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const text = (value) => [{ type: 'text', text: value }];
  const request = (n) => [
    { type: 'user-message', messageId: `m${n}`, kind: 'direct', content: text('do it') },
    { type: 'agent-output', item: { type: 'assistant', text: 'I look at the file.' } },
    { type: 'agent-output', item: { type: 'tool-call', callId: `a${n}`, name: 'read', args: { path: 'main.go' } } },
    { type: 'model-reply', turn: 1, model: 'm', finish: 'tool-calls', usage, costUsd: null },
    { type: 'tool-result', callId: `a${n}`, outcome: 'succeeded', content: text('package main') },
    { type: 'agent-output', item: { type: 'tool-call', callId: `b${n}`, name: 'bash', args: { command: 'ls' } } },
    { type: 'tool-result', callId: `b${n}`, outcome: 'succeeded', content: text('main.go') },
    { type: 'agent-output', item: { type: 'assistant', text: 'Done.' } },
    { type: 'run-stop', reason: 'completed', cause: 'end_turn' },
    { type: 'checkpoint', boundary: 'RunFinished' },
  ];
  const log = [];
  for (let n = 0; log.length < size; n++) {
    for (const event of request(n)) log.push({ seq: log.length, at: n, conversationId: 'c', runId: `r${n}`, ...event });
  }
  return log.slice(0, size);
}

/** One cycle that never stops, with a text and a call every three entries. */
function makeLongCycle(size) {
  const log = [{ type: 'user-message', messageId: 'm', kind: 'direct', content: [] }];
  for (let n = 0; log.length < size; n++) {
    log.push({ type: 'agent-output', item: { type: 'assistant', text: 'next' } });
    log.push({ type: 'agent-output', item: { type: 'tool-call', callId: `c${n}`, name: 'read', args: null } });
    log.push({ type: 'tool-result', callId: `c${n}`, outcome: 'succeeded', content: [] });
  }
  return log.slice(0, size).map((event, seq) => ({ seq, at: 0, conversationId: 'c', runId: 'r', ...event }));
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function timed(work) {
  globalThis.gc?.();
  const start = cpuMs();
  work();
  return cpuMs() - start;
}

function walk(view) {
  let nodes = 0;
  const stack = [view];
  while (stack.length > 0) {
    const value = stack.pop();
    nodes++;
    if (typeof value === 'object' && value !== null) for (const key of Object.keys(value)) stack.push(value[key]);
  }
  return nodes;
}

const { project, createProjector } = await load();

function measureWhole(name, log) {
  const rate = (read) => {
    const times = Array.from({ length: RUNS }, () => timed(() => read(project(log))));
    const millions = (ms) => (log.length / ms / 1000).toFixed(2);
    return `${millions(median(times))} M entries/s (best ${millions(Math.min(...times))})`;
  };
  const fold = rate(() => 0);
  const built = rate((view) => view.cycles.map(({ steps, rounds }) => steps.length + rounds.length).length);
  console.log(`${name}: ${log.length} entries, ${walk(project(log))} values in the view`);
  console.log(`  project()                       ${fold}`);
  console.log(`  project() and every cycle built ${built}`);
}

/**
 * A thousand pushes with a view each, many times over: each on untouched entries, at the start of separate logs and at
 * the end of a long one.
 */
function measureGrowth(name, make, size, read) {
  const beginnings = Array.from({ length: 2 * SAMPLES }, () => make(SAMPLE));
  const log = make(size);
  const sample = (projector, entries, from) => {
    const start = cpuMs();
    for (let i = from; i < from + SAMPLE; i++) {
      projector.push(entries[i]);
      read(projector.view());
    }
    return ((cpuMs() - start) * 1000) / SAMPLE;
  };
  for (const entries of beginnings.splice(0, SAMPLES)) sample(createProjector(), entries, 0);
  const projector = createProjector();
  const from = size - SAMPLES * SAMPLE;
  for (let i = 0; i < from; i++) projector.push(log[i]);
  const first = [];
  const last = [];
  for (const [i, entries] of beginnings.entries()) {
    first.push(sample(createProjector(), entries, 0));
    last.push(sample(projector, log, from + i * SAMPLE));
  }
  const ratio = (median(last) / median(first)).toFixed(2);
  console.log(
    `${name}: first ${median(first).toFixed(2)} us, last ${median(last).toFixed(2)} us a push, ratio ${ratio}`,
  );
}

measureWhole('requests of ten entries', makeLog(SIZE));
measureWhole('one long cycle', makeLongCycle(SIZE));
measureGrowth('push and view, many cycles', makeLog, SIZE, () => {});
measureGrowth('push and view, one long cycle', makeLongCycle, SIZE, () => {});
measureGrowth('push, view and read the cycles, one long cycle', makeLongCycle, SIZE, (view) => view.cycles.length);
measureGrowth('push, view and read the cycles, many cycles', makeLog, SIZE / 10, (view) => view.cycles.length);
