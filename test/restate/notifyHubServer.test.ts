/** The hub over notifications on a real PostgreSQL server, where one is installed: processes, order, size, lost connections and the end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type NotifyHub, notifyHub } from '../../src/restate/hub/notifyHub.ts';
import type { HubSignal } from '../../src/restate/liveHub.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgresServer.ts';
import { proves } from '../support/tier.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const delta = (text: string, next = 1): HubSignal => ({
  ...{ type: 'live', next, signal: { type: 'text-delta', runId: 'r', text } },
});

function shown(signals: readonly HubSignal[]): string {
  let text = '';
  for (const each of signals) {
    if (each.type === 'appended') continue;
    if (each.signal.type === 'reset') text = '';
    else if ('text' in each.signal) text += each.signal.text;
  }
  return text;
}

describe.skipIf(!proves || !hasPostgres)('a hub over notifications of a server', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  const hubOf = (channel: string, max = 4): NotifyHub => {
    const hub = notifyHub(server.pool({ max }), { channel });
    onTestFinished(() => hub.close());
    return hub;
  };
  const rowsOf = async (statement: string) => (await server.pool({ max: 1 }).query(statement)).rows;
  /** The connection of the hub that listens on this channel. */
  const listens = (channel: string, count = 1) =>
    expect
      .poll(() => rowsOf(`select pid from pg_stat_activity where query = 'listen "${channel}"'`))
      .toHaveLength(count);

  async function watching(hub: NotifyHub, id = 'one') {
    const received: HubSignal[] = [];
    const leave = hub.subscribe(id, (signal) => void received.push(signal));
    return { received, leave, text: () => shown(received) };
  }

  test('signals of many conversations arrive whole and in order, also from several processes', async () => {
    const channel = 'many';
    const [workers, client] = [[hubOf(channel), hubOf(channel)], hubOf(channel)];
    const ids = Array.from({ length: 20 }, (_, index) => `conversation ${index} "ü" \\ '`);
    const watchers = await Promise.all(ids.map((id) => watching(client, id)));
    await listens(channel);
    const numbers = Array.from({ length: 200 }, (_, number) => `${number} € \0 \ud800\n`);
    for (const [index, number] of numbers.entries()) {
      for (const [at, id] of ids.entries()) workers[at % 2]?.publish(id, delta(number));
      if (index % 10 === 0) await pause(5);
    }
    for (const [at, id] of ids.entries()) workers[at % 2]?.publish(id, { type: 'appended', length: 2 });
    await expect.poll(() => watchers.every(({ received }) => received.at(-1)?.type === 'appended')).toBe(true);
    expect(watchers.every(({ text }) => text() === numbers.join(''))).toBe(true);
    expect(watchers.every(({ received }) => received.filter(({ type }) => type === 'appended').length === 1)).toBe(
      true,
    );
  });

  test('a text of 100,000 characters arrives, and whoever begins to watch later receives it whole', async () => {
    const channel = 'long';
    const [worker, client] = [hubOf(channel), hubOf(channel)];
    const watcher = await watching(client);
    await listens(channel);
    const text = '€uro '.repeat(20_000);
    worker.publish('one', delta(text));
    await expect.poll(() => watcher.text() === text).toBe(true);
    await pause(5500);
    const late = await watching(hubOf(channel));
    await listens(channel, 2);
    worker.publish('one', delta('.'));
    await expect.poll(() => late.text() === `${text}.`).toBe(true);
    expect(watcher.text() === `${text}.`).toBe(true);
    expect(late.received[0]).toMatchObject({ signal: { type: 'reset' } });
  });

  test('a hub that publishes and watches receives each signal once', async () => {
    const hub = hubOf('same');
    const watcher = await watching(hub);
    await listens('same');
    for (const letter of 'abc') hub.publish('one', delta(letter));
    hub.publish('one', { type: 'appended', length: 2 });
    await pause(300);
    expect(watcher.received).toEqual([delta('a'), delta('b'), delta('c'), { type: 'appended', length: 2 }]);
  });

  test('payloads of others change nothing', async () => {
    const hub = hubOf('rubbish');
    const watcher = await watching(hub);
    await listens('rubbish');
    const pool = server.pool({ max: 1 });
    for (const payload of ['', '{', '[]', '{"hub":1}', '{"hub":"x","messages":[{"id":"one","type":"appended"}]}'])
      await pool.query('select pg_notify($1, $2)', ['rubbish', payload]);
    const good = { hub: 'x', messages: [{ id: 'one', type: 'appended', length: 9 }] };
    await pool.query('select pg_notify($1, $2)', ['rubbish', JSON.stringify(good)]);
    await expect.poll(() => watcher.received).toEqual([{ type: 'appended', length: 9 }]);
  });

  test('connections that the server ends are replaced, and no watcher is left with a part of a reply', async () => {
    const channel = 'cut';
    const [worker, client] = [hubOf(channel), hubOf(channel)];
    const watcher = await watching(client);
    await listens(channel);
    let text = '';
    for (let turn = 0; turn < 60; turn += 1) {
      text += `${turn},`;
      worker.publish('one', delta(`${turn},`));
      await pause(50);
      if (turn % 15 === 10)
        await rowsOf('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()');
      const isNone = watcher.text() === '';
      expect(isNone || text.startsWith(watcher.text())).toBe(true);
    }
    await listens(channel);
    await pause(1100);
    worker.publish('one', delta('end'));
    await expect.poll(() => watcher.text()).toBe(`${text}end`);
  });

  test('close gives all connections back, so the pool ends', async () => {
    const pool = server.pool({ max: 3 });
    const hub = notifyHub(pool, { channel: 'closed' });
    await watching(hub);
    await listens('closed');
    hub.publish('one', delta('a'));
    await hub.close();
    await pool.end();
    await listens('closed', 0);
  });

  test('a process with a hub that is closed exits by itself', async () => {
    const program = `
      import { Pool } from 'pg';
      import { notifyHub } from './src/restate/hub/notifyHub.ts';
      const pool = new Pool({ host: ${JSON.stringify(server.host)}, user: 'runchart', database: 'postgres' });
      const hub = notifyHub(pool);
      hub.subscribe('one', () => {});
      hub.publish('one', { type: 'appended', length: 1 });
      await new Promise((resolve) => setTimeout(resolve, 300));
      await hub.close();
      await pool.end();
      console.log('closed');`;
    const root = fileURLToPath(new URL('../..', import.meta.url));
    const js = "import { createRequire as ofModule } from 'node:module'; const require = ofModule(import.meta.url);";
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: root, loader: 'ts' },
      ...{ bundle: true, platform: 'node', format: 'esm', external: ['pg-native'], write: false, banner: { js } },
      logLevel: 'error',
    });
    const child = spawn(process.execPath, ['--input-type=module'], { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.end(outputFiles[0]?.text);
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += String(chunk);
    });
    const [code] = await once(child, 'exit');
    expect([code, output]).toEqual([0, 'closed\n']);
  });
});
