/**
 * Timers on a real Restate server: a long wait needs no worker. `npm ci` in this folder installs the server; Node 24 runs the file:
 * `node --test test/restate/timerChecks.ts`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { restateAgent } from '../../src/restate/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, WorkerProcess } from './workerProcess.ts';

const binary = serverBinary();
const reason = 'the server is not installed: run npm ci in test/restate';
/** Longer than the time after which an attempt without news only waits. */
const WAIT_MS = 26_000;

describe('timers of runchart/restate', { skip: binary ? false : reason, timeout: 300_000 }, () => {
  it('while a run waits before a retry, no attempt is under way: the worker dies, and the next one calls the model at the time', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'runchart-timers-'));
    const ledger = join(directory, 'ledger');
    writeFileSync(ledger, '');
    // The server ends an attempt that does nothing for a second.
    const environment = { RESTATE_DEFAULT_INACTIVITY_TIMEOUT: '1s', RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT: '1s' };
    const server = await RestateServer.start(binary as string, environment);
    const worker = new WorkerProcess({ admin: server.admin, ledger, blobs: join(directory, 'blobs'), name: 'first' });
    const agent = restateAgent({ ingress: server.ingress });
    try {
      await worker.start();
      const conversation = await agent.open('waits');
      const run = conversation.send(`BUSY ${WAIT_MS} OF waits`);
      await until('the attempt is over, and the invocation waits', async () =>
        (await statuses(server)).includes('suspended'),
      );
      assert.equal(notesIn(ledger).length, 1);
      await worker.kill();
      await worker.start();
      const result = await run.result;
      assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
      const [first, second, ...more] = notesIn(ledger);
      assert.equal(more.length, 0);
      const waited = (second?.at ?? 0) - (first?.at ?? 0);
      console.log(`the model was called again after ${waited} ms`);
      assert.ok(waited >= WAIT_MS - 50 && waited < WAIT_MS + 20_000, `${waited} ms`);
      const types = conversation.log().map(({ type }) => type);
      assert.equal(types.filter((type) => type === 'run-started' || type === 'run-resumed').length, 1);
      assert.equal(types.filter((type) => type === 'model-retry').length, 1);
    } finally {
      await agent.close();
      await worker.kill();
      await server.remove();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

async function statuses(server: RestateServer): Promise<unknown[]> {
  const response = await fetch(`${server.admin}/query`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query: "select status from sys_invocation where status not in ('completed')" }),
  });
  return ((await response.json()) as { rows: { status: string }[] }).rows.map(({ status }) => status);
}
