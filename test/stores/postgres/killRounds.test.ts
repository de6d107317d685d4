/**
 * Two and four processes behind a round-robin proxy, over a real PostgreSQL. Each second one of them is killed with SIGKILL; one stalls, and
 * one is cut off from the database, each for longer than a lease. Invariant: nothing is lost and nothing is done twice, each client
 * receives every entry, and a run whose holder is gone continues. The bound of two leases applies to a machine with nothing else to do:
 * `npm run kills` checks it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LogEntry } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { stored } from '../../../src/testing/storeSuite/storeCase.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../../support/postgresServer.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { proves, volume } from '../../support/tier.ts';
import { type DatabaseLine, databaseLine, roundRobin } from './cuttableProxies.ts';
import { builtWorker, Clients, killWorker, pause, type Worker } from './workerProcesses.ts';

const LEASE_MS = volume.killLeaseMs;
/** The bar of the 99th percentile; `npm run kills` sets it. */
const TAKEOVER_MS = Number(process.env.TAKEOVER_MS ?? Number.POSITIVE_INFINITY);
/** The longest time of clients after the last kill. */
const LAST_MS = 120_000;
/** Processes that are ready to take the place of a killed one. */
const SPARES = 2;

interface Place extends Worker {
  line: DatabaseLine;
}

const messagesIn = (entries: readonly LogEntry[]): string[] =>
  entries.flatMap((entry) => (entry.type === 'user-message' ? [entry.messageId] : []));

interface Harm {
  kind: 'kill' | 'stall' | 'cut';
  at: number;
}

interface Opening {
  pid: number;
  at: number;
}

/** The database records the openings of each process in the transaction of the opening, because the process may die right after it. */
async function recordOpenings(server: PostgresServer, schema: string): Promise<void> {
  const pool = server.pool({ max: 2 });
  const store = postgresStore(pool, { schema, serve: false });
  // Makes the tables.
  await store.list();
  await store.close();
  await pool.query(`
    create table ${schema}.openings (conversation text, pid integer, at double precision);
    create function ${schema}.record_opening() returns trigger language plpgsql as $$ begin
      insert into ${schema}.openings
        values (new.id, nullif(current_setting('application_name'), '')::integer, extract(epoch from clock_timestamp()) * 1000);
      return new;
    end $$;
    create trigger first_opening after insert on ${schema}.conversations
      for each row execute function ${schema}.record_opening();
    create trigger next_opening after update of epoch on ${schema}.conversations
      for each row when (old.lease_until <= clock_timestamp() and new.lease_until > clock_timestamp())
      execute function ${schema}.record_opening()`);
}

/**
 * For each run whose holder ended: the time from its last failure until the next holder continued. `harms`: when
 * each process was killed, stalled or cut off.
 */
function takeoversIn(log: readonly LogEntry[], openings: readonly Opening[], harms: ReadonlyMap<number, Harm[]>) {
  return log.flatMap((entry) => {
    if (entry.type !== 'run-stop' || entry.cause !== 'crash') return [];
    const before = openings.filter(({ at }) => at <= entry.at).at(-2);
    const harm = harms
      .get(before?.pid ?? 0)
      ?.filter(({ at }) => at <= entry.at)
      .at(-1);
    // A lease may also end because the machine is busy. A killed process has no further failures, and opens nothing.
    return before && harm && harm.at >= before.at ? [{ kind: harm.kind, ms: entry.at - harm.at }] : [];
  });
}

/** Milliseconds of half of them, of 99 in 100, and of all. */
function quantiles(takeovers: readonly { ms: number }[]): [number, number, number] {
  const sorted = takeovers.map(({ ms }) => ms).sort((a, b) => a - b);
  return [quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 1)];
}

const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;

describe.skipIf(!proves || !hasPostgres)('processes that are killed each second', { timeout: 600_000 }, () => {
  let server: PostgresServer;
  let program: Awaited<ReturnType<typeof builtWorker>>;
  beforeAll(async () => {
    server = await startPostgres();
    program = await builtWorker();
  });
  afterAll(async () => {
    await server?.stop();
    await program?.remove();
  });

  /** Processes of one schema that serve one address. */
  async function processes(count: number, schema: string) {
    const serving: Place[] = [];
    const spares: Place[] = [];
    let starting = 0;
    let isClosed = false;
    const start = async (): Promise<Place> => {
      const line = await databaseLine(server.host);
      const environment = { HOST: '127.0.0.1', PORT: `${line.port}`, LEASE_MS: `${LEASE_MS}` };
      return { ...(await program.start({ ...environment, SCHEMA: schema, PAUSE_MS: '600' })), line };
    };
    /** Keeps the places full, and spares ready. */
    const fill = (): void => {
      while (serving.length < count && spares.length > 0) serving.push(spares.shift() as Place);
      while (!isClosed && serving.length + spares.length + starting < count + SPARES) {
        starting += 1;
        void start().then((place) => {
          starting -= 1;
          spares.push(place);
          fill();
        });
      }
    };
    const end = async (place: Place): Promise<void> => {
      if (serving.includes(place)) serving.splice(serving.indexOf(place), 1);
      await killWorker(place);
      place.line.close();
    };
    fill();
    while (serving.length < count || spares.length < SPARES) await pause(100);
    const proxy = await roundRobin(() => serving);
    return {
      serving,
      base: proxy.base,
      kill: async (place: Place): Promise<void> => {
        await end(place);
        fill();
      },
      hasSpare: (): boolean => spares.length > 0,
      async close(): Promise<void> {
        isClosed = true;
        while (starting > 0) await pause(50);
        proxy.close();
        await Promise.all([...serving, ...spares].map(end));
      },
    };
  }

  test.each([2, 4])('%i processes lose nothing, and do nothing twice', async (count) => {
    const [CONVERSATIONS, SECONDS] = [volume.killedConversations, volume.killSeconds];
    const random = chance(sourceSeed() + count);
    const schema = `rounds${count}`;
    const database = server.pool({ max: 1 });
    await recordOpenings(server, schema);
    const all = await processes(count, schema);
    const clients = new Clients(() => all.base);
    const ids = Array.from({ length: CONVERSATIONS }, (_, index) => `c${index}`);
    let isOver = false;
    /** Processes that stall or are cut off, which are not killed meanwhile. */
    const harmed = new Set<Place>();
    const done = { kill: 0, stall: 0, cut: 0 };
    const harms = new Map<number, Harm[]>();
    const harm = ({ process: { pid = 0 } }: Place, kind: Harm['kind']): void => {
      harms.set(pid, [...(harms.get(pid) ?? []), { kind, at: Date.now() }]);
    };

    const killing = async (): Promise<void> => {
      for (let second = 0; second < SECONDS; second += 1) {
        const next = pause(1000);
        const whole = all.serving.filter((place) => !harmed.has(place));
        const victim = whole[random.below(Math.max(1, whole.length))];
        if (victim && all.hasSpare()) {
          harm(victim, 'kill');
          await all.kill(victim);
          done.kill += 1;
        }
        await next;
      }
      isOver = true;
    };
    /** One process stalls for longer than a lease, and later one is cut off from the database for longer than a lease. */
    const harming = async (): Promise<void> => {
      for (const kind of ['stall', 'cut'] as const) {
        await pause(Math.max(0, SECONDS * 500 - 2 * LEASE_MS));
        const place = all.serving[random.below(Math.max(1, all.serving.length))];
        if (!place) continue;
        harmed.add(place);
        harm(place, kind);
        if (kind === 'stall') place.process.kill('SIGSTOP');
        else place.line.cut();
        await pause(1.4 * LEASE_MS);
        if (kind === 'stall') place.process.kill('SIGCONT');
        else place.line.mend();
        done[kind] += 1;
        harmed.delete(place);
      }
    };
    const sent = new Map<string, string[]>();
    const received = new Map<string, LogEntry[]>();
    const talk = async (id: string): Promise<LogEntry[]> => {
      await clients.ask('POST', '', { id });
      const messages: string[] = [];
      sent.set(id, messages);
      const entries: LogEntry[] = [];
      received.set(id, entries);
      const isAnswered = (): boolean =>
        messagesIn(entries).length === messages.length && entries.at(-1)?.type === 'checkpoint';
      let isAllSent = false;
      const reading = clients.follow(id, () => isAllSent && isAnswered(), entries);
      do {
        const messageId = `m${messages.length}`;
        messages.push(messageId);
        await clients.ask('POST', `/${id}/messages`, { content: messageId, messageId });
        while (!isAnswered()) await pause(200);
        await pause(4000 + random.below(8000));
      } while (!isOver);
      isAllSent = true;
      // The reader looks at it with the next beat or entry.
      return reading;
    };
    let read: LogEntry[][];
    try {
      const harmDone = [killing(), harming()];
      const complete = new Set<string>();
      const talks = ids.map(async (id) => {
        const entries = await talk(id);
        complete.add(id);
        return entries;
      });
      const late = pause(SECONDS * 1000 + LAST_MS).then(async () => {
        const missing = ids.filter((id) => !complete.has(id));
        const some = missing.slice(0, 3);
        const { rows } = await database.query(
          `select id, length, cycle, lease_until from ${schema}.conversations where id = any($1)`,
          [some],
        );
        const lengths = some.map((id) => received.get(id)?.length);
        throw new Error(
          `${missing.length} clients are not complete: ${JSON.stringify([rows, lengths, clients.gaps[0]])}`,
        );
      });
      late.catch(() => undefined);
      read = (await Promise.race([Promise.all(talks), late])) as LogEntry[][];
      await Promise.all(harmDone);
    } finally {
      isOver = true;
      await all.close();
    }
    await database.query(`update ${schema}.conversations set lease_until = '-infinity'`);
    const store = postgresStore(server.pool(), { schema });
    const { rows } = await database.query(`select conversation, pid, at from ${schema}.openings order by at`);
    const takeovers: ReturnType<typeof takeoversIn> = [];
    let messageCount = 0;
    for (const [index, id] of ids.entries()) {
      const log = await stored(store, id);
      expect(messagesIn(log)).toEqual(sent.get(id));
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, seq) => seq));
      expect(log.slice(0, read[index]?.length)).toEqual(read[index]);
      const openings = rows.filter(({ conversation }) => conversation === id) as Opening[];
      takeovers.push(...takeoversIn(log, openings, harms));
      messageCount += messagesIn(log).length;
    }
    await store.close();
    const [, p99] = quantiles(takeovers);
    const of = (wanted: Harm['kind']) => takeovers.filter(({ kind }) => kind === wanted);
    const took = (['kill', 'stall', 'cut'] as const).map((kind) => [kind, of(kind).length, ...quantiles(of(kind))]);
    console.log(`${count} processes: ${JSON.stringify({ ...done, messages: messageCount, took, p99 })}`);
    expect(clients.gaps).toEqual([]);
    expect(p99).toBeLessThan(TAKEOVER_MS);
  });
});
