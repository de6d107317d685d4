/** The list of conversations in PostgreSQL: its pages are those of the engine's index, for rows of any content and in any order. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blobStoreOf } from '../../src/restate/blobsOfStore.ts';
import { type BlobPool, blobTable } from '../../src/restate/blobTable.ts';
import { engineRow, isListing, type ListingStore } from '../../src/restate/listedRows.ts';
import type { ConversationRow } from '../../src/stores/conversationRow.ts';
import type { ListOptions } from '../../src/stores/logStore.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { postgresStore } from '../../src/stores/postgres/postgresStore.ts';
import { pageOf } from '../../src/stores/rowTable.ts';
import { pglitePool } from '../support/pglitePool.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgresServer.ts';
import { chance } from '../support/seededChance.ts';
import { sourceSeed } from '../support/sourceSeed.ts';
import { proves } from '../support/tier.ts';

const CYCLES = ['ended', 'running', 'suspended'] as const;
const STATUSES = ['idle', 'active', 'waiting', undefined] as const;
/** Their order in UTF-16 is not that of their characters, or of a language. */
const IDS = ['a', 'A', 'b', 'ä', '😀', '\uffff', 'a\0', 'a\0b', '\ud800', '\udfff', '../a', '"', "'; drop", '__proto__']
  .concat(['%', '\\', 'x'.repeat(5000), `${'x'.repeat(5000)}y`, ' ', '1:2'])
  .concat(Array.from({ length: 20 }, (_, index) => `conversation ${index}`));
const OWNERS = ['ada', 'Ada', 'ad', '', '\0', '\ud800', '\ud801', "'", 'o'.repeat(5000), undefined];

const row = (id: string, more: Partial<ConversationRow> = {}): ConversationRow => ({
  ...{ id, cwd: '/', createdAt: 1, updatedAt: 1, turns: 1, costUsd: 0, length: 3, cycle: 'ended' },
  ...more,
});

const places: [string, boolean, () => Promise<BlobPool> | BlobPool][] = [
  ['in the test process', true, () => pglitePool()],
  ['of a server', proves && hasPostgres, () => startedServer().then((started) => started.pool())],
];
let server: PostgresServer | undefined;
async function startedServer(): Promise<PostgresServer> {
  server ??= await startPostgres();
  return server;
}
afterAll(() => server?.stop());
let schemas = 0;

describe.each(places)('a list in PostgreSQL %s', (where, isHere, poolOf) => {
  let pool: BlobPool;
  beforeAll(async () => {
    if (isHere) pool = await poolOf();
  });
  const fresh = (): ListingStore => {
    schemas += 1;
    return blobTable(pool, { schema: `listed_${schemas}` });
  };

  it.skipIf(!isHere)('has the pages of the same rows in the index of the engine, whatever they contain', async () => {
    const random = chance(sourceSeed());
    const one = <T>(all: readonly T[]): T => all[random.below(all.length)] as T;
    const store = fresh();
    const rows = new Map<string, ConversationRow>();
    for (let round = 0; round < 6; round += 1) {
      for (let write = 0; write < 25; write += 1) {
        const id = one(IDS);
        const before = rows.get(id);
        if (before && random.below(5) === 0) {
          rows.delete(id);
          await store.putRow('service', id, undefined);
          continue;
        }
        const owner = one(OWNERS);
        const length = (before?.length ?? 0) + random.below(3);
        const title = one(['title', 'half \ud800', '\0', undefined]);
        const changed = { length, updatedAt: one([5, 5, 5, 1.5, 0, -3, 1e13]), cycle: one(CYCLES) };
        const more = { ...(owner !== undefined && { owner }), ...(title !== undefined && { title }) };
        const next = row(id, { ...changed, ...more });
        rows.set(id, next);
        await store.putRow('service', id, next);
      }
      const infos = [...rows.values()].flatMap((each) => engineRow(each) ?? []);
      for (const status of STATUSES)
        for (const owner of [undefined, ...OWNERS]) {
          const filter: ListOptions = { status, owner };
          const whole = pageOf(infos, filter);
          expect(await store.listRows('service', filter)).toEqual(whole);
          const limit = 1 + random.below(4);
          const cursor = one([...pageOf(infos).map((info) => info.cursor), '5:', '5:zzz', '-1e9:a', '1e20:\ud801']);
          const page = { ...filter, limit, cursor };
          expect(await store.listRows('service', page)).toEqual(pageOf(infos, page));
        }
      const paged: unknown[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await store.listRows('service', { limit: 3, cursor });
        paged.push(...page);
        cursor = page.at(-1)?.cursor;
        if (page.length < 3) break;
      }
      expect(paged).toEqual(pageOf(infos));
    }
  });

  it.skipIf(!isHere)('keeps services apart, and shows no conversation of a sub-agent', async () => {
    const store = fresh();
    await store.putRow('one', 'a', row('a'));
    await store.putRow('two', 'a', row('a', { title: 'other' }));
    await store.putRow('one', 'b', row('b', { parentId: 'a' }));
    await store.putRow('two', 'a', undefined);
    await store.putRow('two', 'nothing', undefined);
    expect((await store.listRows('one')).map(({ id }) => id)).toEqual(['a']);
    expect(await store.listRows('two')).toEqual([]);
  });

  it.skipIf(!isHere)('is changed by no write that comes late', async () => {
    const store = fresh();
    await store.putRow('one', 'a', row('a', { length: 5, title: 'new' }));
    await store.putRow('one', 'a', row('a', { length: 4, title: 'old' }));
    expect(await store.listRows('one')).toMatchObject([{ title: 'new' }]);
    await store.putRow('one', 'a', undefined);
    await store.putRow('one', 'a', row('a', { length: 1, title: 'again' }));
    expect(await store.listRows('one')).toMatchObject([{ title: 'again' }]);
  });

  it.skipIf(!isHere)(
    'is made once by many that begin together, and needs no right to make it where it exists',
    async () => {
      // The codes of the server differ, and one of them comes in a few rounds only.
      let schema = '';
      for (let round = 0; round < (where === 'of a server' ? 25 : 1); round += 1) {
        schemas += 1;
        schema = `listed_${schemas}`;
        const stores = Array.from({ length: 8 }, () => blobTable(pool, { schema }));
        await Promise.all(stores.map((store, index) => store.putRow('one', `${index}`, row(`${index}`))));
        expect(await stores[0]?.listRows('one')).toHaveLength(8);
      }
      const statements: string[] = [];
      const query: BlobPool['query'] = (text, values) => {
        statements.push(text);
        return pool.query(text, values);
      };
      await blobTable({ query }, { schema }).listRows('one');
      expect(statements.filter((text) => text.includes('create'))).toEqual([]);
    },
  );

  it.skipIf(!isHere)('refuses a cursor that no list has returned', async () => {
    await expect(fresh().listRows('one', { cursor: 'nowhere' })).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('the store of an option', () => {
  it('has a list where it is in PostgreSQL, and holds no conversation open for it', async () => {
    schemas += 1;
    const schema = `listed_${schemas}`;
    const store = postgresStore(pglitePool(), { schema });
    const blobs = blobStoreOf(store);
    if (!isListing(blobs)) return expect.unreachable();
    await blobs.putRow('one', 'a', row('a'));
    expect(await blobTable(pglitePool(), { schema }).listRows('one')).toMatchObject([{ id: 'a', status: 'idle' }]);
    // Its own conversations have tables beside it.
    expect(await store.list()).toEqual([]);
    await store.close();
    expect(isListing(blobStoreOf(memoryStore()))).toBe(false);
    expect(isListing(undefined)).toBe(false);
  });

  it('rejects as a store does where the database cannot be asked', async () => {
    const query = () => Promise.reject(new Error('no database'));
    await expect(blobTable({ query }).listRows('one')).rejects.toMatchObject({ code: 'store' });
  });
});
