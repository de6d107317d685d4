/**
 * A worker that is cut off from the server in the middle of a tool, by a line that is silent: another worker at the same address continues
 * the run. `node test/restate/partitionRounds.ts --rounds 5`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { restateAgent } from '../../src/restate/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const binary = serverBinary();
if (!binary) throw new Error('the server is not installed: run npm ci in test/restate');
const directory = mkdtempSync(join(tmpdir(), 'runchart-partition-'));
const ledger = join(directory, 'ledger');
writeFileSync(ledger, '');
// The server asks an open connection every second whether it is alive.
const server = await RestateServer.start(binary, {
  RESTATE_HTTP_KEEP_ALIVE_OPTIONS__INTERVAL: '1s',
  RESTATE_HTTP_KEEP_ALIVE_OPTIONS__TIMEOUT: '1s',
});
const workers = ['one', 'two'].map(
  (name) => new WorkerProcess({ admin: server.admin, ledger, blobs: join(directory, 'blobs'), name }),
);
for (const worker of workers) await worker.start();

/** The address that both workers have. Connections go to the chosen worker; those before a cut stay open and carry nothing. */
class Line {
  #target = 0;
  #generation = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => {
    const generation = this.#generation;
    const worker = connect(Number(new URL(workers[this.#target]?.url ?? '').port), '127.0.0.1');
    for (const [from, to] of [[socket, worker] as const, [worker, socket] as const]) {
      this.#sockets.add(from);
      from.on('data', (bytes) => void (generation === this.#generation && to.write(bytes)));
      from.on('error', () => from.destroy());
      from.on('close', () => void (generation === this.#generation && to.destroy()));
    }
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts the worker off. The next connection goes to the other one. */
  cut(): void {
    this.#generation += 1;
    this.#target = 1 - this.#target;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

const line = new Line();
const agent = restateAgent({ ingress: server.ingress });

async function round(id: string): Promise<void> {
  const conversation = await agent.open(id);
  const seen: number[] = [];
  conversation.log$().subscribe(({ seq }) => seen.push(seq));
  const calls = [
    { name: 'again', ms: 20 },
    { name: 'once', release: join(directory, id) },
  ];
  conversation.send(`CALL ${JSON.stringify(calls)} END`).result.catch(() => undefined);
  const notes = () => notesIn(ledger).filter(({ key }) => key.startsWith(`${id}/`));
  await until('the second tool runs', () => notes().some(({ name, what }) => name === 'once' && what === 'start'));
  await until('the first result is stored', () => conversation.log().some(({ type }) => type === 'tool-result'));
  line.cut();
  const cutAt = Date.now();
  const isOver = () => conversation.log().some((entry) => entry.type === 'run-stop' && entry.reason === 'completed');
  await until('the run ends', isOver);
  const took = Date.now() - cutAt;
  // The worker that was cut off finishes its tool now, and its result is ignored.
  writeFileSync(join(directory, id), '');
  await until('its tool ends', () => notes().some(({ name, what }) => name === 'once' && what !== 'start'));
  const log = conversation.log();
  assert.deepEqual(
    seen,
    log.map((_, index) => index),
  );
  const outcomes = log.flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : []));
  assert.deepEqual(outcomes, ['succeeded', 'unknown']);
  const starts = notes().flatMap(({ name, what }) => (what === 'start' ? [name] : []));
  assert.deepEqual(starts, ['again', 'once']);
  console.log(`cut off in a tool: the run ended after ${took} ms at the other worker, 2 starts of 2 tools`);
  await conversation.close();
}

try {
  const url = await line.start();
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ uri: url, force: true });
  const { status } = await fetch(`${server.admin}/deployments`, { method: 'POST', headers, body });
  assert.ok(status < 300, `the server takes the address of both workers: ${status}`);
  for (let number = 0; number < Number(values.rounds); number += 1) await round(`cut-${number}`);
} finally {
  line.close();
  await agent.close();
  for (const worker of workers) await worker.kill();
  await server.remove();
  rmSync(directory, { recursive: true, force: true });
}
process.exit(0);
