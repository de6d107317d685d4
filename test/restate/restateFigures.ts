/**
 * Figures of conversations on a Restate server beside embedded ones: how soon a cancel aborts a tool, how many conversations end in a
 * second, and that conversations that wait for a decision hold no invocation. `node test/restate/restateFigures.ts`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Agent } from '../../src/index.ts';
import { restateAgent } from '../../src/restate/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const { values } = parseArgs({
  options: {
    cancels: { type: 'string', default: '100' },
    conversations: { type: 'string', default: '300' },
    waiting: { type: 'string', default: '1000' },
  },
});
const message = (...calls: object[]): string => `CALL ${JSON.stringify(calls)} END`;

const binary = serverBinary();
if (!binary) throw new Error('the server is not installed: run npm ci in test/restate');
const directory = mkdtempSync(join(tmpdir(), 'runchart-figures-'));
const ledger = join(directory, 'ledger');
writeFileSync(ledger, '');
// The agent of the workers, in this process.
process.argv.splice(2, process.argv.length, '--ledger', ledger);
const server = await RestateServer.start(binary);
const worker = new WorkerProcess({ admin: server.admin, ledger, blobs: join(directory, 'blobs'), name: 'one' });
await worker.start();
const remote = restateAgent({ ingress: server.ingress });

const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

async function cancels(count: number): Promise<void> {
  const took: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = `cancel-${index}`;
    const noteOf = (what: string) =>
      notesIn(ledger).find((note) => note.what === what && note.key.startsWith(`${id}/`));
    const conversation = await remote.open(id);
    conversation.send(message({ name: 'once', release: join(directory, 'never') })).result.catch(() => undefined);
    await until('the tool runs', () => noteOf('start') !== undefined);
    const at = Date.now();
    await conversation.cancel();
    await until('the tool is aborted', () => noteOf('abort') !== undefined);
    took.push((noteOf('abort')?.at ?? 0) - at);
    await conversation.close();
  }
  took.sort((a, b) => a - b);
  console.log(
    `cancel to abort of the tool, ${count} times: p50 ${percentile(took, 0.5)} ms, p99 ${percentile(took, 0.99)} ms`,
  );
}

/** A conversation: one model call, two tools, one model call. */
async function rate(name: string, agent: Agent, count: number, atOnce: number): Promise<void> {
  let next = 0;
  const began = performance.now();
  const client = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const conversation = await agent.open(`${name}-${index}`);
      const { termination } = await conversation.send(message({ name: 'again' }, { name: 'once' })).result;
      assert.equal(termination, 'NaturalEnd');
      await conversation.close();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  const seconds = (performance.now() - began) / 1000;
  const persecond = count / seconds;
  console.log(
    `${name}, ${atOnce} at once: ${persecond.toFixed(1)} conversations a second, ${(4 * persecond).toFixed(0)} effects a second`,
  );
}

async function waiting(count: number): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const conversation = await remote.open(`waiting-${index}`);
      assert.equal((await conversation.send(message({ name: 'ask' })).result).termination, 'Suspended');
      await conversation.close();
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
  let held = -1;
  await until('no invocation is under way', async () => {
    const response = await fetch(`${server.admin}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query: "select count(*) as held from sys_invocation where status <> 'completed'" }),
    });
    held = ((await response.json()) as { rows: { held: number }[] }).rows[0]?.held ?? -1;
    return held === 0;
  });
  console.log(`${count} conversations wait for a decision, and ${held} invocations are under way`);
}

console.log(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
try {
  await cancels(Number(values.cancels));
  const conversations = Number(values.conversations);
  for (const atOnce of [1, 16]) await rate(`restate${atOnce}`, remote, conversations / (atOnce === 1 ? 4 : 1), atOnce);
  const { agent } = await import('./workerAgent.ts');
  for (const atOnce of [1, 16]) await rate(`embedded${atOnce}`, agent, conversations, atOnce);
  await waiting(Number(values.waiting));
} finally {
  await remote.close();
  await worker.kill();
  await server.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
