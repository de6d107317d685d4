/**
 * `kill -9` of the worker or of the server at points of a run with three tools, spread evenly over its duration: each run ends, no tool
 * with a result runs again, and a watcher receives every entry once. `node test/restate/killRounds.ts --target worker --rounds 20`. With
 * `--agents`, two sub-agents have two tools each.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { LogEntry } from '../../src/index.ts';
import { restateAgent } from '../../src/restate/index.ts';
import { subAgentIds } from '../../src/stores/logStore.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const { values } = parseArgs({
  options: {
    target: { type: 'string', default: 'worker' },
    rounds: { type: 'string', default: '20' },
    agents: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const messageOf = (...calls: object[]): string => `CALL ${JSON.stringify(calls)} END`;
const tasks = ['one', 'other'].map((id) => ({
  id,
  task: messageOf({ name: 'again', ms: 300 }, { name: 'once', ms: 300 }),
}));
const MESSAGE = values.agents
  ? messageOf({ name: 'spawn_agents', tasks })
  : messageOf({ name: 'again', ms: 300 }, { name: 'once', ms: 300 }, { name: 'again', ms: 100 });
/** The tools of a run, without those that spawn or submit. */
const TOOLS = values.agents ? 4 : 3;

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
  assert.deepEqual(
    seen,
    conversation.log().map(({ seq }) => seq),
  );
  const logs = [conversation.log(), ...(await logsOf([...subAgentIds(conversation.log())]))];
  assert.equal(logs.length, values.agents ? 3 : 1);
  const starts = logs.reduce((all, log) => all + check(log), 0);
  const outcomes = logs.flat().flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : []));
  await conversation.close();
  return { took, after: Date.now() - restarted, starts, unknown: outcomes.filter((each) => each === 'unknown').length };
}

const logsOf = (ids: readonly string[]): Promise<(readonly LogEntry[])[]> =>
  Promise.all(
    ids.map(async (id) => {
      const child = await agent.open(id);
      const log = child.log();
      await child.close();
      return log;
    }),
  );

/** Returns how many tools were started. */
function check(log: readonly LogEntry[]): number {
  assert.deepEqual(
    log.map(({ seq }) => seq),
    log.map((_, index) => index),
  );
  const results = log.filter(({ type }) => type === 'tool-result');
  const calls = log.filter((entry) => entry.type === 'agent-output' && entry.item.type === 'tool-call');
  assert.equal(results.length, calls.length);
  const notes = notesIn(ledger).filter(({ key }) => key.startsWith(`${log[0]?.conversationId}/`));
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
  return notes.filter(({ what }) => what === 'start').length;
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
    `${rounds} kills of the ${values.target}: every run ended, ${sum(({ starts }) => starts)} starts of ${TOOLS * rounds} tools, ${sum(({ unknown }) => unknown)} unknown`,
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
