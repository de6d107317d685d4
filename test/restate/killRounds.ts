/**
 * `kill -9` of the worker or of the server at points of a run with three tools, spread evenly over its duration: each run ends, no tool
 * with a result runs again, and a watcher receives every entry once. `node test/restate/killRounds.ts --target worker --rounds 20`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { LogEntry } from '../../src/index.ts';
import { restateAgent } from '../../src/restate/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const { values } = parseArgs({
  options: { target: { type: 'string', default: 'worker' }, rounds: { type: 'string', default: '20' } },
});
const rounds = Number(values.rounds);
const MESSAGE = `CALL ${JSON.stringify([
  { name: 'again', ms: 300 },
  { name: 'once', ms: 300 },
  { name: 'again', ms: 100 },
])} END`;

const binary = serverBinary();
if (!binary) throw new Error('the server is not installed: run npm ci in test/restate');
const directory = mkdtempSync(join(tmpdir(), 'runchart-kills-'));
const ledger = join(directory, 'ledger');
writeFileSync(ledger, '');
const server = await RestateServer.start(binary);
const worker = new WorkerProcess({ admin: server.admin, ledger, blobs: join(directory, 'blobs'), name: 'one' });
await worker.start();
const agent = restateAgent({ ingress: server.ingress });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Kills after `ms`, if that is a number, and starts the killed process again. */
async function round(id: string, ms: number | undefined) {
  const conversation = await agent.open(id);
  const seen: number[] = [];
  conversation.log$().subscribe(({ seq }: LogEntry) => seen.push(seq));
  const began = Date.now();
  const { result } = conversation.send(MESSAGE);
  result.catch(() => undefined);
  if (ms !== undefined) {
    await pause(ms);
    const target = values.target === 'server' ? server : worker;
    await target.kill();
    await target.start();
  }
  const restarted = Date.now();
  const isOver = (): boolean =>
    conversation.log().some((entry) => entry.type === 'run-stop' && entry.reason === 'completed');
  await until(`the run of ${id} ends`, isOver);
  const took = Date.now() - began;
  check(id, conversation.log(), seen);
  const starts = notesIn(ledger).filter(({ what, key }) => what === 'start' && key.startsWith(`${id}/`)).length;
  const outcomes = conversation.log().flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : []));
  await conversation.close();
  return { took, after: Date.now() - restarted, starts, unknown: outcomes.filter((each) => each === 'unknown').length };
}

function check(id: string, log: readonly LogEntry[], seen: readonly number[]): void {
  assert.deepEqual(
    seen,
    log.map(({ seq }) => seq),
  );
  assert.deepEqual(
    seen,
    seen.map((_, index) => index),
  );
  const results = log.filter(({ type }) => type === 'tool-result');
  assert.equal(results.length, 3);
  const notes = notesIn(ledger).filter(({ key }) => key.startsWith(`${id}/`));
  for (const key of new Set(notes.map((note) => note.key))) {
    const starts = notes.filter((note) => note.key === key && note.what === 'start');
    if (starts[0]?.name === 'once') assert.equal(starts.length, 1, `${key} started ${starts.length} times`);
  }
  for (const result of results) {
    if (result.type !== 'tool-result' || result.outcome !== 'succeeded') continue;
    const later = notes.filter(
      ({ what, key, at }) => what === 'start' && key.includes(result.callId) && at > result.at,
    );
    assert.equal(later.length, 0, `${result.callId} ran again after its result`);
  }
}

async function play(): Promise<void> {
  await round('first', undefined);
  const plain = await round('plain', undefined);
  console.log(`a run without a kill: ${plain.took} ms, ${plain.starts} starts`);
  const found: Awaited<ReturnType<typeof round>>[] = [];
  for (let index = 0; index < rounds; index += 1) {
    const ms = Math.round((plain.took * (index + 0.5)) / rounds);
    const one = await round(`round-${index}`, ms);
    found.push(one);
    console.log(
      `killed after ${ms} ms: ended ${one.after} ms after the restart, ${one.starts} starts, ${one.unknown} unknown`,
    );
  }
  const sum = (of: (each: (typeof found)[number]) => number): number => found.reduce((all, each) => all + of(each), 0);
  console.log(
    `${rounds} kills of the ${values.target}: every run ended, ${sum(({ starts }) => starts)} starts of ${3 * rounds} tools, ${sum(({ unknown }) => unknown)} unknown`,
  );
}

try {
  await play();
} finally {
  await agent.close();
  await worker.kill();
  await server.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
