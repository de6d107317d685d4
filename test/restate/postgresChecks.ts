/**
 * Workers on a real Restate server with a real PostgreSQL beside it: live text reaches watchers in another process, and lists come from the
 * database. Node 24 runs the file: `node --test test/restate/postgresChecks.ts`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pool } from 'pg';
import type { Agent, Live, LogEntry } from '../../src/index.ts';
import { type NotifyHub, notifyHub, restateAgent } from '../../src/restate/index.ts';
import { subAgentIds } from '../../src/stores/logStore.ts';
import { postgresStore } from '../../src/stores/postgres/postgresStore.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgresServer.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { WorkerProcess } from './workerProcess.ts';

const binary = serverBinary();
const reason = 'the servers are not installed: run npm ci in test/restate, and install PostgreSQL';

describe('runchart/restate with PostgreSQL', { skip: binary && hasPostgres ? false : reason, timeout: 300_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-worker-'));
  const ledger = join(directory, 'ledger');
  let server: RestateServer;
  let postgres: PostgresServer;
  let worker: WorkerProcess;
  let pool: Pool;
  let hub: NotifyHub;
  let agent: Agent;

  before(async () => {
    writeFileSync(ledger, '');
    [server, postgres] = await Promise.all([RestateServer.start(binary as string), startPostgres()]);
    worker = new WorkerProcess({ admin: server.admin, ledger, postgres: postgres.host, name: 'first' });
    await worker.start();
    pool = postgres.pool();
    hub = notifyHub(pool);
    agent = restateAgent({ ingress: server.ingress, hub, store: postgresStore(pool) });
  });

  after(async () => {
    await agent?.close();
    await hub?.close();
    await worker?.kill();
    await Promise.all([server?.remove(), postgres?.stop()]);
    rmSync(directory, { recursive: true, force: true });
  });

  it('a watcher in another process receives the text of a reply before the entry that contains it', async () => {
    const conversation = await agent.open('live');
    const items: (Live | LogEntry)[] = [];
    conversation.live$.subscribe((signal) => items.push(signal));
    conversation.log$().subscribe((entry) => items.push(entry));
    const result = await conversation.send('SLOWLY').result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    const at = items.findIndex(({ type }) => type === 'model-reply');
    const texts = items.slice(0, at).flatMap((item) => (item.type === 'text-delta' ? [item.text] : []));
    assert.equal(texts.join(''), 'this is the end');
    await conversation.close();
  });

  it('a watcher of a conversation receives the text of its sub-agents, with the way to them', async () => {
    const conversation = await agent.open('family-live');
    const signals: Live[] = [];
    conversation.live$.subscribe((signal) => signals.push(signal));
    const tasks = ['SLOWLY', 'SLOWLY'].map((task, index) => ({ id: `task-${index}`, task }));
    const result = await conversation.send(`CALL ${JSON.stringify([{ name: 'spawn_agents', tasks }])} END`).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    const texts = signals.flatMap((signal) => (signal.type === 'text-delta' && signal.path ? [signal] : []));
    assert.equal(
      texts
        .map(({ text }) => text)
        .sort()
        .join(),
      'end,end,is ,is ,the ,the ,this ,this ',
    );
    await conversation.close();
  });

  it('a list comes from the database, also of a client that asks no engine, and without what was deleted', async () => {
    for (const [id, owner] of [
      ['a', 'ada'],
      ['b', 'bob'],
      ['c', 'ada'],
    ] as const) {
      const conversation = await agent.open(id, { owner });
      await conversation.send('hello').result;
      await conversation.close();
    }
    const apart = restateAgent({ ingress: 'http://127.0.0.1:1', store: postgresStore(pool) });
    const idsOf = async (options: object): Promise<string[]> => (await apart.list(options)).map(({ id }) => id);
    await until('the last run is listed', async () => (await apart.list({ owner: 'ada' }))[0]?.lastCause !== undefined);
    assert.deepEqual(await idsOf({ owner: 'ada' }), ['c', 'a']);
    const engine = restateAgent({ ingress: server.ingress });
    await until('both lists are the same', async () => {
      const [one, other] = await Promise.all([apart.list(), engine.list()]);
      return JSON.stringify(one) === JSON.stringify(other) && one.every(({ status }) => status === 'idle');
    });
    const [first] = await apart.list({ limit: 1 });
    assert.deepEqual(await idsOf({ cursor: first?.cursor, limit: 2 }), ['b', 'a']);
    await agent.profile.store.delete('b');
    await until('it is not listed', async () => !(await idsOf({})).includes('b'));
    await Promise.all([apart.close(), engine.close()]);
  });

  it('large contents are in the tables of the store', async () => {
    const conversation = await agent.open('large');
    const text = 'a long message '.repeat(100_000);
    const result = await conversation.send(text).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.ok(JSON.stringify(conversation.log()).includes(text));
    const count = async () => Number((await pool.query('select count(*) as n from runchart.contents')).rows[0]?.n);
    assert.ok((await count()) > 0);
    const tasks = [{ id: 'task', task: text }];
    const spawned = await conversation.send(`CALL ${JSON.stringify([{ name: 'spawn_agents', tasks }])} END`).result;
    assert.equal(spawned.termination, 'NaturalEnd', JSON.stringify(spawned));
    const [id = ''] = subAgentIds(conversation.log());
    const child = await agent.open(id);
    assert.ok(JSON.stringify(child.log()).includes(text));
    await child.close();
    await agent.profile.store.delete('large');
    await until('its contents are deleted', async () => (await count()) === 0);
  });
});
