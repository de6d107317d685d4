/** Tests that the SQLite store keeps the contract of stores, with both durabilities. */
import { describe, expect, test } from 'vitest';
import { sqliteStore } from '../../src/stores/sqlite/sqliteStore.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { STORE_ACTS } from '../support/secondTimesOfStores.ts';
import { proves, sampled, volume } from '../support/tier.ts';
import { hasSqlite, sqlitePlaces } from './sqlitePlace.ts';

const { place } = sqlitePlaces();

describe.skipIf(hasSqlite)('sqliteStore on a Node without node:sqlite', () => {
  test('is refused at the call, with the version that is needed', () => {
    expect(() => sqliteStore('conversations.db')).toThrow(
      expect.objectContaining({ code: 'configuration', message: expect.stringContaining('Node has from 22.13 on') }),
    );
  });
});

describe.runIf(hasSqlite).each(['process', 'power'] as const)('sqliteStore, durability %s', (durability) => {
  const makeStore = async () => (await place({ durability })).store;
  const names: string[] = [];
  logStoreSuite(makeStore, { describe: (_, body) => body(), test: (name) => void names.push(name) });
  // Both durabilities take the same way, except for the sync.
  const taken = new Set(sampled(names, volume.threadedCaseOf));
  logStoreSuite(makeStore, {
    describe,
    test: (name, body) => test.skipIf(!taken.has(name) || (!proves && name.includes('hundred thousand')))(name, body),
  });
});

describe.runIf(hasSqlite)('sqliteStore', () => {
  test.each(STORE_ACTS)('is the same three times: it $act', async ({ same, run }) => {
    const { store, again } = await place();
    const holder = { store, another: () => again() };
    for (const time of [0, 1, 2]) expect(await run(holder, time)).toEqual(same);
  });
});
