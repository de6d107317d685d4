/**
 * Tests processes that serve one address over a real PostgreSQL. It kills them with SIGKILL, and stops them with SIGSTOP for longer than a
 * lease.
 * Invariant: nothing is lost and nothing is done twice, each reader receives every entry, and another process takes runs over.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { LogEntry } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { stored } from '../../../src/testing/storeSuite/storeCase.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../../support/postgresServer.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { proves } from '../../support/tier.ts';
import { builtWorker, Clients, killWorker, pause, type Worker } from './workerProcesses.ts';

describe.skipIf(!proves || !hasPostgres)('processes behind one address', { timeout: 120_000 }, () => {
  let server: PostgresServer;
  let program: Awaited<ReturnType<typeof builtWorker>>;
  let workers: Worker[] = [];
  let turn = 0;
  const clients = new Clients(() => {
    turn += 1;
    return `http://127.0.0.1:${(workers[turn % workers.length] as Worker).port}`;
  });
  const ask = clients.ask.bind(clients);
  const follow = clients.follow.bind(clients);

  beforeAll(async () => {
    server = await startPostgres();
    program = await builtWorker();
  });
  afterEach(async () => {
    await Promise.all(workers.splice(0).map(killWorker));
  });
  afterAll(async () => {
    await server?.stop();
    await program?.remove();
  });

  async function start(environment: Record<string, string> = {}): Promise<Worker> {
    const worker = await program.start({ HOST: server.host, ...environment });
    workers.push(worker);
    return worker;
  }

  test('a run whose process is killed is taken over by one with a reader, within two leases', async () => {
    const leaseMs = 3000;
    const environment = { LEASE_MS: `${leaseMs}` };
    const dying = await start({ ...environment, SILENT: '1' });
    workers = [dying];
    await ask('POST', '', { id: 'taken' });
    await ask('POST', '/taken/messages', { content: 'silent', messageId: 'm' });
    const other = await start(environment);
    workers = [other];
    const reading = follow('taken', (entries) => entries.some(({ type }) => type === 'run-resumed'));
    await pause(1500);
    await killWorker(dying);
    const killedAt = performance.now();
    const entries = await reading;
    const took = performance.now() - killedAt;
    expect(took).toBeLessThan(2 * leaseMs);
    expect(entries.filter(({ type }) => type === 'user-message')).toHaveLength(1);
    workers = [other];
  });

  test('kills and stalls lose nothing, and do nothing twice', async () => {
    const [CONVERSATIONS, MESSAGES] = [8, 8];
    const random = chance(sourceSeed());
    await Promise.all([start(), start(), start()]);
    const ids = Array.from({ length: CONVERSATIONS }, (_, index) => `c${index}`);
    let isDone = false;
    const harm = async (): Promise<{ kills: number; stalls: number }> => {
      const done = { kills: 0, stalls: 0 };
      for (; !isDone; await pause(1500 + random.below(1000))) {
        const victim = workers[random.below(workers.length)] as Worker;
        if (random.odds(0.6)) {
          workers = workers.filter((worker) => worker !== victim);
          await killWorker(victim);
          await start();
          done.kills += 1;
        } else {
          victim.process.kill('SIGSTOP');
          await pause(1600);
          victim.process.kill('SIGCONT');
          done.stalls += 1;
        }
      }
      return done;
    };
    const messagesIn = (entries: readonly LogEntry[]): number =>
      entries.filter(({ type }) => type === 'user-message').length;
    const talk = async (id: string): Promise<LogEntry[]> => {
      await ask('POST', '', { id });
      const reading = follow(
        id,
        (entries) => messagesIn(entries) === MESSAGES && entries.at(-1)?.type === 'checkpoint',
      );
      for (let message = 0; message < MESSAGES; message += 1) {
        // Refused while the run before it is active; the client asks again.
        await ask('POST', `/${id}/messages`, { content: `message ${message}`, messageId: `m${message}` });
        await pause(500 + random.below(1500));
      }
      return reading;
    };
    const harming = harm();
    let read: LogEntry[][];
    try {
      read = await Promise.all(ids.map(talk));
    } finally {
      isDone = true;
    }
    const { kills, stalls } = await harming;
    expect(kills + stalls).toBeGreaterThan(3);
    await Promise.all(workers.splice(0).map(killWorker));
    await server.pool({ max: 1 }).query(`update processes.conversations set lease_until = '-infinity'`);
    const store = postgresStore(server.pool(), { schema: 'processes' });
    for (const [index, id] of ids.entries()) {
      const log = await stored(store, id);
      const messages = log.flatMap((entry) => (entry.type === 'user-message' ? [entry.messageId] : []));
      expect(messages).toEqual(Array.from({ length: MESSAGES }, (_, message) => `m${message}`));
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq));
      expect(log.slice(0, read[index]?.length)).toEqual(read[index]);
    }
    expect(clients.gaps).toEqual([]);
    await store.close();
  });
});
