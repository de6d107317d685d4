/**
 * The PostgreSQL store on a real server, where one is installed: the whole store suite, and connections that the server cuts at any
 * moment.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LogHandle, LogStore } from '../../../src/index.ts';
import { postgresStore } from '../../../src/stores/postgres/postgresStore.ts';
import { logStoreSuite } from '../../../src/testing/storeSuite/logStoreSuite.ts';
import { notice, stored } from '../../../src/testing/storeSuite/storeCase.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../../support/postgresServer.ts';
import { codeOf } from '../../support/secondTimesOfStores.ts';
import { chance } from '../../support/seededChance.ts';
import { sourceSeed } from '../../support/sourceSeed.ts';
import { proves } from '../../support/tier.ts';

const LENGTH = 80;
/** More connections than this are cut, within the most entries of one conversation. */
const CUTS = 10;
const MOST = 20_000;

describe.skipIf(!proves || !hasPostgres)('postgresStore on a server', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.stop());

  describe('passes the suite', () => {
    let store: ReturnType<typeof postgresStore> | undefined;
    let emptying: ReturnType<PostgresServer['pool']> | undefined;
    const makeStore = async (): Promise<LogStore> => {
      store ??= postgresStore(server.pool(), { schema: 'suite' });
      // A server takes a hundred connections.
      emptying ??= server.pool({ max: 1 });
      await store.list();
      const tables = ['conversations', 'entries', 'blobs', 'acts'].map((table) => `suite.${table}`);
      await emptying.query(`truncate ${tables.join(', ')}`);
      return store;
    };
    let other: ReturnType<typeof postgresStore> | undefined;
    afterAll(() => Promise.all([store?.close(), other?.close()]));
    logStoreSuite(
      makeStore,
      { describe, test },
      {
        another: async () => {
          other ??= postgresStore(server.pool(), { schema: 'suite' });
          return other;
        },
        endLeases: async () => {
          await emptying?.query(`update suite.conversations set lease_until = clock_timestamp() - interval '1 second'`);
        },
      },
    );
  });

  test('a connection that is cut at any moment loses no entry and stores none twice', async () => {
    const random = chance(sourceSeed());
    const store = postgresStore(server.pool({ max: 4 }), { schema: 'cut' });
    const knife = server.pool({ max: 1 });
    const ids = ['a', 'b', 'c', 'd'];
    const handles = await Promise.all(ids.map((id) => store.open(id)));
    let isDone = false;
    let cut = 0;
    /** A fast machine writes more between two cuts. */
    const writes = async (id: string, handle: LogHandle): Promise<number> => {
      let seq = 0;
      for (; seq < LENGTH || (cut <= CUTS && seq < MOST); seq += 1)
        expect(await codeOf(() => handle.append([notice(id, seq)], seq))).toBe('done');
      return seq;
    };
    const cuts = async (): Promise<void> => {
      for (; !isDone; await new Promise((resolve) => setTimeout(resolve, 10 + random.below(50)))) {
        const { rows } = await knife.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where pid <> pg_backend_pid() and state is not null order by random() limit 1`,
        );
        cut += rows.length;
      }
    };
    const cutting = cuts();
    let lengths: number[] = [];
    try {
      lengths = await Promise.all(handles.map((handle, index) => writes(ids[index] ?? '', handle)));
    } finally {
      isDone = true;
    }
    await cutting;
    expect(cut).toBeGreaterThan(CUTS);
    await store.close();
    const after = postgresStore(server.pool(), { schema: 'cut' });
    for (const [index, id] of ids.entries())
      expect(await stored(after, id)).toEqual(Array.from({ length: lengths[index] ?? 0 }, (_, seq) => notice(id, seq)));
    await after.close();
  });
});
