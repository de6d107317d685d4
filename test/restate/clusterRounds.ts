/**
 * Three nodes of a Restate server on loopback. In each round a node is killed while eight runs are in the middle of a tool, and started
 * again afterwards: every run ends, no tool with a result runs again, and a watcher receives every entry once.
 * `node test/restate/clusterRounds.ts --rounds 3`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Agent, Conversation, LogEntry } from '../../src/index.ts';
import { restateAgent } from '../../src/restate/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const RUNS = 8;

const binary = serverBinary();
if (!binary) throw new Error('the server is not installed: run npm ci in test/restate');
const directory = mkdtempSync(join(tmpdir(), 'runchart-cluster-'));
const ledger = join(directory, 'ledger');
writeFileSync(ledger, '');
const began = Date.now();
const nodes = await RestateServer.startCluster(binary, 3);
const [first] = nodes as [RestateServer];
const worker = new WorkerProcess({ admin: first.admin, ledger, blobs: join(directory, 'blobs'), name: 'one' });
await until('the cluster takes a worker', () =>
  worker.start().then(
    () => true,
    () => false,
  ),
);
/** The same conversations, over each node. */
const agents = nodes.map(({ ingress }) => restateAgent({ ingress }));

interface Watched {
  conversation: Conversation;
  seen: number[];
}

async function begun(agent: Agent | undefined, id: string): Promise<Watched> {
  const conversation = await (agent as Agent).open(id);
  const seen: number[] = [];
  conversation.log$().subscribe(({ seq }: LogEntry) => seen.push(seq));
  const calls = [
    { name: 'again', ms: 50 },
    { name: 'once', release: join(directory, id) },
    { name: 'again', ms: 50 },
  ];
  conversation.send(`CALL ${JSON.stringify(calls)} END`).result.catch(() => undefined);
  return { conversation, seen };
}

const notesOf = (id: string) => notesIn(ledger).filter(({ key }) => key.startsWith(`${id}/`));

function check(id: string, { conversation, seen }: Watched): void {
  const log = conversation.log();
  assert.deepEqual(
    seen,
    log.map((_, index) => index),
  );
  const results = log.filter(({ type }) => type === 'tool-result');
  assert.equal(results.length, 3);
  const once = notesOf(id).filter(({ name, what }) => name === 'once' && what === 'start');
  assert.equal(once.length, 1, `${id}: once started ${once.length} times`);
  for (const result of results)
    if (result.type === 'tool-result' && result.outcome === 'succeeded')
      assert.ok(
        !notesOf(id).some(({ what, key, at }) => what === 'start' && key.includes(result.callId) && at > result.at),
      );
}

async function round(number: number): Promise<number> {
  const ids = Array.from({ length: RUNS }, (_, index) => `round-${number}-${index}`);
  const index = number % nodes.length;
  const agent = agents[(index + 1) % nodes.length];
  const watched = await Promise.all(ids.map((id) => begun(agent, id)));
  await until('every run is in its second tool', () =>
    ids.every((id) => notesOf(id).some(({ name, what }) => name === 'once' && what === 'start')),
  );
  const node = nodes[index] as RestateServer;
  await node.kill();
  const killed = Date.now();
  for (const id of ids) writeFileSync(join(directory, id), '');
  const isOver = ({ conversation }: Watched): boolean =>
    conversation.log().some((entry) => entry.type === 'run-stop' && entry.reason === 'completed');
  await until('every run ends', () => watched.every(isOver));
  const took = Date.now() - killed;
  await node.start();
  for (const [place, id] of ids.entries()) check(id, watched[place] as Watched);
  const outcomes = watched.flatMap(({ conversation }) =>
    conversation.log().flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : [])),
  );
  // The call that was under way where its partition lost its leader.
  const moved = outcomes.filter((outcome) => outcome === 'unknown').length;
  console.log(`node ${index + 1} was killed, which led ${moved} of ${RUNS} runs: all ended after ${took} ms`);
  for (const { conversation } of watched) await conversation.close();
  return moved;
}

try {
  const warm = await begun(agents[1], 'warm');
  writeFileSync(join(directory, 'warm'), '');
  await until('the first run ends', () => warm.conversation.log().some(({ type }) => type === 'run-stop'));
  console.log(`three nodes: the first run ended ${Date.now() - began} ms after their start`);
  let moved = 0;
  for (let number = 0; number < Number(values.rounds); number += 1) moved += await round(number);
  assert.ok(moved > 0, 'no killed node led a run');
} finally {
  for (const agent of agents) await agent.close();
  await worker.kill();
  for (const node of nodes) await node.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
